//! What the state wants done → tasks. A lock around the state, held for lines.
//!
//! Nothing of the backend's is called and nobody is woken while the lock is held. Starts, stops and
//! probes are tasks of their own: a caller who goes away takes nothing with them.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::state::{self, Action, Asked, State};
use super::{Backend, Event, PoolStatus, Profile, Want, Work};
use crate::catalog::plan::ServerPlan;
use crate::failure::{Failure, Reason, Stage};

/// The instances of one server. Dropping it stops them all at once; `close` does so gently.
pub struct Pool<B: Backend> {
    inner: Arc<Inner<B>>,
}

/// The right to one call at a time in an instance, given back when dropped.
pub struct Lease<B: Backend> {
    inner: Arc<Inner<B>>,
    instance: Arc<B::Instance>,
    id: u64,
    /// Whose share it comes out of; `None` if it is not a use.
    by: Option<Arc<str>>,
}

impl<B: Backend> Pool<B> {
    /// A pool for a server. What must always run is started at once.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn new(plan: Arc<ServerPlan>, backend: Arc<B>) -> Arc<Self> {
        let state = State::new(plan, &NUMBERS, Duration::ZERO);
        let inner = Arc::new(Inner {
            backend,
            runtime: Handle::current(),
            epoch: Instant::now(),
            locked: Mutex::new(Locked {
                state,
                tasks: HashMap::new(),
                parked: HashMap::new(),
                ticking: false,
            }),
            alarm: Arc::new(Notify::new()),
            gone: Notify::new(),
            listener: OnceLock::new(),
        });
        inner.with(|_, _| ());
        Arc::new(Self { inner })
    }

    /// An instance, as soon as there is one with room for this want.
    ///
    /// # Errors
    ///
    /// When the server does not start, when all is taken for as long as the caller has patience, or
    /// when the pool was closed.
    pub async fn lease(self: &Arc<Self>, want: Want) -> Result<Lease<B>, Failure> {
        let (mut answer, by) = (None, Arc::clone(&want.by));
        let asked = self.inner.with(|state, now| {
            state.want(want, now, || {
                let (to, from) = oneshot::channel();
                answer = Some(from);
                to
            })
        });
        match (asked, answer) {
            (Asked::Given(id, instance), _) => Ok(self.inner.lease(id, instance, Some(by))),
            (Asked::Refused(failure), _) => Err(failure),
            (Asked::Waits(ticket), answer) => {
                let waiting = Waiting { inner: &self.inner, ticket: Some(ticket) };
                waiting.answer(answer.expect("who waits was given a channel")).await
            }
        }
    }

    /// A lease on any instance that is ready and has room. It starts nothing, and does not count as
    /// a use: the instance is no less idle for it.
    pub fn running(&self) -> Option<Lease<B>> {
        let (id, instance) = self.inner.with(|state, _| state.running())?;
        Some(self.inner.lease(id, instance, None))
    }

    /// The same of one that was opened for callers who can do at least as much as this. `owner` says whose
    /// will do beside those that are nobody's; `None` if anybody's.
    pub fn running_as(&self, profile: Profile, owner: Option<&str>) -> Option<Lease<B>> {
        let (id, instance) = self.inner.with(|state, _| state.running_as(profile, owner))?;
        Some(self.inner.lease(id, instance, None))
    }

    /// Whether an instance is one of those.
    pub fn is_as(&self, id: u64, profile: Profile, owner: Option<&str>) -> bool {
        self.inner.with(|state, _| state.is_as(id, profile, owner))
    }

    /// An instance turned out to serve whoever wants this, though it was opened for something else.
    pub fn turned_out(&self, id: u64, want: &Want) {
        self.inner.with(|state, _| state.turned_out(id, want));
    }

    /// Whose an instance is; `None` if anybody's.
    pub fn owner(&self, id: u64) -> Option<Arc<str>> {
        self.inner.lock().state.owner(id)
    }

    /// A lease on one instance, whatever else is in flight in it; `None` if it is gone.
    pub fn lease_on(&self, id: u64) -> Option<Lease<B>> {
        let instance = self.inner.with(|state, _| state.ready(id))?;
        Some(self.inner.lease(id, instance, None))
    }

    /// A client that may call has come.
    pub fn client_joined(&self) {
        self.inner.with(|state, now| state.client_joined(now));
    }

    /// It has gone. With the last one goes what was started on demand, once it is idle.
    pub fn client_left(&self) {
        self.inner.with(|state, now| state.client_left(now));
    }

    /// A session is over: its instance holds its state and goes with it.
    pub fn forget(&self, key: &str) {
        self.inner.with(|state, now| state.forget(key, now));
    }

    /// Another plan from now on. Instances go on under its limits; if the server is now started,
    /// reached or shared in another way they finish their calls and are replaced. The backend has
    /// to know the new plan before.
    pub fn reconfigure(&self, plan: Arc<ServerPlan>) {
        self.inner.with(|state, now| state.reconfigure(plan, now));
    }

    /// Refuses new leases, lets calls finish for as long as `drain`, stops everything; ready when
    /// the last process is gone.
    pub async fn close(&self, drain: Duration) {
        self.inner.with(|state, now| state.close(drain, now));
        loop {
            let mut gone = std::pin::pin!(self.inner.gone.notified());
            gone.as_mut().enable();
            if self.inner.lock().state.is_gone() {
                return;
            }
            gone.await;
        }
    }

    /// Forgets that starts have failed.
    pub fn retry(&self) {
        self.inner.with(|state, now| state.retry(now));
    }

    /// Has all instances finish their calls and go. The next lease starts anew.
    pub fn stop_all(&self) {
        self.inner.with(|state, now| state.stop_all(now));
    }

    /// Stops the instances of one principal, once their calls are done: its login is another one now.
    pub fn stop_owned(&self, owner: &str) {
        self.inner.with(|state, now| state.stop_owned(owner, now));
    }

    /// Stops an instance that misbehaved, whatever is in flight in it.
    pub fn kill(&self, id: u64) {
        self.inner.with(|state, now| state.kill(id, now));
    }

    /// Whoever started this instance is done with it. If nobody else has used it and it is not one
    /// of those that are kept ready, it goes now.
    pub fn retire(&self, id: u64) {
        self.inner.with(|state, now| state.done_with(id, now));
    }

    /// How it is.
    pub fn status(&self) -> PoolStatus {
        let now = self.inner.epoch.elapsed();
        self.inner.lock().state.status(now)
    }

    /// Has this called with everything that happens from now on, never under a lock; it must not
    /// block. Only the first to ask is heard: `false` for all others.
    pub fn on_event(&self, listener: impl Fn(&Event) + Send + Sync + 'static) -> bool {
        self.inner.listener.set(Box::new(listener)).is_ok()
    }
}

