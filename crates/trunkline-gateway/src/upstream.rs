//! A server of the catalog → an open connection to one instance of it: a process with its pipes, or
//! a session at a URL.

mod opening;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OnceCell, oneshot, watch};
use tokio::time::{Instant, timeout};
use trunkline_proto::client::Opened;
use trunkline_proto::{CallError, Timing};
use trunkline_transport::child::{Child, Exit, Stderr};
use trunkline_transport::connection::Connection;
use trunkline_transport::conversation_handle::{ConversationHandle, Request};
use trunkline_transport::limits::Limits;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::{LogLevel, SubscriptionFilter};
use trunkline_wire::revision::Era;

use crate::catalog::plan::ServerPlan;
use crate::compared::ComparedLists;
use crate::failure::{Failure, Reason, Stage};
use crate::merge::Kind;
use crate::news::{Told, announced_by};
use crate::policy::redact::Redactor;
use crate::pool::{Backend, Profile};
use crate::question_router::{OpenLine, QuestionRouter};
use crate::upstream_call::UpstreamCallContext;
use crate::watcher::Watcher;
use opening::Opening;

/// How instances of one server come to be.
pub(crate) struct Upstream {
    plan: Mutex<Arc<ServerPlan>>,
    watcher: Weak<dyn Watcher>,
    redactor: Arc<Redactor>,
    /// The processes that run, by the numbers of their instances.
    pids: Pids,
    /// Whether it was asked to speak the old era and would not.
    lacks_old: Arc<AtomicBool>,
}

type Pids = Arc<Mutex<HashMap<u64, u32>>>;

/// One instance.
pub(crate) struct Instance {
    pub(crate) id: u64,
    pub(crate) server: Arc<str>,
    /// With whose login it was opened, where each principal has its own.
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) opened: Arc<Opened>,
    /// Which of its lists were compared with the pins.
    pub(crate) compared: ComparedLists,
    /// When it could first be asked for them, and what they were when it last announced a change.
    began: Instant,
    told: Mutex<Option<Told>>,
    connection: Connection,
    switch: Arc<QuestionRouter>,
    process: Option<Process>,
    /// Whether it knows the roots that it asks for as it starts; `None` where it cannot ask.
    has_roots: Option<OnceCell<()>>,
    /// The log level that the server was set to, by its place in the list of levels; beyond them before.
    level: AtomicU8,
    redactor: Arc<Redactor>,
}

