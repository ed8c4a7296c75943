//! Turns a server of the catalog into an open connection to one instance: a process with its pipes, or a
//! session at a URL.

mod opening;
mod watched_login;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OnceCell, oneshot, watch};
use tokio::time::{Instant, timeout};
use trunkline_proto::client::Opened;
use trunkline_proto::{CallError, Timing};
use trunkline_transport::child::{Child, Exit, Stderr};
use trunkline_transport::connection::Connection;
use trunkline_transport::conversation_handle::{ConversationHandle, Request};
use trunkline_transport::http::SharedSessions;
use trunkline_transport::http::replicas::Peer;
use trunkline_transport::limits::Limits;
use trunkline_transport::witness::Witness;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::{LogLevel, SubscriptionFilter};
use trunkline_wire::revision::Era;

use crate::catalog::plan::ServerPlan;
use crate::compared::ComparedLists;
use crate::failure::{Failure, Reason, Stage};
use crate::list_changes::{Told, announced_by};
use crate::merge::Kind;
use crate::policy::redact::Redactor;
use crate::pool::{Backend, Profile};
use crate::question_router::{OpenCall, QuestionRouter};
use crate::upstream_call::UpstreamCallContext;
use crate::watcher::Watcher;
use opening::Opening;

/// Starts and stops instances of one server.
pub(crate) struct Upstream {
    plan: Mutex<Arc<ServerPlan>>,
    watcher: Weak<dyn Watcher>,
    redactor: Arc<Redactor>,
    /// The running processes by instance id.
    pids: Pids,
    /// Whether the server refused to speak the stateful era.
    lacks_old: Arc<AtomicBool>,
    /// Set if the instances are those of another replica.
    way: Option<Arc<Way>>,
    /// Takes a place for an instance, where they are counted over all replicas.
    admission: OnceLock<Admission>,
}

/// Admits an instance to the number that all replicas may have. What it returns is dropped with the instance.
pub(crate) type Admission = Box<dyn Fn(Arc<ServerPlan>) -> Admitted + Send + Sync>;
type Admitted = Pin<Box<dyn Future<Output = Result<Option<Guard>, Failure>> + Send>>;
/// The place of an instance.
pub(crate) type Guard = Box<dyn std::any::Any + Send + Sync>;

/// The way to the instances of another replica.
pub(crate) struct Way {
    pub(crate) peer: Peer,
    pub(crate) sessions: Arc<SharedSessions>,
}

type Pids = Arc<Mutex<HashMap<u64, u32>>>;

/// One instance.
pub(crate) struct Instance {
    pub(crate) id: u64,
    pub(crate) server: Arc<str>,
    /// The principal whose login the instance uses (`auth.perUser`).
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) opened: Arc<Opened>,
    /// The replica at which it lives, if that is another.
    pub(crate) peer: Option<Arc<str>>,
    /// Which of its lists were compared with the pins.
    pub(crate) compared: ComparedLists,
    /// When the instance started, and what it listed when it last announced a change.
    began: Instant,
    told: Mutex<Option<Told>>,
    connection: Connection,
    router: Arc<QuestionRouter>,
    process: Option<Process>,
    /// Set once the server knows the roots; `None` if the server cannot ask for them.
    has_roots: Option<OnceCell<()>>,
    /// The log level that the server was set to, as an index into the levels; `u8::MAX` before.
    level: AtomicU8,
    redactor: Arc<Redactor>,
    /// Its place among those of all replicas.
    _place: Option<Guard>,
}

