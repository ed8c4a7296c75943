//! A remote server → a local one that offers the same: calls go there, and what changes there
//! changes here.

mod entries;
mod relay;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use trunkline_proto::{Attached, Change};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{
    CompleteParams, Completion, ListChanged, Progress, ResourcesCapability, ServerCapabilities,
    ServerTasks, SubscriptionFilter, TASKS_EXTENSION,
};

use super::{Context, Inner, Server};
use crate::ToolError;
use crate::client::{Call, CallError, Client, ClientBuilder, ConnectError, Listener, Running};
use relay::Switchboard;

pub use relay::Relay;

/// A server that offers the tools, prompts and resources of a remote one, to be mounted or served.
///
/// Progress, cancellation and `_meta` with its trace context are passed on. Results and JSON-RPC
/// errors come back as they are; where the remote server cannot be reached, the caller reads so.
/// When the lists of the remote server change, so do these.
///
/// What the remote server asks is answered by the client's own
/// [`Responder`](crate::client::Responder); [`relay`] asks the caller instead. Resources that are
/// not listed cannot be read, changes of single resources are not told, and skills are only
/// resources here.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use trunkline::server::proxy;
/// use trunkline::{Client, Server, tool};
///
/// # let remote = Server::builder("crm", "2.0.0").tool(tool("find", async || "Ada")).build();
/// let client = Client::in_memory(&remote).await?; // or over HTTP, or a child process
/// let server = Server::builder("office", "1.0.0").mount("crm", proxy(client).await?).build();
///
/// let client = Client::in_memory(&server).await?;
/// assert_eq!(client.call_tool("crm.find", ()).await?.content[0].as_text(), Some("Ada"));
/// # Ok(())
/// # }
/// ```
pub async fn proxy(client: Client) -> Result<Server, ProxyError> {
    Remote { client, board: None }.into_server().await
}

/// Like [`proxy`], but what the remote server asks is asked of whoever calls the local one: the
/// user, the model and the roots are the caller's, in whatever revision either side speaks.
///
/// `connect` is given the builder with a [`Relay`] as its responder.
///
/// From 2026-07-28 on the caller makes its call again with the answer. The call of the remote
/// server is kept open meanwhile, for at most ten minutes, in this process: replicas need to send a
/// caller to the same one. A caller that lacks what the remote server asks for makes the question
/// fail, as if nobody had been there to ask.
///
/// From 2026-07-28 on the remote server says which call its question belongs to, and any number of
/// callers share the connection. A server of an earlier revision does not say it, and may ask after
/// a call is over: its questions reach a caller for as long as nobody else has made a call through
/// this connection. From the second caller on they are all refused, with an internal error
/// `several_callers`; those who serve many people make one connection for each of them. A caller is
/// a [`Principal`](crate::Principal), or else whoever speaks in one conversation: over HTTP
/// that is a session, and from 2026-07-28 on a single request.
///
/// A caller who is asked and does not come back is waited for until their connection ends, where
/// they have a lasting one. Of those who leave many questions open the oldest are given up.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use trunkline::client::{Client, Command};
/// use trunkline::server::relay;
/// use trunkline::Server;
///
/// let crm = relay(Client::builder("office", "1.0.0"), |it| it.connect(Command::new("crm"))).await?;
/// Server::builder("office", "1.0.0").mount("crm", crm).build().serve_stdio().await?;
/// # Ok(())
/// # }
/// ```
pub async fn relay<F>(
    builder: ClientBuilder,
    connect: impl FnOnce(ClientBuilder<Relay>) -> F,
) -> Result<Server, ProxyError>
where
    F: Future<Output = Result<Client, ConnectError>>,
{
    let board = Arc::new(Switchboard::default());
    let builder = builder.responder(Relay::new(&board));
    let client = connect(builder).await.map_err(ProxyError::Connect)?;
    Remote { client, board: Some(board) }.into_server().await
}

