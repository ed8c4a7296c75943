//! A remote server → a local one with the same offers: it forwards calls and follows changes.

mod entries;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use trunkline_proto::Change;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{
    CompleteParams, Completion, ListChanged, Progress, ResourcesCapability, ServerCapabilities,
    ServerTasks, SubscriptionFilter, TASKS_EXTENSION,
};

use super::{Context, Inner, Server};
use crate::ToolError;
use crate::client::{Call, CallError, Client, Listener, Running};

/// A server that offers the tools, prompts and resources of a remote one, to be mounted or served.
///
/// It forwards progress, cancellation and `_meta` with its trace context. Results and JSON-RPC
/// errors arrive unchanged. If the remote server cannot be reached, the caller reads so. When the
/// lists of the remote server change, so do these.
///
/// The client's own [`Responder`](crate::client::Responder) answers the remote server's questions,
/// never the caller: a gateway (`trunkline serve`) asks the caller. Resources that are not listed
/// cannot be read, changes of single resources are not forwarded, and skills are plain resources
/// here.
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
    Remote { client }.into_server().await
}

/// Why a remote server cannot be offered.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProxyError {
    /// It did not list what it offers.
    List(CallError),
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(error) => write!(f, "The server did not say what it offers. {error}"),
        }
    }
}

impl std::error::Error for ProxyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::List(error) => Some(error),
        }
    }
}

/// Completes an argument at a remote server.
pub(crate) type Completer = Arc<dyn Fn(CompleteParams) -> Completing + Send + Sync>;
pub(super) type Completing = Pin<Box<dyn Future<Output = Result<Completion, ErrorObject>> + Send>>;

/// A remote server.
struct Remote {
    client: Client,
}

/// Stops following the lists when the local server is dropped.
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
        // Before the first list is fetched, so that no change is missed.
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

    /// The capabilities of the remote server that work through this one.
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

    /// Subscribes to changes, if the remote server announces any.
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

    /// Makes a remote call on behalf of a local one.
    async fn forward<T: Send + 'static>(
        &self,
        cx: &Context,
        mut call: Call<T>,
    ) -> Result<T, ToolError> {
        for (name, value) in forwarded_meta(cx.meta()).iter() {
            call = call.meta(name, value.clone());
        }
        if self.client.is_closed() {
            return Err(local_error(CallError::Unreachable(
                "The connection is closed.".to_owned(),
            )));
        }
        let mut going = RemoteCall::new(call);
        loop {
            match going.next().await {
                Ok(step) => cx.report(step).await,
                Err(outcome) => return outcome.map_err(local_error),
            }
        }
    }
}

/// A remote call in flight.
struct RemoteCall<T> {
    running: Running<T>,
    told: mpsc::Receiver<Progress>,
    outcome: Option<Result<T, CallError>>,
}

impl<T> RemoteCall<T> {
    fn new(call: Call<T>) -> Self
    where
        T: 'static,
    {
        // Always: progress extends the deadline even if the caller here did not ask for it.
        let (tell, told) = mpsc::channel(PROGRESS_QUEUE);
        let call = call.on_progress(move |step| drop(tell.try_send(step)));
        Self { running: call.into_future(), told, outcome: None }
    }

    /// The next progress, or the outcome after the last one.
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

/// Keeps the local lists in step with the remote ones for as long as both servers exist.
async fn watch_lists(remote: Arc<Remote>, server: Weak<Inner>, mut listener: Listener) {
    while let Some(change) = listener.next().await {
        let Some(server) = server.upgrade() else { return };
        if let Err(error) = remote.refresh(&server, &change).await {
            tracing::warn!(%error, ?change, "a list could not be fetched again");
        }
    }
}

/// The `_meta` of a call, without the members that concern only this hop.
fn forwarded_meta(meta: Option<&Json>) -> Object {
    let mut rest = Object::default();
    let all = meta.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
    for (name, value) in all.iter() {
        if name != "progressToken" && !name.starts_with("io.modelcontextprotocol/") {
            rest.set(name.to_owned(), value.clone());
        }
    }
    rest
}

/// What a local caller reads about a failed remote call.
fn local_error(error: CallError) -> ToolError {
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
        // A connection that ends during a call says nothing about how far the call got.
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

/// Progress beyond this, unreported, is dropped: later progress supersedes it.
const PROGRESS_QUEUE: usize = 1024;