/// The process of an instance, owned by a task.
struct Process {
    exit: watch::Receiver<Option<Exit>>,
    stderr: Stderr,
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl Upstream {
    /// The instances of a server: its own, or with a `way` those at another replica. The plan says how they are
    /// reached.
    pub(crate) fn new(
        plan: Arc<ServerPlan>,
        watcher: Weak<dyn Watcher>,
        redactor: Arc<Redactor>,
        way: Option<Way>,
    ) -> Arc<Self> {
        let (pids, lacks_old, way) = (Pids::default(), Arc::default(), way.map(Arc::new));
        let admission = OnceLock::new();
        Arc::new(Self {
            plan: Mutex::new(plan),
            watcher,
            redactor,
            pids,
            lacks_old,
            way,
            admission,
        })
    }

    /// From now on every start takes a place.
    pub(crate) fn admitted_by(&self, admission: Admission) {
        // It is told once, before the first start.
        let _ = self.admission.set(admission);
    }

    /// Takes a new plan for the next start.
    pub(crate) fn reconfigure(&self, plan: Arc<ServerPlan>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        self.lacks_old.store(false, Ordering::Relaxed);
    }

    /// Whether the server is known not to speak the stateful era.
    pub(crate) fn lacks_old(&self) -> bool {
        self.lacks_old.load(Ordering::Relaxed)
    }

    /// The process id of an instance.
    pub(crate) fn pid(&self, instance: u64) -> Option<u32> {
        self.pids.lock().unwrap_or_else(PoisonError::into_inner).get(&instance).copied()
    }

    fn plan(&self) -> Arc<ServerPlan> {
        Arc::clone(&self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn opening(&self, id: u64, profile: Profile, owner: Option<Arc<str>>) -> Opening {
        let plan = self.plan();
        Opening {
            id,
            profile,
            owner,
            server: Arc::from(plan.name.as_str()),
            limits: limits(&plan),
            plan,
            watcher: Weak::clone(&self.watcher),
            redactor: Arc::clone(&self.redactor),
            pids: Arc::clone(&self.pids),
            lacks_old: Arc::clone(&self.lacks_old),
            way: self.way.clone(),
            place: Mutex::default(),
        }
    }
}

impl Backend for Upstream {
    type Instance = Instance;

    fn start(
        &self,
        id: u64,
        profile: Profile,
        owner: Option<Arc<str>>,
    ) -> Pin<Box<dyn Future<Output = Result<Instance, Failure>> + Send>> {
        let mut opening = self.opening(id, profile, owner);
        let admitted = self.admission.get().map(|it| it(Arc::clone(&opening.plan)));
        Box::pin(async move {
            if let Some(admitted) = admitted {
                opening.place = Mutex::new(admitted.await?);
            }
            let within = opening.plan.timeouts.start;
            match timeout(within, opening.open()).await {
                Ok(outcome) => outcome,
                Err(_) => Err(Failure::new(
                    Reason::StartTimeout,
                    Stage::Handshake,
                    format!("`{}` did not start within {within:?}.", opening.server),
                )
                .of(&opening.server)
                .advice("Raise `timeouts.startSeconds`, or look at `trunkline doctor`.")),
            }
        })
    }

    fn stop(&self, instance: Arc<Instance>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { instance.stop().await })
    }

    fn probe(
        &self,
        instance: Arc<Instance>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(async move { instance.probe().await })
    }

    fn ended(&self, instance: Arc<Instance>) -> Pin<Box<dyn Future<Output = Failure> + Send>> {
        let over = instance.connection.ended();
        Box::pin(async move {
            over.await;
            instance.gone().await
        })
    }
}

impl Process {
    /// Owns the child until it exits or has to stop.
    fn keep(mut child: Child, instance: u64, pids: Pids) -> Self {
        let stderr = child.stderr().clone();
        pids.lock().unwrap_or_else(PoisonError::into_inner).insert(instance, child.id());
        let (stop, mut stopped) = oneshot::channel();
        let (tell, exit) = watch::channel(None);
        tokio::spawn(async move {
            let ended = tokio::select! {
                exit = child.exited() => Some(exit),
                // This also fires when the instance is dropped.
                _ = &mut stopped => None,
            };
            let exit = match ended {
                Some(exit) => exit,
                None => child.stop().await,
            };
            pids.lock().unwrap_or_else(PoisonError::into_inner).remove(&instance);
            tell.send_replace(Some(exit));
        });
        Self { exit, stderr, stop: Mutex::new(Some(stop)) }
    }
}

impl Instance {
    /// Stores what the instance lists now. Returns the lists that changed, by [`Told::changes`].
    pub(crate) fn store_lists(
        &self,
        told: Told,
        known: Option<&Told>,
        unlisted: &[Kind],
    ) -> Vec<Kind> {
        let mut last = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = told.changes(self.began.elapsed(), last.as_ref(), known, unlisted);
        *last = Some(told);
        changes
    }

    /// Whether the instance started after this moment.
    pub(crate) fn is_newer(&self, moment: std::time::Instant) -> bool {
        self.began.into_std() > moment
    }

    /// Whether the instance may send `list_changed` notifications.
    pub(crate) fn may_announce(&self) -> bool {
        announced_by(&self.opened.capabilities) != SubscriptionFilter::new()
    }

    /// From now on what is said to it is seen, unless it has been all along.
    pub(crate) fn is_seen_by(&self, make: impl FnOnce() -> Arc<dyn Witness>) {
        let handle = self.connection.handle();
        if !handle.has_witness() {
            handle.set_witness(make());
        }
    }

    /// Makes a call at this instance.
    pub(crate) fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<trunkline_wire::json::Json, CallError>> + Send + use<> {
        self.connection.call(request)
    }

    /// Makes a call once the server knows the caller's roots. A server that asks for roots as it starts would
    /// run its first call without them.
    pub(crate) async fn call_with_roots(
        self: Arc<Self>,
        request: Request,
    ) -> Result<trunkline_wire::json::Json, CallError> {
        if let Some(has_roots) = &self.has_roots {
            // If the caller asked for roots never answers, other callers wait only this long.
            let _ = timeout(SETTLED, has_roots.get_or_init(|| self.settle())).await;
        }
        self.connection.call(request).await
    }

    /// Whether a call has to wait for the roots.
    pub(crate) fn lacks_roots(&self) -> bool {
        self.has_roots.as_ref().is_some_and(|it| !it.initialized())
    }

    /// Servers send `roots/list` before they answer the first request after the handshake, so a probe's answer
    /// shows that they asked. Nothing shows when they have used the answer.
    async fn settle(&self) {
        if self.router.was_told_none() {
            self.roots_changed().await;
        }
        // The result does not matter: the probe only orders the messages.
        let _ = timeout(ROUND_TRIP, self.probe()).await;
        if self.router.has_roots().await {
            let _ = timeout(ROUND_TRIP, self.probe()).await;
            tokio::time::sleep(DIGESTION).await;
        }
        self.router.settled();
    }

    /// Makes the server ask for the roots again.
    async fn roots_changed(&self) {
        let handle = self.connection.handle();
        handle.notify(Method::RootsListChanged, Object::default()).await;
    }

    /// The roots of a session changed.
    pub(crate) fn has_other_roots(self: &Arc<Self>, session: u64) {
        if self.has_roots.is_some() && self.router.keeps_roots_of(session) {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.roots_changed().await });
        }
    }

