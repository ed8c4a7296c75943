//! The tasks that clients were given, and those that are followed at the servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::model::InputRequest;

use super::entry::Entry;
use crate::caller::Caller;
use crate::failure::{Failure, Stage};
use crate::line::{Guard, Line};

/// All of them.
#[derive(Default)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    /// Rung when a task at a server is known.
    came: Notify,
}

#[derive(Default)]
struct Inner {
    /// What clients were given, by its sealed name.
    shown: HashMap<String, Arc<Entry>>,
    /// What is followed, by the instance and its name there.
    live: HashMap<(u64, String), Live>,
    order: u64,
}

struct Live {
    asker: Asker,
    nudge: Arc<Notify>,
}

/// Whom a question of a task goes to.
#[derive(Clone)]
pub(crate) enum Asker {
    /// The caller who waits for it.
    Line(Arc<Line>),
    /// Whoever asks how the task is.
    Entry(Weak<Entry>),
}

/// What is attached to `tasks/result` at a server: questions on its stream are the task's.
pub(crate) struct OnTask(pub(crate) Asker);

/// A task at a server while it is followed.
pub(super) struct Followed {
    registry: Arc<Registry>,
    key: (u64, String),
}

impl Asker {
    pub(crate) async fn ask(self, method: &'static str, params: Object) -> Outcome {
        match self {
            Self::Line(line) => line.ask(method, params).await,
            Self::Entry(entry) => {
                let guard = entry.upgrade().and_then(|it| it.guard());
                let params = match guard {
                    Some(guard) => checked(&guard, method, params).await?,
                    None => params,
                };
                let asked = entry.upgrade().map(|it| it.ask(method, params)).transpose()?;
                let gone = || ErrorObject::internal("no_answer", "The task is over.");
                match asked {
                    Some(asked) => asked.await,
                    None => Err(gone()),
                }
            }
        }
    }
}

/// The parameters of a question as plugins leave them.
async fn checked(guard: &Guard, method: &str, params: Object) -> Result<Object, ErrorObject> {
    let Ok(asked) = InputRequest::read(method, Some(&params.to_json())) else {
        return Ok(params);
    };
    let asked = guard.question(asked).await?;
    Ok(asked.params().and_then(|it| Object::parse(it.get()).ok()).unwrap_or(params))
}

impl Registry {
    /// Whether there is room for one more task of a caller.
    pub(super) fn room(&self, caller: &Caller) -> Result<(), Failure> {
        self.lock().room(caller)
    }

    /// Takes a task in.
    pub(super) fn add(&self, entry: &Arc<Entry>) -> Result<(), Failure> {
        let mut inner = self.lock();
        inner.room(entry.caller())?;
        let forgotten = inner.make_room();
        inner.order += 1;
        entry.set_order(inner.order);
        inner.shown.insert(entry.id().to_owned(), Arc::clone(entry));
        drop(inner);
        drop(forgotten);
        Ok(())
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Entry>> {
        self.lock().shown.get(id).cloned()
    }

    /// Forgets a task. What is worked on is cancelled.
    pub(super) fn remove(&self, id: &str) {
        // Outside the lock: what follows it goes with it.
        let entry = self.lock().shown.remove(id);
        drop(entry);
    }

    /// Forgets them all.
    pub(crate) fn clear(&self) {
        let shown = std::mem::take(&mut self.lock().shown);
        drop(shown);
    }

    /// The tasks of a caller from one on, in the order in which they came.
    pub(super) fn of(&self, caller: &Caller, after: u64) -> Vec<Arc<Entry>> {
        let inner = self.lock();
        let own = inner.shown.values().filter(|it| it.caller().is(caller) && it.order() > after);
        let mut own: Vec<_> = own.cloned().collect();
        drop(inner);
        own.sort_by_key(|it| it.order());
        own
    }

    /// Follows a task of an instance.
    pub(super) fn follow(
        self: &Arc<Self>,
        instance: u64,
        task: &str,
        asker: Asker,
        nudge: Arc<Notify>,
    ) -> Followed {
        let key = (instance, task.to_owned());
        self.lock().live.insert(key.clone(), Live { asker, nudge });
        self.came.notify_waiters();
        Followed { registry: Arc::clone(self), key }
    }

    /// A task may have changed.
    pub(super) fn nudge(&self, instance: u64, task: &str) {
        if let Some(live) = self.lock().live.get(&(instance, task.to_owned())) {
            live.nudge.notify_one();
        }
    }

    /// Whom questions of a task go to, once it is followed.
    pub(super) async fn asker(&self, instance: u64, task: &str) -> Option<Asker> {
        let key = (instance, task.to_owned());
        let found = async {
            loop {
                let mut came = std::pin::pin!(self.came.notified());
                came.as_mut().enable();
                if let Some(live) = self.lock().live.get(&key) {
                    return live.asker.clone();
                }
                came.await;
            }
        };
        tokio::time::timeout(UNKNOWN, found).await.ok()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn room(&self, caller: &Caller) -> Result<(), Failure> {
        let open = self.shown.values().filter(|it| !it.is_over());
        let (mut all, mut own) = (0, 0);
        for entry in open {
            all += 1;
            own += usize::from(entry.caller().is(caller));
        }
        if all < ALL && own < OWN {
            return Ok(());
        }
        let failure = Failure::new("too_many_tasks", Stage::Bridge, "Too many tasks are at work.");
        Err(failure.advice("Cancel some, or wait until they are over."))
    }

    /// Forgets the oldest task that is over, if there are too many to keep one more.
    fn make_room(&mut self) -> Option<Arc<Entry>> {
        if self.shown.len() < ALL {
            return None;
        }
        let over = self.shown.values().filter(|it| it.is_over());
        let oldest = over.min_by_key(|it| it.order())?.id().to_owned();
        self.shown.remove(&oldest)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let live = self.registry.lock().live.remove(&self.key);
        drop(live);
    }
}

/// How many tasks may be at work for one caller, and for all; as many are kept.
const OWN: usize = 64;
const ALL: usize = 1024;
/// How long a question waits for its task to be known.
const UNKNOWN: Duration = Duration::from_secs(5);
