//! Executes what the pool's state decides, as tasks. One lock around the state, held for lines.
//!
//! No backend code runs and no waiter is woken while the lock is held. Starts, stops and probes are tasks of
//! their own: a caller that disconnects cancels none of them.

mod guards;

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
pub use guards::{Hold, Parking};

/// The instances of one server. Dropping the pool kills them; `close` drains first.
pub struct Pool<B: Backend> {
    inner: Arc<Inner<B>>,
}

/// The right to one call in an instance; dropping it gives the place back.
pub struct Lease<B: Backend> {
    inner: Arc<Inner<B>>,
    instance: Arc<B::Instance>,
    id: u64,
    /// The principal whose share it counts against; `None` if it does not count as a use.
    by: Option<Arc<str>>,
    /// When it ended, if that is known before it is dropped.
    ended: Option<Instant>,
}

impl<B: Backend> Pool<B> {
    /// A pool for a server. Instances that must always run start at once.
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

    /// Leases an instance, waiting until one has room.
    ///
    /// # Errors
    ///
    /// When the server does not start, when every instance is busy for `patience`, or when the pool is closed.
    pub async fn lease(self: &Arc<Self>, want: Want) -> Result<Lease<B>, Failure> {
        match self.ask(want, Instant::now().into_std()) {
            Leasing::Done(leased) => leased,
            Leasing::Waits(waiting) => waiting.answer().await,
        }
    }

    /// The same without a future where an instance has room: most calls find one ready.
    pub(crate) fn ask(self: &Arc<Self>, want: Want, now: std::time::Instant) -> Leasing<B> {
        let (mut answer, profile) = (None, want.profile);
        let asked = self.inner.with_at(now.into(), |state, now| {
            state.want(want, now, || {
                let (to, from) = oneshot::channel();
                answer = Some(from);
                to
            })
        });
        match (asked, answer) {
            (Asked::Given { id, handle, by }, _) => {
                Leasing::Done(Ok(self.inner.lease(id, handle, Some(by))))
            }
            (Asked::Refused(failure), _) => Leasing::Done(Err(failure)),
            (Asked::Waits(ticket), answer) => Leasing::Waits(Waiting {
                inner: Arc::clone(&self.inner),
                profile,
                ticket: Some(ticket),
                answer: answer.expect("who waits was given a channel"),
            }),
        }
    }

    /// A lease on any ready instance with room. It starts nothing and does not count as a use, so the instance
    /// still becomes idle.
    pub fn running(&self) -> Option<Lease<B>> {
        let (id, instance) = self.inner.with(|state, _| state.running())?;
        Some(self.inner.lease(id, instance, None))
    }

    /// The same among instances opened with at least this profile. `owner` names whose instances qualify beside
    /// shared ones; `None` for any.
    pub fn running_as(&self, profile: Profile, owner: Option<&str>) -> Option<Lease<B>> {
        let (id, instance) = self.inner.with(|state, _| state.running_as(profile, owner))?;
        Some(self.inner.lease(id, instance, None))
    }

    /// Whether an instance qualifies for [`Self::running_as`].
    pub fn is_as(&self, id: u64, profile: Profile, owner: Option<&str>) -> bool {
        self.inner.with(|state, _| state.is_as(id, profile, owner))
    }

    /// The instance turned out to serve this want, though it was opened with another profile.
    pub fn turned_out(&self, id: u64, want: &Want) {
        self.inner.with(|state, _| state.turned_out(id, want));
    }

    /// The owner of an instance; `None` if it is shared.
    pub fn owner(&self, id: u64) -> Option<Arc<str>> {
        self.inner.lock().state.owner(id)
    }

    /// A lease on one instance, regardless of its load; `None` if it is gone.
    pub fn lease_on(&self, id: u64) -> Option<Lease<B>> {
        let instance = self.inner.with(|state, _| state.ready(id))?;
        Some(self.inner.lease(id, instance, None))
    }

    /// A client that may call has connected.
    pub fn client_joined(&self) {
        self.inner.with(|state, now| state.client_joined(now));
    }

    /// A client has disconnected. After the last one, on-demand instances stop as soon as they are idle.
    pub fn client_left(&self) {
        self.inner.with(|state, now| state.client_left(now));
    }

    /// A session has ended: the instance that holds its state stops.
    pub fn forget(&self, key: &str) {
        self.inner.with(|state, now| state.forget(key, now));
    }

    /// Puts a new plan in force. Instances continue under its limits; if the server is now started, reached or
    /// shared in another way, they drain and are replaced. The backend must have the new plan before.
    pub fn reconfigure(&self, plan: Arc<ServerPlan>) {
        self.inner.with(|state, now| state.reconfigure(plan, now));
    }

    /// Graceful shutdown: refuses new leases, drains calls for at most `drain`, stops everything; completes
    /// when the last process is gone.
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

    /// Clears backoff and suspension.
    pub fn retry(&self) {
        self.inner.with(|state, now| state.retry(now));
    }

    /// Drains and stops all instances. The next lease is a cold start.
    pub fn stop_all(&self) {
        self.inner.with(|state, now| state.stop_all(now));
    }

    /// Drains and stops the instances of one principal, whose login has changed.
    pub fn stop_owned(&self, owner: &str) {
        self.inner.with(|state, now| state.stop_owned(owner, now));
    }

    /// Whether an instance was started for its lists, and no caller has used it since.
    pub(crate) fn is_for_lists(&self, id: u64) -> bool {
        self.inner.lock().state.is_for_lists(id)
    }

    /// Whether an instance of this affinity key exists, or any where there are no keys.
    pub(crate) fn has_instance_of(&self, key: &str) -> bool {
        self.inner.lock().state.has_instance_of(key)
    }