    /// Registers a call as open for as long as the guard lives.
    pub(crate) fn open_call(&self, context: Arc<UpstreamCallContext>) -> OpenCall {
        self.router.open_call(context)
    }

    /// Remembers whom to notify when a URL elicitation completes.
    pub(crate) fn will_complete(&self, id: String, handle: &ConversationHandle) {
        self.router.will_complete(id, handle);
    }

    /// The level that the server must be set to for this caller's logs, if it logs less now. A session that
    /// never set a level gets what the server sends by default, which the SDKs make everything, unless another
    /// session lowered the level.
    pub(crate) fn log_level_to_set(
        &self,
        level: Option<LogLevel>,
        has_session: bool,
    ) -> Option<LogLevel> {
        let set_to = self.level.load(Ordering::Relaxed);
        let wanted = match level {
            // Callers that share the instance may want more than errors.
            Some(level) => level.min(LogLevel::Info),
            None if has_session && set_to != u8::MAX => LogLevel::Debug,
            None => return None,
        };
        ((wanted as u8) < set_to).then_some(wanted)
    }

    /// Raises the server's log level to what a caller wants.
    pub(crate) async fn raise_log_level(&self, level: LogLevel) {
        let is_old = self.opened.revision.era() == Era::Stateful;
        if !is_old || !self.opened.capabilities.logging {
            return;
        }
        if self.level.fetch_min(level as u8, Ordering::Relaxed) <= level as u8 {
            return;
        }
        let mut params = Object::default();
        params.set("level", trunkline_wire::json::Json::of(&level));
        // If the server rejects the level, it keeps its own.
        let _ = self.call(Request::new(Method::LoggingSetLevel, params)).await;
    }