#[cfg(test)]
impl<B: Backend> Pool<B> {
    /// Whether there is a task that waits for an alarm, and how many look after instances.
    pub(super) fn tasks(&self) -> (bool, usize) {
        let locked = self.inner.lock();
        (locked.ticking, locked.tasks.len())
    }
}

impl<B: Backend> Drop for Pool<B> {
    fn drop(&mut self) {
        self.inner.with(|state, now| state.close(Duration::ZERO, now));
        self.inner.alarm.notify_one();
    }
}

impl<B: Backend> fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl<B: Backend> Lease<B> {
    /// What it is a lease on.
    pub fn instance(&self) -> &Arc<B::Instance> {
        &self.instance
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Keeps the instance without taking a place in it: it does not go idle, and others call it.
    /// Work goes on in it: when it has to go, it goes after that, like after a call.
    pub fn hold(self) -> Hold<B> {
        self.held(true)
    }

    /// The same for somebody who only listens, and can do so elsewhere.
    pub fn stay(self) -> Hold<B> {
        self.held(false)
    }

    /// Says that its call waits for a person. Until what is returned is dropped, the lease may be asked
    /// to make way for others, who have less.
    pub fn park(&self) -> Parking<B> {
        let told = Arc::new(Notify::new());
        let ticket = self.by.as_ref().map(|by| {
            let mut locked = self.inner.lock();
            let ticket = locked.state.next_ticket();
            locked.parked.insert(ticket, Arc::clone(&told));
            drop(locked);
            self.inner.with(|state, _| state.park(ticket, self.id, by));
            ticket
        });
        Parking { inner: Arc::clone(&self.inner), ticket, told }
    }

    fn held(self, at_work: bool) -> Hold<B> {
        self.inner.with(|state, _| state.hold(self.id, at_work));
        Hold { inner: self.inner.clone(), id: self.id, at_work }
    }
}

/// A lease whose call waits for a person, until it is dropped.
pub struct Parking<B: Backend> {
    inner: Arc<Inner<B>>,
    ticket: Option<u64>,
    told: Arc<Notify>,
}

impl<B: Backend> Parking<B> {
    /// Notified when the lease is wanted back.
    pub fn told(&self) -> Arc<Notify> {
        Arc::clone(&self.told)
    }
}

impl<B: Backend> Drop for Parking<B> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.inner.lock().parked.remove(&ticket);
            self.inner.with(|state, _| state.unpark(ticket));
        }
    }
}

