//! Failed requests → a retry, where that is safe.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::sleep;
use tower_layer::Layer;
use tower_service::Service;
use trunkline_wire::json::Json;
use trunkline_wire::method::Method;
use trunkline_wire::model::{ListParams, ListToolsResult, ToolAnnotations};

use super::call::Running;
use super::error::CallError;
use super::layer::{ClientRequest, of_layer};
use super::pages::follow;
use crate::layer::BoxError;

/// A layer that retries failed requests.
///
/// It retries every request that never reached the server ([`CallError::Unreachable`]), unless the
/// connection has ended. A request whose answer was lost ([`CallError::Lost`]) may have run: it is
/// retried only if it is a read, or if it calls a tool whose annotations make that safe
/// (`readOnlyHint`, `idempotentHint`). They come from the server's list, which is fetched if it is
/// not known yet.
///
/// ```
/// use trunkline::Client;
/// use trunkline::client::Retry;
///
/// let client = Client::builder("example", "1.0.0").layer(Retry::new(3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    times: u32,
    pause: Duration,
}

impl Retry {
    /// Retries a request up to `times` times, with exponential backoff from 100 milliseconds.
    ///
    /// ```
    /// let retry = trunkline::client::Retry::new(3);
    /// assert!(format!("{retry:?}").contains("100ms"));
    /// ```
    pub fn new(times: u32) -> Self {
        Self { times, pause: Duration::from_millis(100) }
    }

    /// The pause before the first retry; it doubles with each further one.
    ///
    /// ```
    /// let retry = trunkline::client::Retry::new(3).pause(std::time::Duration::from_secs(2));
    /// assert!(format!("{retry:?}").contains("2s"));
    /// ```
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }
}

impl<S> Layer<S> for Retry {
    type Service = Retrying<S>;

    fn layer(&self, inner: S) -> Retrying<S> {
        Retrying { retry: *self, inner }
    }
}

/// The service that [`Retry`] makes.
///
/// ```
/// use trunkline::client::{Retry, Retrying};
/// use trunkline::layer::Layer;
///
/// let retrying: Retrying<&str> = Retry::new(3).layer("a service");
/// assert!(format!("{retrying:?}").contains("a service"));
/// ```
#[derive(Clone, Debug)]
pub struct Retrying<S> {
    retry: Retry,
    inner: S,
}

impl<S> Service<ClientRequest> for Retrying<S>
where
    S: Service<ClientRequest, Response = Json, Error: Into<BoxError>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Json;
    type Error = CallError;
    type Future = Running<Json>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        self.inner.poll_ready(cx).map_err(|error| of_layer(error.into()))
    }

    fn call(&mut self, request: ClientRequest) -> Running<Json> {
        // The instance that is ready sends the request; the clone becomes ready later.
        let spare = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, spare);
        let first = inner.call(request.clone());
        let Retry { times, mut pause } = self.retry;
        Box::pin(async move {
            let mut outcome = first.await.map_err(|error| of_layer(error.into()));
            let mut may_be_done = false;
            for _ in 0..times {
                match &outcome {
                    Err(error) if may_repeat(&request, error).await => {}
                    _ => break,
                }
                sleep(pause).await;
                pause *= 2;
                may_be_done |= matches!(outcome, Err(CallError::Lost(_)));
                outcome = once(&mut inner, request.clone()).await;
            }
            // An earlier attempt may have run, even if this one certainly did not.
            match outcome {
                Err(error @ (CallError::Unreachable(_) | CallError::Credentials(_)))
                    if may_be_done =>
                {
                    Err(CallError::Lost(format!("it was made before, and now: {error}")))
                }
                outcome => outcome,
            }
        })
    }
}

async fn once<S>(inner: &mut S, request: ClientRequest) -> Result<Json, CallError>
where
    S: Service<ClientRequest, Response = Json, Error: Into<BoxError>>,
{
    poll_fn(|cx| inner.poll_ready(cx)).await.map_err(|error| of_layer(error.into()))?;
    inner.call(request).await.map_err(|error| of_layer(error.into()))
}

async fn may_repeat(request: &ClientRequest, error: &CallError) -> bool {
    match error {
        // A connection that has ended stays so.
        CallError::Unreachable(_) => !request.caller.handle.is_closed(),
        CallError::Lost(_) => match request.method {
            Method::ToolsCall => is_harmless(request).await,
            method => READS.contains(&method),
        },
        _ => false,
    }
}

async fn is_harmless(request: &ClientRequest) -> bool {
    let says_so =
        |it: ToolAnnotations| it.read_only_hint == Some(true) || it.idempotent_hint == Some(true);
    let known = request.annotations();
    if known.is_some() {
        return known.is_some_and(says_so);
    }
    let mut list = request.caller.ask(Method::ToolsList, ListParams::new());
    // This request may hold the only permit that an outer layer has for it.
    list.is_bare = true;
    list.timing = request.timing();
    follow::<ListToolsResult>(list).await.is_ok() && request.annotations().is_some_and(says_so)
}

/// The methods that only read.
const READS: [Method; 11] = [
    Method::CompletionComplete,
    Method::Ping,
    Method::PromptsGet,
    Method::PromptsList,
    Method::ResourcesList,
    Method::ResourcesRead,
    Method::ResourcesTemplatesList,
    Method::ServerDiscover,
    Method::TasksGet,
    Method::TasksList,
    Method::ToolsList,
];
