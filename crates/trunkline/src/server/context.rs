//! What a handler can do while it runs: report progress, log, ask, notice a cancellation.

mod lazy;

use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use trunkline_auth::Principal;
use trunkline_proto::{Attached, Call, CallKey, Change, HandlerEvent, Peer};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, Implementation, InputRequest, LogLevel, LogMessage,
    Progress,
};
use trunkline_wire::revision::Revision;

use super::ask::{Ask, AskError, AskModel, AskRoots, AskUrl, Key};
use super::rounds::{self, Effect, Notebook};
use super::tasks::TaskAsker;
use super::{Inner, Server};
use crate::form::Form;
use crate::{ToolError, TraceContext, caller};

pub(crate) use lazy::LazyContext;
pub(super) use lazy::MakeContext;

/// The context of one call. Cheap to clone, and usable from tasks that the handler spawns.
/// ```
/// # use trunkline::{Context, Revision, Server, testing::{Transport, run}, tool};
/// let save = async |cx: Context| cx.progress(1.0, 1.0).await;
/// let server = || Server::builder("files", "1.0.0").tool(tool("save", save)).build();
/// run(Revision::LATEST, Transport::Memory, server, async |peer| {
///     peer.call_tool("save", ()).await.unwrap();
///     assert_eq!(peer.progress().len(), 1);
/// });
/// ```
#[derive(Clone)]
pub struct Context(pub(super) Arc<Facts>);

pub(super) struct Facts {
    pub(super) key: CallKey,
    pub(super) revision: Revision,
    pub(super) peer: Arc<Peer>,
    pub(super) meta: Option<Json>,
    pub(super) attached: Attached,
    pub(super) handle: ConversationHandle,
    pub(super) wants_progress: bool,
    pub(super) asker: Asker,
    pub(super) server: Arc<Inner>,
    /// The mounted server that the handler was registered with, if it is a mounted one.
    home: OnceLock<Arc<Inner>>,
    questions: AtomicU32,
    /// The number of questions in flight.
    open: AtomicU32,
    /// The keys of the questions asked so far.
    keys: Mutex<BTreeSet<String>>,
    over: AtomicBool,
    ended: Notify,
}

tokio::task_local! {
    /// The call whose `once` effect is being polled, by the address of its facts.
    static EFFECT_OF: usize;
}

/// How questions reach the client.
pub(super) enum Asker {
    /// As requests on the wire, up to 2025-11-25. The handler runs once.
    Wire(OneRun),
    /// As rounds of one call, from 2026-07-28.
    Rounds(Mutex<Notebook>),
    /// As part of a task's state.
    Task(TaskAsker),
}

/// What is remembered of a handler that runs once.
#[derive(Default)]
pub(super) struct OneRun {
    /// Its effects. Few handlers have any.
    notebook: OnceLock<Box<Mutex<Notebook>>>,
    /// The progress that it has reported.
    reached: Mutex<Option<f64>>,
}

impl OneRun {
    /// Whether `progress` exceeds what was reported. Records it.
    fn is_new_progress(&self, progress: f64) -> bool {
        let mut reached = lock(&self.reached);
        let is_new = reached.is_none_or(|it| progress > it);
        if is_new {
            *reached = Some(progress);
        }
        is_new
    }
}

impl Asker {
    /// The answers and effects of this call so far.
    pub(super) fn notebook(&self) -> &Mutex<Notebook> {
        match self {
            Self::Wire(run) => run.notebook.get_or_init(Box::default),
            Self::Rounds(notebook) => notebook,
            Self::Task(task) => task.notebook(),
        }
    }
}