    /// Whether work is in flight in instances of this key, or waits for one.
    pub(crate) fn is_busy_with(&self, key: &str) -> bool {
        self.inner.lock().state.is_busy_with(key)
    }

    /// Stops the instances of this key at once; who waits for one is refused with `failure`.
    pub(crate) fn evict(&self, key: &str, failure: &Failure) {
        self.inner.with(|state, now| state.evict(key, failure, now));
    }

    /// Stops an instance that misbehaved, even with calls in flight.
    pub fn kill(&self, id: u64) {
        self.inner.with(|state, now| state.kill(id, now));
    }

    /// The caller that started this instance is done with it. It stops now, unless another caller has used it
    /// or it is one that is kept ready.
    pub fn retire(&self, id: u64) {
        self.inner.with(|state, now| state.done_with(id, now));
    }

    /// The current status.
    pub fn status(&self) -> PoolStatus {
        let now = self.inner.epoch.elapsed();
        self.inner.lock().state.status(now)
    }

    /// Calls `listener` with every later event, never under a lock; it must not block. Only the first listener
    /// is registered: `false` for all others.
    pub fn on_event(&self, listener: impl Fn(&Event) + Send + Sync + 'static) -> bool {
        self.inner.listener.set(Box::new(listener)).is_ok()
    }
}

#[cfg(test)]
impl<B: Backend> Pool<B> {
    /// Whether the alarm task runs, and how many tasks watch instances.
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
    /// The leased instance.
    pub fn instance(&self) -> &Arc<B::Instance> {
        &self.instance
    }

    /// The instance's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Keeps the instance alive without taking a place in it: it does not become idle, and other callers can
    /// use it. Work continues in it, so a drain waits for the hold as for a call.
    pub fn hold(self) -> Hold<B> {
        self.held(true)
    }

    /// A hold for a listener, which can listen at another instance: a drain does not wait for it.
    pub fn stay(self) -> Hold<B> {
        self.held(false)
    }

    /// Marks the call as waiting for the user. Until the guard is dropped, the pool may ask the call to make
    /// way for a principal with fewer leases.
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

    /// Gives the place back, as dropping does, at a moment that is known already.
    pub(crate) fn give_back(mut self, now: std::time::Instant) {
        self.ended = Some(now.into());
    }

    fn held(self, at_work: bool) -> Hold<B> {
        self.inner.with(|state, _| state.hold(self.id, at_work));
        Hold { inner: self.inner.clone(), id: self.id, at_work }
    }
}

impl<B: Backend> Drop for Lease<B> {
    fn drop(&mut self) {
        let now = self.ended.unwrap_or_else(Instant::now);
        self.inner.with_at(now, |state, now| state.release(self.id, self.by.as_ref(), now));
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
    /// Wakes the alarm task when the alarm moves to an earlier time.
    alarm: Arc<Notify>,
    gone: Notify,
    listener: OnceLock<Listener>,
}

struct Locked<B: Backend> {
    state: State<Arc<B::Instance>, oneshot::Sender<Answer<B>>>,
    /// The task that starts an instance, later the task that watches it.
    tasks: HashMap<u64, AbortHandle>,
    /// Notifies parked leases that they have to make way, by ticket.
    parked: HashMap<u64, Arc<Notify>>,
    /// Whether the alarm task runs.
    ticking: bool,
}

impl<B: Backend> Inner<B> {
    /// Passes an input to the state and executes its actions.
    fn with<T>(
        self: &Arc<Self>,
        tell: impl FnOnce(&mut State<Arc<B::Instance>, oneshot::Sender<Answer<B>>>, Duration) -> T,
    ) -> T {
        self.with_at(Instant::now(), tell)
    }

    /// The same at a moment that is known already.
    fn with_at<T>(
        self: &Arc<Self>,
        now: Instant,
        tell: impl FnOnce(&mut State<Arc<B::Instance>, oneshot::Sender<Answer<B>>>, Duration) -> T,
    ) -> T {
        let now = now.saturating_duration_since(self.epoch);
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
        // Most inputs have none, and an iterator over them has to be dropped.
        if !actions.is_empty() {
            actions.into_iter().for_each(|it| self.act(it));
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
            // If the caller is gone, the send fails and the dropped lease is given back.
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

    /// Stores the task that ends with the instance, unless the instance has ended already.
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
        Lease { inner: self.clone(), instance, id, by, ended: None }
    }

    fn lock(&self) -> MutexGuard<'_, Locked<B>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `tick` when the alarm goes off; ends when no alarm is set.
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

/// What becomes of a want.
pub(crate) enum Leasing<B: Backend> {
    /// It has its lease, or a refusal.
    Done(Answer<B>),
    /// It waits in the queue.
    Waits(Waiting<B>),
}

/// A waiting caller. Dropping it leaves the queue; an answer already sent is dropped with the channel, and its
/// lease is given back.
pub(crate) struct Waiting<B: Backend> {
    inner: Arc<Inner<B>>,
    /// What its instance will be asked to be.
    pub(crate) profile: Profile,
    ticket: Option<u64>,
    answer: oneshot::Receiver<Answer<B>>,
}

impl<B: Backend> Waiting<B> {
    pub(crate) async fn answer(mut self) -> Answer<B> {
        let answered = (&mut self.answer).await;
        self.ticket = None;
        match answered {
            Ok(answer) => answer,
            Err(_) => Err(state::draining(&self.inner.lock().state.plan.name)),
        }
    }
}

impl<B: Backend> Drop for Waiting<B> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.inner.with(|state, now| state.leave(ticket, now));
        }
    }
}

/// The result of the work, or the text of its panic.
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

/// Instance ids, unique across all pools of the process.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A stop that takes longer is no longer waited for.
const STOP_LIMIT: Duration = Duration::from_secs(30);