/// Why a remote server cannot be offered.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use trunkline::Client;
/// use trunkline::client::Command;
/// use trunkline::server::{ProxyError, relay};
///
/// let crm = relay(Client::builder("office", "1.0.0"), |it| it.connect(Command::new("no-such-crm")));
/// assert!(matches!(crm.await, Err(ProxyError::Connect(_))));
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ProxyError {
    /// It could not be reached.
    Connect(ConnectError),
    /// It did not say what it offers.
    List(CallError),
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::List(error) => write!(f, "The server did not say what it offers. {error}"),
        }
    }
}

impl std::error::Error for ProxyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connect(error) => Some(error),
            Self::List(error) => Some(error),
        }
    }
}

/// Completes an argument elsewhere.
pub(crate) type Completer = Arc<dyn Fn(CompleteParams) -> Completing + Send + Sync>;
pub(super) type Completing = Pin<Box<dyn Future<Output = Result<Completion, ErrorObject>> + Send>>;

/// A remote server.
struct Remote {
    client: Client,
    /// Where its questions are put through to callers, if they are.
    board: Option<Arc<Switchboard>>,
}

/// What the local server holds on to among its states.
#[derive(Default)]
struct Watch(OnceLock<AbortHandle>);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(watcher) = self.0.get() {
            watcher.abort();
        }
    }
}

impl Remote {
    async fn into_server(self) -> Result<Server, ProxyError> {
        let remote = Arc::new(self);
        let watch = Arc::new(Watch::default());
        let info = remote.client.server_info().cloned().unwrap_or_default();
        let mut builder = Server::builder(info.name, info.version).shared_state(Arc::clone(&watch));
        builder.also = remote.capabilities();
        if let Some(title) = info.title {
            builder = builder.title(title);
        }
        if let Some(instructions) = remote.client.instructions() {
            builder = builder.instructions(instructions);
        }
        let server = builder.build();
        // First of all, so that no change falls in between.
        let listener = remote.listen().await;
        for list in [Change::Tools, Change::Prompts, Change::Resources] {
            remote.refresh(server.inner(), &list).await.map_err(ProxyError::List)?;
        }
        if let Some(listener) = listener {
            let watcher = watch_lists(remote, Arc::downgrade(server.inner()), listener);
            let _ = watch.0.set(tokio::spawn(watcher).abort_handle());
        }
        Ok(server)
    }

    /// What the local server declares: what the remote one has and can be had through it.
    fn capabilities(&self) -> ServerCapabilities {
        let theirs = self.client.server_capabilities();
        let mut caps = ServerCapabilities::default();
        caps.tools = theirs.tools.map(|_| ListChanged::new(true));
        caps.prompts = theirs.prompts.map(|_| ListChanged::new(true));
        caps.resources = theirs.resources.map(|_| {
            let mut resources = ResourcesCapability::new();
            resources.list_changed = true;
            resources
        });
        caps.completions = theirs.completions;
        if self.client.has_tasks() {
            caps.tasks = Some(ServerTasks::ALL);
            caps.extensions.insert(TASKS_EXTENSION.to_owned(), Json::empty_object());
        }
        caps
    }

    /// Hears of changes, if the remote server tells any.
    async fn listen(&self) -> Option<Listener> {
        let caps = self.client.server_capabilities();
        let tells = |list: Option<ListChanged>| list.is_some_and(|it| it.list_changed);
        let resources = caps.resources.is_some_and(|it| it.list_changed);
        if !tells(caps.tools) && !tells(caps.prompts) && !resources {
            return None;
        }
        let filter = SubscriptionFilter::new()
            .tools_list_changed(tells(caps.tools))
            .prompts_list_changed(tells(caps.prompts))
            .resources_list_changed(resources);
        let listener = self.client.listen(filter).await;
        listener.inspect_err(|error| tracing::warn!(%error, "changes will not be heard of")).ok()
    }

