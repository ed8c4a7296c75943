//! The tasks that clients were given, and those that are followed at the servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use trunkline_transport::listeners::Listeners;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::InputRequest;

use super::entry::Entry;
use crate::caller::Caller;
use crate::failure::{Failure, Reason, Stage};
use crate::selector::ListenerInfo;
use crate::upstream_call::{Answering, Answers, Guard, UpstreamCallContext};

/// All of them.
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    /// Who hears of changes.
    pub(crate) listeners: Arc<Listeners<ListenerInfo>>,
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
    Line(Arc<UpstreamCallContext>),
    /// Whoever asks how the task is.
    Entry(Weak<Entry>),
}

/// A task at a server while it is followed.
pub(crate) struct Followed {
    registry: Arc<Registry>,
    key: (u64, String),
}

impl Answers for Asker {
    fn ask(&self, method: Method, params: Object) -> Answering {
        Box::pin(self.clone().asked(method, params))
    }
}

impl Asker {
    pub(crate) async fn asked(self, method: Method, params: Object) -> Outcome {
        match self {
            Self::Line(line) => line.ask(method, params).await,
            Self::Entry(entry) => {
                let guard = entry.upgrade().and_then(|it| it.guard());
                let params = match &guard {
                    Some(guard) => checked(guard, method, params).await?,
                    None => params,
                };
                let asked = entry.upgrade().map(|it| it.ask(method, params)).transpose()?;
                let gone = || ErrorObject::internal("no_answer", "The task is over.");
                let answer = asked.ok_or_else(gone)?.await?;
                match guard {
                    Some(guard) => guard.answer(answer).await,
                    None => Ok(answer),
                }
            }
        }
    }
}

/// The parameters of a question as plugins leave them.
async fn checked(guard: &Guard, method: Method, params: Object) -> Result<Object, ErrorObject> {
    let Ok(asked) = InputRequest::read(method.name(), Some(&params.to_json())) else {
        return Ok(params);
    };
    let asked = guard.question(asked).await?;
    Ok(asked.params().and_then(|it| Object::parse(it.get()).ok()).unwrap_or(params))
}

impl Registry {
    pub(crate) fn new(listeners: Arc<Listeners<ListenerInfo>>) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), listeners, came: Notify::new() })
    }

    /// Whether there is room for one more task of a caller.
    pub(crate) fn room(&self, caller: &Caller) -> Result<(), Failure> {
        self.lock().room(caller)
    }

    /// Takes a task in.
    pub(crate) fn add(&self, entry: &Arc<Entry>) -> Result<(), Failure> {
        let mut inner = self.lock();
        inner.room(entry.caller())?;
        let forgotten = inner.make_room(entry.caller(), 0);
        inner.order += 1;
        entry.set_order(inner.order);
        inner.shown.insert(entry.id().to_owned(), Arc::clone(entry));
        drop(inner);
        drop(forgotten);
        Ok(())
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Entry>> {
        self.lock().shown.get(id).cloned()
    }

    /// Forgets a task. What is worked on is cancelled.
    pub(crate) fn remove(&self, id: &str) {
        // Outside the lock: what follows it goes with it.
        let entry = self.lock().shown.remove(id);
        drop(entry);
    }

    /// Forgets them all.
    pub(crate) fn clear(&self) {
        let shown = std::mem::take(&mut self.lock().shown);
        drop(shown);
    }

    /// A task is about to come to something of this size: older ones make room for it.
    pub(crate) fn grows(&self, entry: &Entry, bytes: usize) {
        let forgotten = self.lock().make_room(entry.caller(), bytes);
        drop(forgotten);
    }

    /// The tasks of a caller from one on, in the order in which they came.
    pub(crate) fn of(&self, caller: &Caller, after: u64) -> Vec<Arc<Entry>> {
        let inner = self.lock();
        let own = inner.shown.values().filter(|it| it.caller().is(caller) && it.order() > after);
        let mut own: Vec<_> = own.cloned().collect();
        drop(inner);
        own.sort_by_key(|it| it.order());
        own
    }

    /// Follows a task of an instance.
    pub(crate) fn follow(
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
    pub(crate) fn nudge(&self, instance: u64, task: &str) {
        if let Some(live) = self.lock().live.get(&(instance, task.to_owned())) {
            live.nudge.notify_one();
        }
    }

    /// Whom questions of a task go to, once it is followed.
    pub(crate) async fn asker(&self, instance: u64, task: &str) -> Option<Asker> {
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
            // Not by conversation: over 2026-07-28 each request is one of its own.
            own += usize::from(entry.caller().id == caller.id);
        }
        if all < ALL && own < share(caller) {
            return Ok(());
        }
        let failure =
            Failure::new(Reason::TooManyTasks, Stage::Bridge, "Too many tasks are at work.");
        Err(failure.advice("Cancel some, or wait until they are over."))
    }

    /// Forgets the oldest tasks that are over, if there are too many to keep one more, or if they keep
    /// too much: those of this caller if it is their share that is used up, those of all else.
    fn make_room(&mut self, caller: &Caller, bytes: usize) -> Vec<Arc<Entry>> {
        let is_own = |it: &Entry| it.caller().id == caller.id;
        let (mut own, mut all) = ((0, bytes), (self.shown.len(), bytes));
        let mut over = Vec::new();
        for entry in self.shown.values() {
            let weight = entry.weight();
            all.1 += weight;
            if is_own(entry) {
                own = (own.0 + 1, own.1 + weight);
            }
            if entry.is_over() {
                over.push((entry.order(), weight, is_own(entry), entry.id().to_owned()));
            }
        }
        over.sort_unstable();
        let mut forgotten = Vec::new();
        for (_, weight, is_own, id) in over {
            let over_share = own.0 >= ALL / 2 || own.1 > BYTES / 2;
            if !(over_share && is_own || all.0 >= ALL || all.1 > BYTES) {
                continue;
            }
            all = (all.0 - 1, all.1 - weight);
            if is_own {
                own = (own.0 - 1, own.1 - weight);
            }
            forgotten.extend(self.shown.remove(&id));
        }
        if self.shown.len() * 4 < self.shown.capacity() {
            self.shown.shrink_to(self.shown.len() * 2);
        }
        forgotten
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let live = self.registry.lock().live.remove(&self.key);
        drop(live);
    }
}

/// How many tasks may be at work for one caller. Those without a name are one, and leave room for the others.
fn share(caller: &Caller) -> usize {
    if caller.id.is_empty() { ALL / 2 } else { OWN }
}

/// How many tasks may be at work for one caller with a name, and for all; as many are kept for all, and
/// half of them for one caller.
const OWN: usize = 64;
const ALL: usize = 1024;
/// What those that are kept may have come to, in bytes; those of one caller may be half of it.
const BYTES: usize = 16 << 20;
/// How long a question waits for its task to be known.
const UNKNOWN: Duration = Duration::from_secs(5);
