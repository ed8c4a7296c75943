//! A call that is not sent yet → the request, its progress, and its decoded result.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use trunkline_proto::client::Opened;
use trunkline_proto::{PeerNotification, Timing};
use trunkline_transport::Limits;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::code;
use trunkline_wire::era::stateful::{Fit, encode_params};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::{ListParams, ListToolsResult, LogLevel, Progress, Tool, meta};
use trunkline_wire::revision::{Era, Revision};

use super::ask::ErasedResponder;
use super::cache::{Cache, Key};
use super::error::CallError;
use super::known::KnownTools;
use super::layer::{ClientRequest, Layers};
use super::listen::Hub;
use super::pages::follow;
use super::rejected::Rejected;
use crate::TraceContext;
use crate::observe::ClientObserver;

/// A call, sent when it is awaited. Dropping the future cancels the call on the wire.
///
/// By default it times out after a minute without an answer or progress, and after ten minutes
/// whatever its progress; see [`Timing`].
///
/// ```
/// use trunkline::{Client, Server, tool};
/// use std::time::Duration;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let client = Client::in_memory(&server).await?;
/// let call = client.call_tool("now", ()).deadline(Duration::from_secs(5));
/// assert_eq!(call.await?.content[0].as_text(), Some("noon"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[must_use = "a call is made when it is awaited"]
pub struct Call<T> {
    /// The request, or why it cannot be made.
    ask: Result<Ask, CallError>,
    run: fn(Ask) -> Running<T>,
}

/// The future of a call.
pub type Running<T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send>>;

type OnProgress = Box<dyn FnMut(Progress) + Send>;
/// A callback for the progress of every call.
pub(super) type ProgressCallback = Arc<dyn Fn(&Progress) + Send + Sync>;

impl<T> Call<T> {
    pub(super) fn new(ask: Ask, run: fn(Ask) -> Running<T>) -> Self {
        Self { ask: Ok(ask), run }
    }

    /// A call that fails with this error.
    pub(super) fn failed(error: CallError) -> Self
    where
        T: 'static,
    {
        // Never polled, because `ask` is an error.
        Self { ask: Err(error), run: |_| Box::pin(std::future::pending()) }
    }

    /// The same call, sent once `gate` lets it pass. That wait does not count against its
    /// time-outs.
    pub(super) fn after(self, gate: Running<()>) -> Self {
        self.told(|ask| ask.gate = Some(gate))
    }

    fn told(mut self, tell: impl FnOnce(&mut Ask)) -> Self {
        if let Ok(ask) = &mut self.ask {
            tell(ask);
        }
        self
    }

    /// Asks for progress. `on_progress` is called in order, and always before the result is ready.
    pub fn on_progress(self, on_progress: impl FnMut(Progress) + Send + 'static) -> Self {
        self.told(|ask| ask.on_progress = Some(Box::new(on_progress)))
    }

    /// The idle time-out; progress restarts it, within the hard deadline.
    pub fn timeout(self, idle: Duration) -> Self {
        self.told(|ask| ask.timing = Timing { idle, hard: ask.timing.hard.max(idle) })
    }

    /// The hard deadline, whatever the progress.
    pub fn deadline(self, hard: Duration) -> Self {
        self.told(|ask| ask.timing = Timing { idle: ask.timing.idle.min(hard), hard })
    }

    /// Bypasses the cache.
    pub fn fresh(self) -> Self {
        self.told(|ask| ask.is_fresh = true)
    }

    /// Adds a member to the `_meta` of the request.
    pub fn meta(self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.told(|ask| ask.meta.set(name.into(), value.into()))
    }

    /// Sends this trace context with the request, such as that of the call that a handler answers.
    pub fn trace(self, trace: &TraceContext) -> Self {
        self.told(|ask| ask.trace = Some(Box::new(trace.clone())))
    }
}

impl<T: DeserializeOwned + Send + 'static> Call<T> {
    /// One request with its result unchanged.
    pub(super) fn plain(ask: Ask) -> Self {
        Self::new(ask, |mut ask| Box::pin(async move { ask.send_and_read().await }))
    }
}

impl<T: 'static> IntoFuture for Call<T> {
    type Output = Result<T, CallError>;
    type IntoFuture = Running<T>;

    fn into_future(self) -> Running<T> {
        match self.ask {
            Ok(ask) => (self.run)(ask),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.ask.as_ref().map(|ask| ask.method);
        f.debug_struct("Call").field("method", &method).finish_non_exhaustive()
    }
}