    /// Makes a call on behalf of a local one.
    async fn forward<T: Send + 'static>(
        &self,
        cx: &Context,
        mut call: Call<T>,
    ) -> Result<T, ToolError> {
        for (name, value) in passed_on(cx.meta()).iter() {
            call = call.meta(name, value.clone());
        }
        let begin = |attached| match self.client.is_closed() {
            true => Err(told_of(CallError::Unreachable("The connection is closed.".to_owned()))),
            false => Ok(Going::new(call.attach(attached))),
        };
        if let Some(board) = &self.board {
            return board.attend(cx, begin).await?.map_err(told_of);
        }
        let mut going = begin(Attached::default())?;
        loop {
            match going.next().await {
                Ok(step) => cx.report(step).await,
                Err(outcome) => return outcome.map_err(told_of),
            }
        }
    }
}

/// A remote call under way.
struct Going<T> {
    running: Running<T>,
    told: mpsc::Receiver<Progress>,
    outcome: Option<Result<T, CallError>>,
}

impl<T> Going<T> {
    fn new(call: Call<T>) -> Self
    where
        T: 'static,
    {
        // Always: progress that nobody wants here is still a sign of life.
        let (tell, told) = mpsc::channel(PROGRESS_QUEUE);
        let call = call.on_progress(move |step| drop(tell.try_send(step)));
        Self { running: call.into_future(), told, outcome: None }
    }

    /// The next step; or the outcome, after the last step.
    async fn next(&mut self) -> Result<Progress, Result<T, CallError>> {
        poll_fn(|cx| {
            if self.outcome.is_none()
                && let Poll::Ready(outcome) = self.running.as_mut().poll(cx)
            {
                self.outcome = Some(outcome);
            }
            if let Poll::Ready(Some(step)) = self.told.poll_recv(cx) {
                return Poll::Ready(Ok(step));
            }
            match self.outcome.take() {
                Some(outcome) => Poll::Ready(Err(outcome)),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// Has the local lists follow the remote ones for as long as both are there.
async fn watch_lists(remote: Arc<Remote>, server: Weak<Inner>, mut listener: Listener) {
    while let Some(change) = listener.next().await {
        let Some(server) = server.upgrade() else { return };
        if let Err(error) = remote.refresh(&server, &change).await {
            tracing::warn!(%error, ?change, "a list could not be fetched again");
        }
    }
}

/// The `_meta` of a call without what is between its two ends alone.
fn passed_on(meta: Option<&Json>) -> Object {
    let mut rest = Object::default();
    let all = meta.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
    for (name, value) in all.iter() {
        if name != "progressToken" && !name.starts_with("io.modelcontextprotocol/") {
            rest.set(name.to_owned(), value.clone());
        }
    }
    rest
}

/// What a local caller is told of a failed remote call.
fn told_of(error: CallError) -> ToolError {
    match error {
        CallError::Peer(error) => ToolError::rpc(error),
        CallError::Refused(error) => ToolError::new(error.message),
        CallError::Tool(result) => ToolError::new(CallError::Tool(result).to_string()),
        CallError::TimedOut => {
            ToolError::new("The server behind this one did not answer in time. Try again later.")
        }
        CallError::Cancelled => {
            ToolError::new("The server behind this one gave the work up. Try again.")
        }
        CallError::Unreachable(_) => {
            tracing::warn!(%error, "a remote server is gone");
            ToolError::new(
                "The server behind this one cannot be reached, and nothing was done. Try again \
                 later, or without it.",
            )
        }
        // A connection that ends in the middle of a call says nothing about how far that got.
        CallError::Closed | CallError::Lost(_) => {
            tracing::warn!(%error, "a remote answer was lost");
            ToolError::new(
                "The answer of the server behind this one was lost; the work may have been done. \
                 Look before trying again.",
            )
        }
        error => {
            tracing::warn!(%error, "a remote call failed");
            ToolError::new("The server behind this one gave no answer that can be used.")
        }
    }
}

/// Progress beyond this, unreported, is dropped: the next step says more anyway.
const PROGRESS_QUEUE: usize = 1024;