impl Context {
    pub(super) fn new(
        server: &Arc<Inner>,
        call: &Call,
        handle: &ConversationHandle,
        asker: Asker,
    ) -> Self {
        Self(Arc::new(Facts {
            key: call.key,
            revision: call.revision,
            peer: Arc::clone(&call.peer),
            meta: call.meta.clone(),
            attached: call.attached.clone(),
            handle: handle.clone(),
            wants_progress: call.wants_progress,
            asker,
            server: Arc::clone(server),
            home: OnceLock::new(),
            questions: AtomicU32::new(0),
            open: AtomicU32::new(0),
            keys: Mutex::default(),
            over: AtomicBool::new(false),
            ended: Notify::new(),
        }))
    }

    /// Reports that `done` of `total` is done. It sends nothing if the client did not ask for
    /// progress, and nothing that an earlier run of the handler sent.
    pub async fn progress(&self, done: impl Into<f64>, total: impl Into<f64>) {
        self.report(Progress::new(done).total(total)).await;
    }

    /// Reports progress, with a message if you like.
    pub async fn report(&self, progress: Progress) {
        let is_new = match &self.0.asker {
            Asker::Wire(run) => run.is_new_progress(progress.progress),
            asker => lock(asker.notebook()).is_new_progress(progress.progress),
        };
        if let (true, Asker::Task(task)) = (is_new, &self.0.asker) {
            task.report(&progress);
        }
        // Progress extends the deadline even if the client did not ask for it.
        if is_new {
            self.0.handle.say(self.0.key, HandlerEvent::Progress(progress)).await;
        }
    }

    /// Whether no earlier run of the handler has sent this notification.
    fn is_first_time(&self) -> bool {
        match &self.0.asker {
            Asker::Wire(_) => true,
            asker => lock(asker.notebook()).is_first_time(),
        }
    }

    /// Logs a value to the client, which gets it only if it chose this level.
    pub async fn log(&self, level: LogLevel, data: impl Serialize) {
        let Ok(data) = Json::try_of(&data) else { return };
        self.log_message(LogMessage::new(level, data)).await;
    }

    /// Logs a whole message.
    /// ```
    /// # use trunkline::{*, model::*, testing::*};
    /// async fn save(cx: Context) {
    ///     let warning = LogMessage::text(LogLevel::Warning, "The disk is full.").logger("disk");
    ///     cx.log_message(warning).await;
    /// }
    /// # run(Revision::LATEST, Transport::Memory, || Server::builder("a", "1").tool(tool("save", save)).build(), async |peer| {
    /// #     peer.call_tool("save", ()).await.unwrap(); assert_eq!(peer.logs()[0].logger.as_deref(), Some("disk")); });
    /// ```
    pub async fn log_message(&self, message: LogMessage) {
        if self.is_first_time() {
            self.0.handle.say(self.0.key, HandlerEvent::Log(message)).await;
        }
    }

    /// Asks the user to fill in a form: `T` is a flat struct. The code is the same in every
    /// revision that has questions.
    ///
    /// From 2026-07-28 the server answers a call with the question, and the handler runs again once
    /// the answer arrives. Code before a question may therefore run more than once: keep it free of
    /// effects or put them into [`Self::once`], and let questions depend only on arguments and
    /// earlier answers.
    /// ```
    /// # use trunkline::{*, model::*, testing::*};
    /// async fn book(cx: Context) -> Result<String, ToolError> {
    ///     let nights = cx.ask::<u32>("How many nights?").await?.accepted()?;
    ///     Ok(format!("Booked {nights} nights."))
    /// }
    /// # run(Revision::LATEST, Transport::Memory, || Server::builder("a", "1").tool(tool("book", book)).build(), async |peer| {
    /// #     peer.answers([2]); let booked = peer.call_tool("book", ()).await.unwrap();
    /// #     assert_eq!(booked.content[0].as_text(), Some("Booked 2 nights.")); });
    /// ```
    pub fn ask<T: Form>(&self, message: impl Into<String>) -> Ask<T> {
        Ask::new(self.clone(), message.into())
    }