/// The process of an instance, looked after by a task of its own.
struct Process {
    exit: watch::Receiver<Option<Exit>>,
    stderr: Stderr,
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl Upstream {
    pub(crate) fn new(
        plan: Arc<ServerPlan>,
        watcher: Weak<dyn Watcher>,
        redactor: Arc<Redactor>,
    ) -> Arc<Self> {
        let (pids, lacks_old) = (Pids::default(), Arc::default());
        Arc::new(Self { plan: Mutex::new(plan), watcher, redactor, pids, lacks_old })
    }

    /// From the next start on, this is what is started.
    pub(crate) fn reconfigure(&self, plan: Arc<ServerPlan>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        self.lacks_old.store(false, Ordering::Relaxed);
    }

    /// Whether it is known not to speak the old era.
    pub(crate) fn lacks_old(&self) -> bool {
        self.lacks_old.load(Ordering::Relaxed)
    }

    /// The process of an instance.
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
        let opening = self.opening(id, profile, owner);
        Box::pin(async move {
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
    /// Keeps the child until it ends or should.
    fn keep(mut child: Child, instance: u64, pids: Pids) -> Self {
        let stderr = child.stderr().clone();
        pids.lock().unwrap_or_else(PoisonError::into_inner).insert(instance, child.id());
        let (stop, mut stopped) = oneshot::channel();
        let (tell, exit) = watch::channel(None);
        tokio::spawn(async move {
            let ended = tokio::select! {
                exit = child.exited() => Some(exit),
                // Also when the instance is dropped.
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
    /// Notes what it lists now. Says which lists that changes, as [`Told::changes`] sees it.
    pub(crate) fn tells(&self, told: Told, known: Option<&Told>, unlisted: &[Kind]) -> Vec<Kind> {
        let mut last = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = told.changes(self.began.elapsed(), last.as_ref(), known, unlisted);
        *last = Some(told);
        changes
    }

    /// Whether it may say later that its lists changed.
    pub(crate) fn may_announce(&self) -> bool {
        announced_by(&self.opened.capabilities) != SubscriptionFilter::new()
    }

    /// Makes a call here on somebody's behalf.
    pub(crate) fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<trunkline_wire::json::Json, CallError>> + Send + use<> {
        self.connection.call(request)
    }

    /// Makes a call here once the server knows the roots of whoever calls: one that asks for them as it
    /// starts would do its first call without.
    pub(crate) async fn call_with_roots(
        self: Arc<Self>,
        request: Request,
    ) -> Result<trunkline_wire::json::Json, CallError> {
        if let Some(has_roots) = &self.has_roots {
            // A caller that was asked for them and does not come back holds up nobody else for long.
            let _ = timeout(SETTLED, has_roots.get_or_init(|| self.settle())).await;
        }
        self.connection.call(request).await
    }

    /// Whether a call has to wait for that.
    pub(crate) fn lacks_roots(&self) -> bool {
        self.has_roots.as_ref().is_some_and(|it| !it.initialized())
    }

    /// A server asks before it answers what comes after the handshake. Nothing says when it has made use of
    /// the answer.
    async fn settle(&self) {
        if self.switch.was_told_none() {
            self.roots_changed().await;
        }
        // Whatever comes of it: it is about the order alone.
        let _ = timeout(ROUND_TRIP, self.probe()).await;
        if self.switch.has_roots().await {
            let _ = timeout(ROUND_TRIP, self.probe()).await;
            tokio::time::sleep(DIGESTION).await;
        }
        self.switch.settled();
    }

    /// Has it ask for the roots again.
    async fn roots_changed(&self) {
        let voice = self.connection.handle();
        voice.notify(Method::RootsListChanged, Object::default()).await;
    }

    /// A session has other roots now.
    pub(crate) fn has_other_roots(self: &Arc<Self>, session: u64) {
        if self.has_roots.is_some() && self.switch.keeps_roots_of(session) {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.roots_changed().await });
        }
    }

    /// Opens a line for as long as the guard lives.
    pub(crate) fn open_line(&self, line: &Arc<UpstreamCallContext>) -> OpenLine {
        self.switch.open_line(line)
    }

    /// Somebody is to hear when a page was visited.
    pub(crate) fn will_complete(&self, id: String, voice: &ConversationHandle) {
        self.switch.will_complete(id, voice);
    }

    /// What the server has to be set to for a caller to hear what it wants to, if it logs less than that.
    /// A session that has said nothing hears what the server decides, which is everything in the SDKs, unless
    /// another one has set it to less.
    pub(crate) fn is_too_quiet(
        &self,
        level: Option<LogLevel>,
        has_session: bool,
    ) -> Option<LogLevel> {
        let set_to = self.level.load(Ordering::Relaxed);
        let wanted = match level {
            // Others who share it may want to hear more than one who wants errors alone.
            Some(level) => level.min(LogLevel::Info),
            None if has_session && set_to != u8::MAX => LogLevel::Debug,
            None => return None,
        };
        ((wanted as u8) < set_to).then_some(wanted)
    }

    /// Has the server log as much as a caller wants to hear, if it would say less.
    pub(crate) async fn hear(&self, level: LogLevel) {
        let is_old = self.opened.revision.era() == Era::Stateful;
        if !is_old || !self.opened.capabilities.logging {
            return;
        }
        if self.level.fetch_min(level as u8, Ordering::Relaxed) <= level as u8 {
            return;
        }
        let mut params = Object::default();
        params.set("level", trunkline_wire::json::Json::of(&level));
        // A server that does not take it says what it says.
        let _ = self.call(Request::new(Method::LoggingSetLevel, params)).await;
    }

    /// The last words of its process.
    pub(crate) fn stderr(&self) -> Vec<String> {
        self.process.as_ref().map(|it| redacted(&self.redactor, &it.stderr)).unwrap_or_default()
    }

    /// Ready when it is over with it.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.connection.ended()
    }

    /// Whether no call can be made here any more.
    pub(crate) fn is_over(&self) -> bool {
        self.connection.is_closed()
    }

    /// What is known of its end, once the connection is over.
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

    /// Whether it answers. What is asked depends on what its revision has.
    async fn probe(&self) -> Result<(), String> {
        let request = match self.opened.revision.era() {
            Era::Stateful => Request::new(Method::Ping, Object::default()),
            Era::Stateless => Request::new(Method::ServerDiscover, Object::default()),
        };
        match self.call(request).await {
            // Whoever refuses has heard.
            Ok(_) | Err(CallError::Peer(_) | CallError::Refused(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The last words of a process, without secrets.
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

/// How long calls at a server may take.
pub(crate) fn timing(plan: &ServerPlan) -> Timing {
    Timing { idle: plan.timeouts.call, hard: plan.timeouts.hard }
}

/// How long a connection to a server over HTTP is kept. Node and uvicorn close theirs after 5 s, and a call
/// that is written just then may have been read or not.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// How long a server may take to show that it has read what it was sent.
const ROUND_TRIP: Duration = Duration::from_secs(2);
/// How long a call waits for the roots that another was asked for.
const SETTLED: Duration = Duration::from_secs(5);
/// How long a server has to make use of the roots that it was told.
const DIGESTION: Duration = Duration::from_millis(20);
/// How long the last words of a process are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
