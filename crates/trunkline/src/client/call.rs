//! A call that has not been made yet → the request, its progress, and its decoded result.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use trunkline_proto::client::Opened;
use trunkline_proto::{Heard, Timing};
use trunkline_transport::Limits;
use trunkline_transport::voice::{Request, Voice};
use trunkline_wire::era::stateful::{Fit, encode_params};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{LogLevel, Progress, meta};
use trunkline_wire::revision::{Era, Revision};

use super::ask::Asked;
use super::error::CallError;
use super::listen::Hub;

/// A call, made when it is awaited. Dropping the future cancels the call on the wire.
///
/// Without further ado it is given up after a minute of silence, and after ten minutes whatever
/// its progress; see [`Timing`].
#[must_use = "a call is made when it is awaited"]
pub struct Call<T> {
    ask: Ask,
    run: fn(Ask) -> Running<T>,
}

/// A call under way.
pub type Running<T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send>>;

type OnProgress = Box<dyn FnMut(Progress) + Send>;

impl<T> Call<T> {
    pub(super) fn new(ask: Ask, run: fn(Ask) -> Running<T>) -> Self {
        Self { ask, run }
    }

    /// Asks for progress. `on_progress` is called in order, and always before the result is there.
    pub fn on_progress(mut self, on_progress: impl FnMut(Progress) + Send + 'static) -> Self {
        self.ask.on_progress = Some(Box::new(on_progress));
        self
    }

    /// Gives up after so long without a sign of life; progress starts the time anew, within the
    /// hard deadline.
    pub fn timeout(mut self, idle: Duration) -> Self {
        let hard = self.ask.timing.hard.max(idle);
        self.ask.timing = Timing { idle, hard };
        self
    }

    /// Gives up after so long, whatever the progress.
    pub fn deadline(mut self, hard: Duration) -> Self {
        let idle = self.ask.timing.idle.min(hard);
        self.ask.timing = Timing { idle, hard };
        self
    }

    /// Adds a member to the `_meta` of the request.
    pub fn meta(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.ask.meta.set(name.into(), value.into());
        self
    }
}

impl<T: DeserializeOwned + Send + 'static> Call<T> {
    /// One request, and its result as it is.
    pub(super) fn plain(ask: Ask) -> Self {
        Self::new(ask, |mut ask| Box::pin(async move { ask.send_and_read().await }))
    }
}

impl<T: 'static> IntoFuture for Call<T> {
    type Output = Result<T, CallError>;
    type IntoFuture = Running<T>;

    fn into_future(self) -> Running<T> {
        (self.run)(self.ask)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.ask.method).finish_non_exhaustive()
    }
}

/// What calls into one connection share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) voice: Voice,
    pub(super) opened: Arc<Opened>,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) timing: Timing,
    /// What every stateless request asks for; a stateful server remembers it itself.
    pub(super) log_level: Mutex<Option<LogLevel>>,
    pub(super) asked: Arc<dyn Asked>,
    pub(super) hub: Arc<Hub>,
}

impl Caller {
    pub(super) fn revision(&self) -> Revision {
        self.opened.revision
    }

    /// A request whose parameters are spelled as the revision has them.
    pub(super) fn ask(&self, method: &'static str, params: impl Fit + Serialize) -> Ask {
        self.ask_raw(method, Ok(encode_params(params, self.revision().profile())))
    }

    pub(super) fn ask_raw(&self, method: &'static str, params: Result<Object, CallError>) -> Ask {
        Ask {
            caller: self.clone(),
            method,
            params,
            meta: Object::default(),
            timing: self.shared.timing,
            on_progress: None,
        }
    }

    pub(super) fn log_level(&self) -> std::sync::MutexGuard<'_, Option<LogLevel>> {
        self.shared.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request, ready to be sent; more than once if it has pages.
pub(super) struct Ask {
    pub(super) caller: Caller,
    pub(super) method: &'static str,
    pub(super) params: Result<Object, CallError>,
    pub(super) meta: Object,
    pub(super) timing: Timing,
    pub(super) on_progress: Option<OnProgress>,
}

impl Ask {
    pub(super) async fn send_and_read<T: DeserializeOwned>(&mut self) -> Result<T, CallError> {
        let result = self.send().await?;
        read(self.method, &result)
    }

    /// Sends the request and waits for its result.
    pub(super) async fn send(&mut self) -> Result<Json, CallError> {
        let params = self.params.clone()?;
        let mut request = Request::new(self.method, self.with_meta(params));
        request.timing = Some(self.timing);
        let Some(on_progress) = &mut self.on_progress else {
            return Ok(self.caller.voice.ask(request).await?);
        };
        let (heard, mut inbox) = mpsc::channel(PROGRESS_QUEUE);
        request.heard = Some(heard);
        let mut answer = pin!(self.caller.voice.ask(request));
        // Whatever was heard before the answer is reported before it.
        let outcome = poll_fn(|cx| {
            while let Poll::Ready(Some(heard)) = inbox.poll_recv(cx) {
                report(&heard, on_progress);
            }
            let outcome = answer.as_mut().poll(cx);
            if outcome.is_ready() {
                while let Ok(heard) = inbox.try_recv() {
                    report(&heard, on_progress);
                }
            }
            outcome
        });
        Ok(outcome.await?)
    }

    fn with_meta(&self, mut params: Object) -> Object {
        let mut meta = self.meta.clone();
        if self.caller.revision().era() == Era::Stateless
            && let Some(level) = *self.caller.log_level()
        {
            meta.set(meta::LOG_LEVEL, Json::of(&level));
        }
        if !meta.is_empty() {
            params.set("_meta", meta.to_json());
        }
        params
    }
}

/// Reads a result as what `method` promises.
pub(super) fn read<T: DeserializeOwned>(
    method: &'static str,
    result: &Json,
) -> Result<T, CallError> {
    result.to().map_err(|err| CallError::Decode { method, why: err.to_string() })
}

fn report(heard: &Heard, on_progress: &mut OnProgress) {
    if heard.method == "notifications/progress"
        && let Ok(progress) = heard.params.to()
    {
        on_progress(progress);
    }
}

/// Progress beyond this, unread, is dropped: the next step says more anyway.
const PROGRESS_QUEUE: usize = 1024;