    /// Asks the user to visit a URL. Use it for anything secret.
    /// ```
    /// # use trunkline::{*, model::*, testing::*};
    /// async fn login(cx: Context) -> Result<&'static str, ToolError> {
    ///     cx.ask_url("Please log in.", "https://example.com/login").await?.accepted()?;
    ///     Ok("Welcome!")
    /// }
    /// # run(Revision::LATEST, Transport::Memory, || Server::builder("a", "1").tool(tool("login", login)).build(), async |peer| {
    /// #     peer.answers([Reply::accept(())]);
    /// #     assert_eq!(peer.call_tool("login", ()).await.unwrap().content[0].as_text(), Some("Welcome!")); });
    /// ```
    pub fn ask_url(&self, message: impl Into<String>, url: impl Into<String>) -> AskUrl {
        AskUrl::new(self.clone(), message.into(), url.into())
    }

    /// Asks the client's model.
    /// ```
    /// # use trunkline::{*, model::*, testing::*};
    /// async fn sum(cx: Context) -> Result<String, ToolError> {
    ///     let params = CreateMessageParams::new(vec![SamplingMessage::user("2 + 2?")], 10);
    ///     Ok(cx.sample(params).await?.text())
    /// }
    /// # run(Revision::LATEST, Transport::Memory, || Server::builder("a", "1").tool(tool("sum", sum)).build(), async |peer| {
    /// #     peer.model(ScriptedModel::new(["Four."]));
    /// #     assert_eq!(peer.call_tool("sum", ()).await.unwrap().content[0].as_text(), Some("Four.")); });
    /// ```
    pub fn sample(&self, question: impl Into<CreateMessageParams>) -> AskModel {
        AskModel::new(self.clone(), question.into())
    }

    /// Asks for the folders that the client's user works in. They are information, not permission.
    pub fn roots(&self) -> AskRoots {
        AskRoots::new(self.clone())
    }