/// What the calls of one connection share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) handle: ConversationHandle,
    pub(super) opened: Arc<Opened>,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) timing: Timing,
    /// The level that every stateless request carries; a stateful server remembers it itself.
    pub(super) log_level: Mutex<Option<LogLevel>>,
    pub(super) asked: Arc<dyn ErasedResponder>,
    pub(super) hub: Arc<Hub>,
    pub(super) cache: Cache,
    pub(super) rejected: Rejected,
    pub(super) known: KnownTools,
    pub(super) layers: Layers,
    pub(super) observe: ClientObserver,
    /// A callback for the progress of every call of a handler.
    pub(super) on_progress: Option<ProgressCallback>,
}

impl Caller {
    pub(super) fn revision(&self) -> Revision {
        self.opened.revision
    }

    /// A request with its params in the form of the revision.
    pub(super) fn ask(&self, method: Method, params: impl Fit + Serialize) -> Ask {
        self.ask_raw(method, Ok(encode_params(params, self.revision().profile())))
    }

    pub(super) fn ask_raw(&self, method: Method, params: Result<Object, CallError>) -> Ask {
        Ask {
            caller: self.clone(),
            method,
            params,
            meta: Object::default(),
            trace: None,
            timing: self.shared.timing,
            on_progress: None,
            is_fresh: false,
            is_bare: false,
            gate: None,
            was_kept: false,
            last_step: None,
        }
    }

    pub(super) fn log_level(&self) -> std::sync::MutexGuard<'_, Option<LogLevel>> {
        self.shared.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request, ready to be sent; sent more than once if it has pages.
pub(super) struct Ask {
    pub(super) caller: Caller,
    pub(super) method: Method,
    pub(super) params: Result<Object, CallError>,
    pub(super) meta: Object,
    /// Apart from the rest of `_meta`, because it does not change the result.
    pub(super) trace: Option<Box<TraceContext>>,
    pub(super) timing: Timing,
    pub(super) on_progress: Option<OnProgress>,
    /// Whether the cache is bypassed.
    pub(super) is_fresh: bool,
    /// What must let it pass first, such as consent.
    pub(super) gate: Option<Running<()>>,
    /// Whether it bypasses the layers.
    pub(super) is_bare: bool,
    /// Whether the last result came from the cache.
    pub(super) was_kept: bool,
    /// The last progress received.
    pub(super) last_step: Option<f64>,
}

impl Ask {
    pub(super) async fn send_and_read<T: DeserializeOwned>(&mut self) -> Result<T, CallError> {
        let result = self.send().await?;
        read(self.method, &result)
    }

    /// The result of the request, from the cache or from the server.
    pub(super) async fn send(&mut self) -> Result<Json, CallError> {
        let shared = Arc::clone(&self.caller.shared);
        let key = self.key();
        let kept = key.as_ref().filter(|_| !self.is_fresh).and_then(|key| shared.cache.get(key));
        self.was_kept = kept.is_some();
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let asked = shared.cache.epoch();
        let outcome = self.exchange().await;
        match (&outcome, key) {
            (Ok(result), Some(key)) => shared.cache.put(key, result, asked),
            (Err(CallError::Peer(error)), Some(_)) if error.code == code::INVALID_PARAMS => {
                // If its cursor came from the cache, the other cached pages are stale as well.
                shared.cache.forget_method(self.method);
            }
            (Err(CallError::Peer(error)), _) if error.code == code::HEADER_MISMATCH => {
                // The server refused it before it ran, so a retry is safe.
                if let Some(list) = self.relearn()
                    && list.await.is_ok()
                {
                    return self.exchange().await;
                }
            }
            _ => {}
        }
        outcome
    }

    /// The cache key, if the result may be cached. A caller's own `_meta` may change the result in
    /// unknown ways.
    fn key(&self) -> Option<Key> {
        let is_told = self.caller.revision().era() == Era::Stateless && self.meta.is_empty();
        let params = self.params.as_ref().ok().filter(|_| is_told)?;
        self.caller.shared.cache.key(self.method, params)
    }