/// What keeps an instance from going idle, until it is dropped.
pub struct Hold<B: Backend> {
    inner: Arc<Inner<B>>,
    id: u64,
    at_work: bool,
}

impl<B: Backend> Drop for Hold<B> {
    fn drop(&mut self) {
        self.inner.with(|state, now| state.let_go(self.id, self.at_work, now));
    }
}

impl<B: Backend> Drop for Lease<B> {
    fn drop(&mut self) {
        self.inner.with(|state, now| state.release(self.id, self.by.as_ref(), now));
    }
}

impl<B: Backend> fmt::Debug for Lease<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("id", &self.id).finish_non_exhaustive()
    }
}

type Answer<B> = Result<Lease<B>, Failure>;
type Listener = Box<dyn Fn(&Event) + Send + Sync>;
type Acting<B> = Action<Arc<<B as Backend>::Instance>, oneshot::Sender<Answer<B>>>;

struct Inner<B: Backend> {
    backend: Arc<B>,
    runtime: Handle,
    epoch: Instant,
    locked: Mutex<Locked<B>>,
    /// Wakes the ticking task when the alarm is earlier than it was.
    alarm: Arc<Notify>,
    gone: Notify,
    listener: OnceLock<Listener>,
}

struct Locked<B: Backend> {
    state: State<Arc<B::Instance>, oneshot::Sender<Answer<B>>>,
    /// What starts an instance, later what watches over it.
    tasks: HashMap<u64, AbortHandle>,
    /// How leases whose calls wait for a person are told that others want them, by number.
    parked: HashMap<u64, Arc<Notify>>,
    /// Whether there is a ticking task.
    ticking: bool,
}

impl<B: Backend> Inner<B> {
    /// Tells the state something, and does what it wants done.
    fn with<T>(
        self: &Arc<Self>,
        tell: impl FnOnce(&mut State<Arc<B::Instance>, oneshot::Sender<Answer<B>>>, Duration) -> T,
    ) -> T {
        let now = self.epoch.elapsed();
        let mut locked = self.lock();
        let told = tell(&mut locked.state, now);
        let actions = std::mem::take(&mut locked.state.actions);
        let rearmed = std::mem::take(&mut locked.state.rearmed);
        let tick = rearmed && !locked.ticking;
        locked.ticking |= tick;
        drop(locked);
        if tick {
            self.runtime.spawn(ticking(Arc::downgrade(self), self.alarm.clone()));
        } else if rearmed {
            self.alarm.notify_one();
        }
        for action in actions {
            self.act(action);
        }
        told
    }

    fn act(self: &Arc<Self>, action: Acting<B>) {
        match action {
            Action::Start { id, profile, owner } => self.start(id, profile, owner),
            Action::Abort { id } => self.end_task(id),
            Action::Watch { id, handle } => self.watch(id, handle),
            Action::Stop { id, handle } => self.stop(id, handle),
            Action::Probe { id, handle, timeout } => self.probe(id, handle, timeout),
            // Whoever has gone away meanwhile gives it back by not taking it.
            Action::Give { to, id, handle, by } => {
                drop(to.send(Ok(self.lease(id, handle, Some(by)))));
            }
            Action::MakeWay { ticket } => {
                let told = self.lock().parked.get(&ticket).cloned();
                told.inspect(|it| it.notify_one());
            }
            Action::Refuse { to, failure } => drop(to.send(Err(failure))),
            Action::Tell(event) => {
                tracing::debug!(?event, "pool");
                if let Some(listener) = self.listener.get() {
                    listener(&event);
                }
            }
            Action::Gone => self.gone.notify_waiters(),
        }
    }

    fn start(self: &Arc<Self>, id: u64, profile: Profile, owner: Option<Arc<str>>) {
        let inner = self.clone();
        let task = self.runtime.spawn(async move {
            let started = caught(|| inner.backend.start(id, profile, owner)).await;
            let result = match started {
                Ok(result) => result.map(Arc::new),
                Err(panic) => Err(Failure::new(
                    Reason::Panicked,
                    Stage::Spawn,
                    format!("Starting the server went wrong inside the gateway: {panic}"),
                )),
            };
            inner.with(|state, now| state.started(id, result, now));
        });
        self.keep_task(id, task.abort_handle(), |state| state.is_starting(id));
    }

