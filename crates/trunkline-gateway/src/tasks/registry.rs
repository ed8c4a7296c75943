//! All tasks: those that clients hold, and those that are followed at servers.

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
use crate::traffic::Recording;
use crate::upstream_call::{Answering, Answers, Guard, UpstreamCallContext};

/// The registry of tasks.
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    /// Clients that are notified of changes.
    pub(crate) listeners: Arc<Listeners<ListenerInfo>>,
    /// Notified when a task at a server becomes known.
    came: Notify,
}

#[derive(Default)]
struct Inner {
    /// Tasks that clients hold, by sealed id.
    shown: HashMap<String, Arc<Entry>>,
    /// Tasks that are followed, by instance and the server's id.
    live: HashMap<(u64, String), Live>,
    order: u64,
}

struct Live {
    asker: Asker,
    nudge: Arc<Notify>,
}

/// The addressee of a task's questions.
#[derive(Clone)]
pub(crate) enum Asker {
    /// The caller that waits for it.
    Caller(Arc<UpstreamCallContext>),
    /// The client that polls it.
    Entry(Weak<Entry>),
}

/// Guard of a task that is followed.
pub(crate) struct Followed {
    registry: Arc<Registry>,
    key: (u64, String),
}

impl Answers for Asker {
    fn ask(&self, method: Method, params: Object) -> Answering {
        Box::pin(self.clone().asked(method, params))
    }

    fn recording(&self) -> Option<Recording> {
        match self {
            Self::Caller(context) => context.recording().cloned(),
            Self::Entry(_) => None,
        }
    }
}

impl Asker {
    pub(crate) async fn asked(self, method: Method, params: Object) -> Outcome {
        match self {
            Self::Caller(context) => context.ask(method, params).await,
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

/// The parameters of a question as the plugins leave them.
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

    /// Whether the caller may have one more task.
    pub(crate) fn room(&self, caller: &Caller) -> Result<(), Failure> {
        self.lock().room(caller)
    }

    /// Adds a task.
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

    /// Removes a task. If it still runs, it is cancelled.
    pub(crate) fn remove(&self, id: &str) {
        // Dropped outside the lock, because that drops the follower too.
        let entry = self.lock().shown.remove(id);
        drop(entry);
    }

    /// Removes all tasks.
    pub(crate) fn clear(&self) {
        let shown = std::mem::take(&mut self.lock().shown);
        drop(shown);
    }

    /// Makes room for a task's outcome of this size by evicting older ones.
    pub(crate) fn grows(&self, entry: &Entry, bytes: usize) {
        let forgotten = self.lock().make_room(entry.caller(), bytes);
        drop(forgotten);
    }

    /// The tasks of a caller after `after`, in order of creation.
    pub(crate) fn of(&self, caller: &Caller, after: u64) -> Vec<Arc<Entry>> {
        let inner = self.lock();
        let own = inner.shown.values().filter(|it| it.caller().is(caller) && it.order() > after);
        let mut own: Vec<_> = own.cloned().collect();
        drop(inner);
        own.sort_by_key(|it| it.order());
        own
    }

    /// Registers a task as followed.
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

    /// Triggers a poll of a task.
    pub(crate) fn nudge(&self, instance: u64, task: &str) {
        if let Some(live) = self.lock().live.get(&(instance, task.to_owned())) {
            live.nudge.notify_one();
        }
    }

    /// The addressee of a task's questions, once the task is followed.
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
            // By principal, not by conversation: in 2026-07-28 each request is a conversation of its own.
            own += usize::from(entry.caller().id == caller.id);
        }
        if all < ALL && own < share(caller) {
            return Ok(());
        }
        let failure =
            Failure::new(Reason::TooManyTasks, Stage::Bridge, "Too many tasks are running.");
        Err(failure.advice("Cancel some, or wait until they end."))
    }

    /// Evicts the oldest finished tasks if there are too many or they hold too many bytes: this caller's if its
    /// share is used up, otherwise any.
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

/// How many tasks may run for one caller. Anonymous callers share one bound, and leave room for others.
fn share(caller: &Caller) -> usize {
    if caller.id.is_empty() { ALL / 2 } else { OWN }
}

/// How many tasks may run for one named caller, and for all; as many finished ones are kept for all, and half
/// as many for one caller.
const OWN: usize = 64;
const ALL: usize = 1024;
/// The bytes that the outcomes of all kept tasks may have; half of it for one caller.
const BYTES: usize = 16 << 20;
/// How long a question waits for its task to become known.
const UNKNOWN: Duration = Duration::from_secs(5);