    /// Fetches the list of tools again after a call with the wrong headers: the transport reads
    /// there which ones to send. `None` where calls have no such headers.
    fn relearn(&self) -> Option<Running<Vec<Tool>>> {
        if self.method != Method::ToolsCall || self.caller.revision().era() != Era::Stateless {
            return None;
        }
        let mut list = self.caller.ask(Method::ToolsList, ListParams::new());
        list.is_fresh = true;
        list.timing = self.timing;
        Some(follow::<ListToolsResult>(list))
    }

    /// Sends the request and waits for its result.
    async fn exchange(&mut self) -> Result<Json, CallError> {
        let params = match &self.params {
            // Mostly `_meta` is added on the way.
            Ok(params) => params.clone_for_one_more(),
            Err(why) => return Err(why.clone()),
        };
        if let Some(gate) = self.gate.take() {
            gate.await?;
        }
        // Boxed where it is rare, so that the future of a call does not carry its size.
        if self.wants_progress() {
            return Box::pin(self.exchange_with_progress(params)).await;
        }
        let request = self.request(params, None);
        match self.is_layered() {
            true => request.send_through_layers().await,
            false => request.send().await,
        }
    }

    /// The same, and reports progress meanwhile.
    async fn exchange_with_progress(&mut self, params: Object) -> Result<Json, CallError> {
        let (heard, mut inbox) = mpsc::channel(PROGRESS_QUEUE);
        let request = self.request(params, Some(heard));
        let mut answer = match self.is_layered() {
            true => request.send_through_layers(),
            false => Box::pin(request.send()),
        };
        let everyone = self.caller.shared.on_progress.as_deref().filter(|_| self.has_handler());
        let mut on_progress = self.on_progress.as_mut();
        let last_step = &mut self.last_step;
        let mut report = |heard: &PeerNotification| {
            if heard.method == Method::Progress
                && let Ok(progress) = heard.params.to::<Progress>()
            {
                *last_step = Some(progress.progress);
                everyone.iter().for_each(|heard| heard(&progress));
                if let Some(on_progress) = &mut on_progress {
                    on_progress(progress);
                }
            }
        };
        // Progress that arrived before the answer is reported before it.
        let outcome = poll_fn(|cx| {
            while let Poll::Ready(Some(heard)) = inbox.poll_recv(cx) {
                report(&heard);
            }
            let outcome = answer.as_mut().poll(cx);
            if outcome.is_ready() {
                while let Ok(heard) = inbox.try_recv() {
                    report(&heard);
                }
            }
            outcome
        });
        outcome.await
    }

    fn wants_progress(&self) -> bool {
        let everyone = self.caller.shared.on_progress.as_ref();
        self.on_progress.is_some() || everyone.is_some_and(|_| self.has_handler())
    }

    /// Reports progress that did not arrive with this request.
    pub(super) fn report(&mut self, progress: Progress) {
        self.last_step = Some(progress.progress);
        self.caller.shared.on_progress.iter().for_each(|heard| heard(&progress));
        if let Some(on_progress) = &mut self.on_progress {
            on_progress(progress);
        }
    }

    /// The request as the layers see it.
    fn request(
        &self,
        params: Object,
        heard: Option<mpsc::Sender<PeerNotification>>,
    ) -> ClientRequest {
        let (caller, method, timing) = (self.caller.clone(), self.method, self.timing);
        ClientRequest { caller, method, params, meta: self.meta(), timing, heard }
    }

    fn is_layered(&self) -> bool {
        !self.is_bare && !self.caller.shared.layers.is_empty()
    }

    /// The name of the tool.
    pub(super) fn tool(&self) -> String {
        let name = self.params.as_ref().ok().and_then(|params| params.get("name")?.to().ok());
        name.unwrap_or_default()
    }

    /// Whether a handler answers it, which may report progress.
    fn has_handler(&self) -> bool {
        self.method.may_ask()
    }

    fn meta(&self) -> Object {
        let mut meta = self.meta.clone();
        self.trace.iter().for_each(|trace| trace.write(&mut meta));
        if self.caller.revision().era() == Era::Stateless
            && let Some(level) = *self.caller.log_level()
        {
            meta.set(meta::LOG_LEVEL, Json::of(&level));
        }
        meta
    }
}

/// Parses a result as the result type of `method`.
pub(super) fn read<T: DeserializeOwned>(method: Method, result: &Json) -> Result<T, CallError> {
    result.to().map_err(|err| CallError::Decode { method: method.name(), why: err.to_string() })
}

/// Progress beyond this, unread, is dropped: later progress supersedes it.
const PROGRESS_QUEUE: usize = 1024;
