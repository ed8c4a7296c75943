//! Calls of a server as a tower service, and the layers around them: a call → a request that layers
//! look at, change, delay or refuse → its answer.
//!
//! [`ServerBuilder::layer`](crate::server::ServerBuilder::layer) puts a layer around the whole server, [`ToolEntry::layer`](crate::server::ToolEntry::layer) around one
//! tool. tower's own layers work, those whose services cannot be cloned too: all calls share one
//! service, which is asked whether it is ready before each of them.
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
//! A layer sees one request for each that a client makes. From 2026-07-28 a call that asks its
//! caller something is made again with the answer, so a layer sees such a call once in each round,
//! and [`ServerResponse::is_question`] tells which answers are questions. A call that becomes a
//! task is answered with the task: the work that goes on is outside of the layers. Handshakes,
//! pings and subscriptions are not calls.
//!
//! An error of a layer becomes an answer: a [`ToolError`] or an [`ErrorObject`] is told as it is,
//! an elapsed time is told to the model as an error of the tool, an overload is an internal error
//! `overloaded`. Any other is written to the log alone, and the caller learns that something went
//! wrong.

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
/// What makes a service of a service.
pub use tower_layer::Layer;
/// A function from requests to answers that says when it is ready.
pub use tower_service::Service;

/// Any error, as tower has it.
///
/// ```
/// let error: trunkline::layer::BoxError = "The queue is full.".into();
/// assert_eq!(error.to_string(), "The queue is full.");
/// ```
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The calls of a server as a service: what layers are put around. It is always ready, and a clone
/// is the same.
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

/// An answer being worked out. Dropping it abandons the call.
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

/// What a call comes to once it is past its layers.
pub(crate) type Inside = Arc<dyn Fn(Call, &ConversationHandle) -> Answer + Send + Sync>;

/// Layers, from the inside out. None cost nothing.
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

    /// Has a call answered through these layers.
    pub(crate) fn answer(
        &self,
        call: Call,
        voice: &ConversationHandle,
        inside: Inside,
    ) -> Answering {
        Calls(()).call(ServerRequest {
            call,
            voice: voice.clone(),
            added: Added::default(),
            route: self.0.clone(),
            inside,
        })
    }

    /// Puts a layer around them.
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

/// A layer whose type is forgotten.
pub(crate) trait Around: Send + Sync {
    fn call(self: Arc<Self>, request: ServerRequest) -> Answering;
}

/// A service that calls take turns at: it need not be one that can be cloned.
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

/// Past all layers.
fn run(request: ServerRequest) -> Answering {
    let ServerRequest { mut call, voice, added, inside, .. } = request;
    call.attached = added.attach(call.attached);
    match inside(call, &voice) {
        Answer::Now(outcome) => Box::pin(ready(Ok(outcome.into()))),
        Answer::Later(outcome) => Box::pin(async move { Ok(outcome.await.into()) }),
    }
}