    fn watch(self: &Arc<Self>, id: u64, instance: Arc<B::Instance>) {
        let (backend, weak) = (self.backend.clone(), Arc::downgrade(self));
        let task = self.runtime.spawn(async move {
            let ended = caught(move || backend.ended(instance)).await;
            let failure = ended.unwrap_or_else(|panic| {
                Failure::new(
                    Reason::Panicked,
                    Stage::Call,
                    format!("It could not be watched: {panic}"),
                )
            });
            if let Some(inner) = weak.upgrade() {
                inner.with(|state, now| state.ended(id, failure, now));
            }
        });
        self.keep_task(id, task.abort_handle(), |state| state.is_watched(id));
    }

    fn stop(self: &Arc<Self>, id: u64, instance: Arc<B::Instance>) {
        self.end_task(id);
        let inner = self.clone();
        self.runtime.spawn(async move {
            let stop = caught(|| inner.backend.stop(instance));
            if !matches!(timeout(STOP_LIMIT, stop).await, Ok(Ok(()))) {
                tracing::warn!(id, "an instance could not be stopped");
            }
            inner.with(|state, now| state.stopped(id, now));
        });
    }

    fn probe(self: &Arc<Self>, id: u64, instance: Arc<B::Instance>, limit: Duration) {
        let inner = self.clone();
        self.runtime.spawn(async move {
            let result = match timeout(limit, caught(|| inner.backend.probe(instance))).await {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => Err(panic),
                Err(_) => Err(format!("It did not answer within {} s.", limit.as_secs_f32())),
            };
            inner.with(|state, now| state.probed(id, result, now));
        });
    }

    /// Remembers what is to be ended with the instance, unless the instance has gone before it.
    fn keep_task(
        &self,
        id: u64,
        task: AbortHandle,
        wanted: impl FnOnce(&State<Arc<B::Instance>, oneshot::Sender<Answer<B>>>) -> bool,
    ) {
        let mut locked = self.lock();
        if wanted(&locked.state) {
            locked.tasks.insert(id, task);
        } else if !task.is_finished() {
            drop(locked);
            task.abort();
        }
    }

    fn end_task(&self, id: u64) {
        let task = self.lock().tasks.remove(&id);
        task.inspect(AbortHandle::abort);
    }

    fn lease(
        self: &Arc<Self>,
        id: u64,
        instance: Arc<B::Instance>,
        by: Option<Arc<str>>,
    ) -> Lease<B> {
        Lease { inner: self.clone(), instance, id, by }
    }

    fn lock(&self) -> MutexGuard<'_, Locked<B>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `tick` when the alarm goes off, and ends when there is none.
async fn ticking<B: Backend>(weak: Weak<Inner<B>>, alarm: Arc<Notify>) {
    loop {
        let at = {
            let Some(inner) = weak.upgrade() else { return };
            let mut locked = inner.lock();
            let Some(at) = locked.state.alarm() else {
                locked.ticking = false;
                return;
            };
            inner.epoch + at
        };
        tokio::select! {
            () = alarm.notified() => {}
            () = sleep_until(at) => {
                let Some(inner) = weak.upgrade() else { return };
                inner.with(|state, now| state.tick(now));
            }
        }
    }
}

/// One who waits. Dropped before the answer came, it waits no more; an answer that was on its way is
/// dropped with the channel, and a lease in it is given back.
struct Waiting<'a, B: Backend> {
    inner: &'a Arc<Inner<B>>,
    ticket: Option<u64>,
}

impl<B: Backend> Waiting<'_, B> {
    async fn answer(mut self, answer: oneshot::Receiver<Answer<B>>) -> Answer<B> {
        let answered = answer.await;
        self.ticket = None;
        match answered {
            Ok(answer) => answer,
            Err(_) => Err(state::draining(&self.inner.lock().state.plan.name)),
        }
    }
}

impl<B: Backend> Drop for Waiting<'_, B> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.inner.with(|state, now| state.leave(ticket, now));
        }
    }
}

/// What the work came to, or what it said when it panicked.
async fn caught<T>(work: impl FnOnce() -> Work<T>) -> Result<T, String> {
    let said = |panic: Box<dyn std::any::Any + Send>| match panic.downcast::<String>() {
        Ok(said) => *said,
        Err(panic) => (*panic.downcast::<&str>().unwrap_or(Box::new("it panicked"))).to_owned(),
    };
    let mut work = catch_unwind(AssertUnwindSafe(work)).map_err(said)?;
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(said(panic))),
        }
    })
    .await
}

/// Ids of instances, in all pools of the process.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Whatever takes longer to stop than that is not waited for.
const STOP_LIMIT: Duration = Duration::from_secs(30);