    /// The last lines of the process's stderr.
    pub(crate) fn stderr(&self) -> Vec<String> {
        self.process.as_ref().map(|it| redacted(&self.redactor, &it.stderr)).unwrap_or_default()
    }

    /// Completes when the instance has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.connection.ended()
    }

    /// Whether the connection is closed.
    pub(crate) fn is_over(&self) -> bool {
        self.connection.is_closed()
    }

    /// Why the instance ended; waits for the end of the connection.
    pub(crate) async fn gone(&self) -> Failure {
        let mut failure = Failure::new(
            Reason::InstanceEnded,
            Stage::Call,
            format!("An instance of `{}` ended.", self.server),
        )
        .of(&self.server);
        failure.instance = Some(self.id);
        if let Some(process) = &self.process {
            let mut exit = process.exit.clone();
            let ended = timeout(LAST_WORDS, exit.wait_for(Option::is_some)).await;
            failure.exit =
                ended.ok().and_then(Result::ok).and_then(|it| *it).map(|it| it.to_string());
            failure.stderr = self.stderr();
        }
        failure
    }

    async fn stop(&self) {
        self.connection.handle().close();
        let Some(process) = &self.process else { return };
        drop(process.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut exit = process.exit.clone();
        let _ = exit.wait_for(Option::is_some).await;
    }

    /// Health probe: a request that the server's revision has.
    async fn probe(&self) -> Result<(), String> {
        let request = match self.opened.revision.era() {
            Era::Stateful => Request::new(Method::Ping, Object::default()),
            Era::Stateless => Request::new(Method::ServerDiscover, Object::default()),
        };
        match self.call(request).await {
            // A refusal is an answer too.
            Ok(_) | Err(CallError::Peer(_) | CallError::Refused(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The last lines of stderr, redacted.
fn redacted(redactor: &Redactor, stderr: &Stderr) -> Vec<String> {
    stderr.lines().iter().map(|it| redactor.redact(it).into_owned()).collect()
}

/// The limits of a connection to a server.
fn limits(plan: &ServerPlan) -> Limits {
    Limits::default()
        .in_flight(plan.max_concurrent.max(64))
        .call_deadline(plan.timeouts.call)
        .hard_deadline(plan.timeouts.hard)
        .init_deadline(plan.timeouts.start)
        .idle_connection(IDLE_CONNECTION)
        .requests(plan.max_concurrent.max(64))
}

/// The deadlines of calls at a server.
pub(crate) fn timing(plan: &ServerPlan) -> Timing {
    Timing { idle: plan.timeouts.call, hard: plan.timeouts.hard }
}

/// Keep-alive of idle HTTP connections. Node and uvicorn close theirs after 5 s, and a call written at that
/// moment may or may not have been read.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// How long a server may take to prove that it has read a message.
const ROUND_TRIP: Duration = Duration::from_secs(2);
/// How long a call waits for the roots that another caller was asked for.
const SETTLED: Duration = Duration::from_secs(5);
/// How long a server gets to use new roots.
const DIGESTION: Duration = Duration::from_millis(20);
/// How long to wait for the rest of a process's stderr.
const LAST_WORDS: Duration = Duration::from_millis(500);
