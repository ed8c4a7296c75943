//! A server's calls as a tower service, and the layers around it, which inspect, change, delay or
//! refuse requests and answers.
//!
//! [`ServerBuilder::layer`](crate::server::ServerBuilder::layer) puts a layer around the whole
//! server, [`ToolEntry::layer`](crate::server::ToolEntry::layer) around one tool. tower's own
//! layers work, including those whose services are not `Clone`: all calls share one service, which
//! must be ready before each of them.
//!
//! ```
//! use std::time::Duration;
//! use tower::limit::ConcurrencyLimitLayer;
//! use tower::timeout::TimeoutLayer;
//! use trunkline::{Server, tool};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let render = tool("render", async || "A film.").layer(ConcurrencyLimitLayer::new(2));
//! let server = Server::builder("films", "1.0.0")
//!     .tool(render)
//!     .layer(TimeoutLayer::new(Duration::from_secs(30)))
//!     .build();
//! # let _ = server;
//! # }
//! ```
//!
//! A layer sees one request for each request of a client. From 2026-07-28 a client that is asked
//! something repeats the call with its answers, so a layer sees such a call once per round, and
//! [`ServerResponse::is_question`] tells which answers are questions. A call that becomes a task is
//! answered with the task; the work of the task is outside the layers. Handshakes, pings and
//! subscriptions are not calls.
//!
//! An error of a layer becomes an answer. A [`ToolError`] or an [`ErrorObject`] is sent as it is, a
//! time-out is a tool error for the model, and an overload is an internal error `overloaded`. Any
//! other error goes to the log only, and the caller learns that something went wrong.

mod failure;
mod request;

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::Mutex;
use trunkline_proto::Call;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::Answer;

use crate::caller::Added;
#[cfg(doc)]
use crate::{ErrorObject, ToolError};

pub(crate) use failure::told;
pub use request::{ServerRequest, ServerResponse};
/// Wraps a service in another.
pub use tower_layer::Layer;
/// A function from requests to answers, with back-pressure.
pub use tower_service::Service;

/// Any error, as in tower.
///
/// ```
/// let error: trunkline::layer::BoxError = "The queue is full.".into();
/// assert_eq!(error.to_string(), "The queue is full.");
/// ```
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A server's calls as a service, which layers wrap. It is always ready.
///
/// ```
/// use trunkline::layer::{Calls, Layer, Service};
/// use trunkline::{Server, tool};
/// # use trunkline::layer::{BoxError, ServerRequest};
///
/// let quiet = tower::layer::layer_fn(|calls: Calls| {
///     tower::service_fn(move |request: ServerRequest| {
///         let mut calls = calls;
///         async move { calls.call(request).await }
///     })
/// });
/// let server = Server::builder("quiet", "1.0.0").tool(tool("hush", async || "…")).layer(quiet);
/// # assert!(server.try_build().is_ok());
/// ```
#[derive(Clone, Copy)]
pub struct Calls(());

impl Service<ServerRequest> for Calls {
    type Response = ServerResponse;
    type Error = BoxError;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: ServerRequest) -> Answering {
        match request.route.pop() {
            Some(layer) => layer.call(request),
            None => run(request),
        }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}

/// The future of an answer. Dropping it cancels the call.
///
/// ```
/// use trunkline::{RawJson, layer::Answering};
///
/// fn nothing() -> Answering {
///     Box::pin(async { Ok(Ok(RawJson::empty_object()).into()) })
/// }
/// # let _ = nothing();
/// ```
pub type Answering = Pin<Box<dyn Future<Output = Result<ServerResponse, BoxError>> + Send>>;

/// Answers a call that has passed its layers.
pub(crate) type Inside = Arc<dyn Fn(Call, &ConversationHandle) -> Answer + Send + Sync>;

/// Layers, innermost first. Free of cost if empty.
#[derive(Clone, Default)]
pub(crate) struct Layers(Vec<Arc<dyn Around>>);

impl Layers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These layers with others around them.
    pub(crate) fn within(&self, outer: &Self) -> Self {
        Self(self.0.iter().chain(&outer.0).cloned().collect())
    }

    /// Answers a call through these layers.
    pub(crate) fn answer(
        &self,
        call: Call,
        handle: &ConversationHandle,
        inside: Inside,
    ) -> Answering {
        Calls(()).call(ServerRequest {
            call,
            handle: handle.clone(),
            added: Added::default(),
            route: self.0.clone(),
            inside,
        })
    }

    /// Adds an outer layer.
    pub(crate) fn wrap<L>(&mut self, layer: L)
    where
        L: Layer<Calls>,
        L::Service: Service<ServerRequest, Response = ServerResponse> + Send + 'static,
        <L::Service as Service<ServerRequest>>::Error: Into<BoxError>,
        <L::Service as Service<ServerRequest>>::Future: Send + 'static,
    {
        self.add(layer.layer(Calls(())));
    }

    fn add<S>(&mut self, service: S)
    where
        S: Service<ServerRequest, Response = ServerResponse> + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.0.push(Arc::new(Shared(Mutex::new(service))));
    }
}

/// A type-erased layer.
pub(crate) trait Around: Send + Sync {
    fn call(self: Arc<Self>, request: ServerRequest) -> Answering;
}

/// A service that calls share under a lock, so it need not be `Clone`.
struct Shared<S>(Mutex<S>);

impl<S> Around for Shared<S>
where
    S: Service<ServerRequest, Response = ServerResponse> + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn call(self: Arc<Self>, request: ServerRequest) -> Answering {
        Box::pin(async move {
            let answer = {
                let mut service = self.0.lock().await;
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
                service.call(request)
            };
            answer.await.map_err(Into::into)
        })
    }
}

/// The innermost service, behind all layers.
fn run(request: ServerRequest) -> Answering {
    let ServerRequest { mut call, handle, added, inside, .. } = request;
    call.attached = added.attach(call.attached);
    match inside(call, &handle) {
        Answer::Now(outcome) => Box::pin(ready(Ok(outcome.into()))),
        Answer::Later(outcome) => Box::pin(async move { Ok(outcome.await.into()) }),
    }
}