    /// Continues the call as a task where the server decides that: from 2026-07-28, for a client
    /// that has tasks, on a server with some tool that [runs as one](super::ToolEntry::task). The
    /// caller gets the task at once. As with a question, the handler runs again from its beginning
    /// and finds the answers it already has. Elsewhere this does nothing.
    /// ```
    /// # use trunkline::{*, client::ToolCall, model::*}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let render = async |cx: Context| { cx.become_task().await; "A film." };
    /// let render = tool("render", render).task(TaskSupport::Optional);
    /// let client = Client::in_memory(&Server::builder("films", "1").tool(render).build()).await?;
    /// assert!(matches!(client.call_tool_task("render", ()).await?, ToolCall::Task(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn become_task(&self) {
        match &self.0.asker {
            // The dispatcher drops this handler and starts the task. Only tasks that the handler
            // spawned return from this await.
            Asker::Rounds(notebook) if lock(notebook).leave() => self.cancelled().await,
            Asker::Task(task) => task.show(),
            _ => {}
        }
    }

    /// Lets the client disconnect and reconnect after `retry`, for work that takes long enough for
    /// connections to break. It has an effect in 2025-11-25 over HTTP only.
    pub async fn pause_stream(&self, retry: Duration) {
        self.0.handle.say(self.0.key, HandlerEvent::Pause(retry)).await;
    }

    /// Runs an effect once per call, however often the handler runs, and keeps its result. Errors
    /// are not kept. A question that is asked concurrently does not interrupt an effect that has
    /// begun. An effect cannot ask: that is an [`AskError::Invalid`].
    /// ```
    /// # use trunkline::{*, model::*, testing::*};
    /// async fn book(cx: Context) -> Result<String, ToolError> {
    ///     let room = cx.once("room", async || Ok::<_, ToolError>(7)).await?;
    ///     cx.ask::<bool>(format!("Shall it be room {room}?")).await?.accepted()?;
    ///     Ok(format!("Room {room}."))
    /// }
    /// # run(Revision::LATEST, Transport::Memory, || Server::builder("a", "1").tool(tool("book", book)).build(), async |peer| {
    /// #     peer.answers([true]); assert_eq!(peer.call_tool("book", ()).await.unwrap().content[0].as_text(), Some("Room 7."));
    /// # });
    /// ```
    pub async fn once<T, E>(
        &self,
        key: &str,
        effect: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
    {
        let effect = EFFECT_OF.scope(self.address(), effect());
        let notebook = self.0.asker.notebook();
        let _underway = match rounds::begin(notebook, key) {
            Effect::Done(result) => return Ok(result.to()?),
            Effect::Now(underway) => underway,
            Effect::Held => {
                // Only tasks that the handler spawned return from this await.
                self.cancelled().await;
                return Err(ToolError::new("The call is over."));
            }
            Effect::Twice => {
                let why = format!("Two effects called `{key}` happen at once; rename one.");
                return Err(ToolError::new(why));
            }
        };
        let result = effect.await.map_err(Into::into)?;
        lock(notebook).note(key, Json::try_of(&result)?);
        if let Asker::Task(task) = &self.0.asker {
            task.keep().await.map_err(ToolError::rpc)?;
        }
        Ok(result)
    }

    /// Whether the caller has cancelled the call. The handler itself is dropped then; ask this in
    /// tasks that it spawned.
    pub fn is_cancelled(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// Waits until the caller cancels the call or the call is over.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let facts = Arc::clone(&self.0);
        async move {
            let ended = facts.ended.notified();
            if !facts.over.load(Ordering::Acquire) {
                ended.await;
            }
        }
    }

    /// Notifies every listening client that something of this server changed, also those of other
    /// replicas: once per call, however often the handler runs.
    /// ```
    /// # use trunkline::{*, model::*}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let learn = async |cx: Context| cx.changed(Change::Tools).await;
    /// # let client = Client::in_memory(&Server::builder("a", "1").tool(tool("learn", learn)).build()).await?;
    /// let mut listener = client.listen(SubscriptionFilter::new().tools_list_changed(true)).await?;
    /// client.call_tool("learn", ()).await?;
    /// assert_eq!(listener.next().await, Some(Change::Tools));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn changed(&self, change: Change) {
        if self.is_first_time() {
            self.home().tell_everywhere(&change);
        }
    }

    /// The client's name and version. Self-reported: never base a decision on it.
    /// ```
    /// # use trunkline::*; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let who = async |cx: Context| cx.client().map(|it| it.name.clone()).unwrap_or_default();
    /// let server = Server::builder("a", "1").tool(tool("who", who)).build();
    /// let client = Client::builder("example", "1.0.0").connect_memory(&server).await?;
    /// assert_eq!(client.call_tool("who", ()).await?.content[0].as_text(), Some("example"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn client(&self) -> Option<&Implementation> {
        self.0.peer.info.as_ref()
    }

    /// The client's capabilities: what it can be asked.
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.0.peer.client
    }

    /// The authenticated caller, if the transport knows it.
    pub fn principal(&self) -> Option<&Principal> {
        caller::principal(&self.0.attached)
    }

    /// A value that a [layer](crate::layer) of the server, or of the HTTP stack in front of it, put
    /// into the extensions of the call.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        caller::extension(&self.0.attached)
    }

    /// The server that the handler belongs to, for example to add a tool to it. `None` once it is
    /// no longer served.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use trunkline::{Client, Context, Server, ToolError, tool};
    ///
    /// async fn learn(cx: Context) -> Result<(), ToolError> {
    ///     let server = cx.server().ok_or(ToolError::new("The server is gone."))?;
    ///     Ok(server.put_tool(tool("new", async || "I am new."))?)
    /// }
    ///
    /// let server = Server::builder("example", "1.0.0").tool(tool("learn", learn)).build();
    /// let client = Client::in_memory(&server).await?;
    /// client.call_tool("learn", ()).await?;
    /// assert_eq!(client.call::<String>("new", ()).await?, "I am new.");
    /// # Ok(()) }
    /// ```
    pub fn server(&self) -> Option<Server> {
        self.0.server.owner.get()?.upgrade().map(Server)
    }

    /// The value given to [`ServerBuilder::state`](super::ServerBuilder::state).
    /// ```
    /// # use trunkline::*; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let price = async |cx: Context| cx.state::<u32>().map_or(0, |it| *it).to_string();
    /// let server = Server::builder("inn", "1").state(99_u32).tool(tool("price", price)).build();
    /// # let client = Client::in_memory(&server).await?;
    /// assert_eq!(client.call_tool("price", ()).await?.content[0].as_text(), Some("99"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let state = self.home().states.get(&TypeId::of::<T>())?;
        Arc::clone(state).downcast().ok()
    }

    /// The `_meta` of the request, trace context included.
    /// ```
    /// # use trunkline::{*, serde_json::json}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let has = async |cx: Context| cx.meta().is_some_and(|it| it.is_object()).to_string();
    /// # let client = Client::in_memory(&Server::builder("a", "1").tool(tool("has", has)).build()).await?;
    /// let result = client.call_tool("has", ()).meta("com.example/tenant", json!("blue")).await?;
    /// assert_eq!(result.content[0].as_text(), Some("true"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn meta(&self) -> Option<&Json> {
        self.0.meta.as_ref()
    }

    /// The W3C trace context of the call; empty if the caller sent none.
    ///
    /// ```
    /// # use trunkline::{Context, tool};
    /// async fn traced(cx: Context) -> String {
    ///     cx.trace().trace_id().unwrap_or_else(|| "No trace.".to_owned())
    /// }
    /// # let _ = tool("traced", traced);
    /// ```
    pub fn trace(&self) -> TraceContext {
        TraceContext::of_meta(self.0.meta.as_ref())
    }

    /// Whether the client asked for progress.
    pub fn wants_progress(&self) -> bool {
        self.0.wants_progress
    }

    /// The revision of this call. For logs; a handler need not know.
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// The key of the next question, by its position in the handler.
    pub(super) fn next_question(&self) -> Key {
        let text = format!("q{}", self.0.questions.fetch_add(1, Ordering::Relaxed) + 1);
        Key { text, is_chosen: false }
    }

    /// Registers a question. A key names one question, because its answer is found by the key.
    pub(super) fn claim(&self, key: &str) -> Result<(), AskError> {
        if EFFECT_OF.try_with(|it| *it == self.address()).unwrap_or(false) {
            let why = "it is asked inside `Context::once`. Ask before the effect, or after it.";
            return Err(AskError::Invalid(why.to_owned()));
        }
        if !lock(&self.0.keys).insert(key.to_owned()) {
            return Err(AskError::Invalid(format!("two questions have the key `{key}`.")));
        }
        Ok(())
    }

    /// Sets the mounted server that the handler belongs to.
    fn set_home(&self, home: &Arc<Inner>) {
        let _ = self.0.home.set(Arc::clone(home));
    }

    fn home(&self) -> &Arc<Inner> {
        self.0.home.get().unwrap_or(&self.0.server)
    }

    /// Stops the handler's own clock until the guard is dropped, while a person has to answer.
    pub(super) fn wait_for_people(&self) -> impl Drop + use<> {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(&self.0))
    }

    /// Whether a question is in flight.
    pub(super) fn is_asking(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > 0
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    pub(super) fn end(&self) {
        // Nobody else has the context, so nobody could notice.
        if Arc::strong_count(&self.0) == 1 {
            return;
        }
        self.0.over.store(true, Ordering::Release);
        self.0.ended.notify_waiters();
    }

    /// What 2026-07-28 answers when the client cannot be asked this.
    pub(super) fn refusal(&self, request: &InputRequest) -> Option<ErrorObject> {
        trunkline_proto::input_required::missing_capability(request, &self.0.peer.client)
    }
}

struct Open(Arc<Facts>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("call", &self.0.key).finish_non_exhaustive()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
