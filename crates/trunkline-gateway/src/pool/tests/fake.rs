//! A backend whose processes are numbers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep; // the sleep is the subject: the clock is moved

use super::sim::{failed, plan};
use crate::failure::{Failure, Reason, Stage};
use crate::pool::{Backend, Cause, Pool, Profile, Want, Work};

/// How the next step goes.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum How {
    #[default]
    Well,
    Badly,
    Never,
    /// Panics in the call that makes the future.
    PanicsAtOnce,
    /// Panics in the future.
    PanicsLater,
}

#[derive(Default)]
pub(super) struct Fake {
    /// How the next starts go; they succeed when this is empty.
    pub(super) starts: Mutex<VecDeque<How>>,
    pub(super) probes: Mutex<How>,
    pub(super) stops: Mutex<How>,
    /// The number of starts so far.
    pub(super) started: AtomicUsize,
    /// The number of live processes.
    pub(super) alive: Arc<AtomicUsize>,
}

pub(super) struct Instance {
    process: Mutex<Option<Process>>,
    pub(super) crash: Notify,
    pub(super) users: AtomicUsize,
}

struct Process(Arc<AtomicUsize>);

impl Fake {
    pub(super) fn with_pool(settings: &str) -> (Arc<Self>, Arc<Pool<Self>>) {
        let backend = Arc::new(Self::default());
        let pool = backend.pool(settings);
        (backend, pool)
    }

    pub(super) fn pool(self: &Arc<Self>, settings: &str) -> Arc<Pool<Self>> {
        Pool::new(plan(settings), self.clone())
    }

    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    pub(super) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(super) fn next_starts(&self, how: &[How]) {
        self.starts.lock().unwrap().extend(how);
    }
}

impl Backend for Fake {
    type Instance = Instance;

    fn start(&self, _: u64, _: Profile, _: Option<Arc<str>>) -> Work<Result<Instance, Failure>> {
        self.started.fetch_add(1, Ordering::SeqCst);
        let how = self.starts.lock().unwrap().pop_front().unwrap_or_default();
        assert!(how != How::PanicsAtOnce, "no future for you");
        self.alive.fetch_add(1, Ordering::SeqCst);
        let process = Process(self.alive.clone());
        Box::pin(async move {
            sleep(TAKES).await; // the sleep is the subject: the clock is moved
            match how {
                How::Badly => return Err(failed(None)),
                How::Never => std::future::pending().await,
                How::PanicsLater => panic!("half way"),
                How::Well | How::PanicsAtOnce => {}
            }
            let process = Mutex::new(Some(process));
            Ok(Instance { process, crash: Notify::new(), users: AtomicUsize::new(0) })
        })
    }

    fn stop(&self, instance: Arc<Instance>) -> Work<()> {
        let how = *self.stops.lock().unwrap();
        Box::pin(async move {
            sleep(TAKES).await; // the sleep is the subject: the clock is moved
            drop(instance.process.lock().unwrap().take());
            match how {
                How::Never => std::future::pending().await,
                How::Well => {}
                _ => panic!("it does not stop"),
            }
        })
    }

    fn probe(&self, _instance: Arc<Instance>) -> Work<Result<(), String>> {
        let how = *self.probes.lock().unwrap();
        Box::pin(async move {
            match how {
                How::Well => Ok(()),
                How::Badly => Err("it feels unwell".to_owned()),
                How::Never => std::future::pending().await,
                How::PanicsAtOnce | How::PanicsLater => panic!("what probe?"),
            }
        })
    }

    fn ended(&self, instance: Arc<Instance>) -> Work<Failure> {
        Box::pin(async move {
            instance.crash.notified().await;
            Failure::new(Reason::InstanceEnded, Stage::Call, "It ended by itself.")
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) fn call() -> Want {
    patient(Duration::from_secs(30))
}

pub(super) fn patient(patience: Duration) -> Want {
    let by = Arc::default();
    Want {
        key: None,
        owner: None,
        by,
        profile: Profile(0),
        is_alone: false,
        cause: Cause::Call,
        patience,
    }
}

/// How long a start and a stop take.
pub(super) const TAKES: Duration = Duration::from_millis(100);
