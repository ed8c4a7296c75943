//! The admin API: requests of operators, answered as JSON.
//!
//! [`open`] binds the listener and protects it; [`serve`] answers there with what [`Operate`] provides.
//! [`health`] also serves the main listener.

mod answer;
mod console;
mod console_keys;
mod open;
mod page;
mod routes;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinSet;
use trunkline_transport::Limits;

use crate::failure::Failure;
use crate::policy::pins::{Approval, Part};
pub use crate::traffic::{TrafficFilter, TrafficUpdates};
pub use crate::trying::{TryAnswer, TryRequest};

pub use answer::health;
pub use open::{Opened, open, open_at};
pub use page::{WebFile, WebFiles};

/// What the admin API needs of the gateway.
pub trait Operate: Send + Sync + 'static {
    /// A line of the log.
    type Line: Serialize + Send + Sync + 'static;

    /// `version`, `uptimeMs`, `config`, `listen`, `servers` (each with its `name` and, if it runs,
    /// its `instances`), `clients`, `parked`, `lastReload`.
    fn status(&self) -> Value;

    /// Whether calls can be answered: the catalog is loaded, the front is open, and no shutdown has begun.
    fn is_ready(&self) -> bool;

    /// Counts a refused request.
    fn refused(&self, _status: u16) {}

    /// The metrics page; see [`Metrics::render`](crate::metrics::Metrics::render).
    fn metrics(&self) -> String;

    /// The last calls, newest first, as a list.
    fn calls(&self, limit: usize) -> Value;

    /// All servers, each as in the status, with its `traffic`: `p50`, `p95`, `p99` in milliseconds, `count`, `failed`, and
    /// `steps` of ten seconds for the last quarter of an hour.
    fn servers(&self) -> Value {
        json!({ "servers": self.status()["servers"] })
    }

    /// The recorded calls that fit, newest first: `calls`, `dropped`, `oldest`, `recording`.
    fn traffic(&self, _filter: &TrafficFilter) -> Value {
        json!({ "calls": [], "dropped": 0, "oldest": null, "recording": null })
    }

    /// A recorded call with its messages, as JSON.
    fn recorded_call(&self, _id: &str) -> Option<String> {
        None
    }

    /// The recorded calls that fit, as lines of a recording.
    fn export(&self, _filter: &TrafficFilter) -> Vec<u8> {
        Vec::new()
    }

    /// Follows the recorded calls that fit; `None` if calls are not recorded.
    fn follow_traffic(&self, _filter: TrafficFilter) -> Option<TrafficUpdates> {
        None
    }

    /// What a server offers to clients of a revision: `tools`, `prompts`, `resources`, `templates`, whole definitions;
    /// and `errors`: why a list is missing or not complete, if one is.
    fn offers(
        &self,
        server: &str,
        _revision: Option<String>,
    ) -> impl Future<Output = Result<Value, Complaint>> + Send {
        let complaint = Complaint::no_server(server);
        async { Err(complaint) }
    }

    /// Makes a call as an operator: events as they are sent.
    fn begin_try(&self, _request: TryRequest) -> Result<mpsc::Receiver<Vec<u8>>, Complaint> {
        Err(Complaint::absent())
    }

    /// Answers a question of such a call.
    fn answer_try(&self, _id: &str, _answer: TryAnswer) -> Result<Value, Complaint> {
        Err(Complaint::absent())
    }

    /// Cancels such a call.
    fn cancel_try(&self, _id: &str) -> Result<Value, Complaint> {
        Err(Complaint::absent())
    }

    /// What the definitions of tools cost a model's context.
    fn tokens(&self) -> Value {
        json!({ "servers": [] })
    }

    /// Everything that is held back, of all servers.
    fn approvals(&self) -> Value {
        json!([])
    }

    /// Approves one definition by the digest that the operator saw.
    fn approve_one(
        &self,
        which: &Approving,
    ) -> impl Future<Output = Result<Value, Complaint>> + Send {
        let complaint = Complaint::no_server(&which.server);
        async { Err(complaint) }
    }

    /// Remembers that an operator has seen a definition and does not approve it. It stays held back.
    fn refuse_one(
        &self,
        which: &Approving,
    ) -> impl Future<Output = Result<Value, Complaint>> + Send {
        let complaint = Complaint::no_server(&which.server);
        async { Err(complaint) }
    }

    /// Begins a login at a URL that an operator steps through: `id`, `state`, `steps`, `page`, `told`.
    fn begin_login(&self, _url: &str) -> impl Future<Output = Result<Value, Complaint>> + Send {
        async { Err(Complaint::absent()) }
    }

    /// Lets its next request go.
    fn step_login(&self, _id: &str) -> impl Future<Output = Result<Value, Complaint>> + Send {
        async { Err(Complaint::absent()) }
    }

    /// The recordings that are kept.
    fn recordings(&self) -> impl Future<Output = Result<Value, Complaint>> + Send {
        async { Err(Complaint::absent()) }
    }

    /// Keeps the recorded calls that fit under a name.
    fn keep_recording(
        &self,
        _name: String,
        _filter: TrafficFilter,
    ) -> impl Future<Output = Result<Value, Complaint>> + Send {
        async { Err(Complaint::absent()) }
    }

    /// The lines of a recording that is kept.
    fn kept_recording(
        &self,
        _id: String,
    ) -> impl Future<Output = Result<String, Complaint>> + Send {
        async { Err(Complaint::absent()) }
    }

    /// Removes a recording that is kept.
    fn remove_recording(
        &self,
        _id: String,
    ) -> impl Future<Output = Result<Value, Complaint>> + Send {
        async { Err(Complaint::absent()) }
    }

    /// What differs between two recordings.
    fn compare_recordings(
        &self,
        _a: String,
        _b: String,
    ) -> impl Future<Output = Result<Value, Complaint>> + Send {
        async { Err(Complaint::absent()) }
    }

    /// The last lines of a server, or of all, oldest first, and all lines to come.
    fn logs(&self, server: Option<&str>) -> Followed<Self::Line>;

    /// Whether a line belongs to this server.
    fn is_of(line: &Self::Line, server: &str) -> bool;

    /// Reloads the catalog. `Err` holds its faults, and nothing has changed.
    fn reload(&self) -> impl Future<Output = Result<Value, Value>> + Send;

    /// Ends the backoff or suspension of a server.
    fn retry(&self, server: &str) -> Result<Value, Complaint>;

    /// What is held back of a server: `held`, each with `kind`, `name`, `why`, the digests `pinned` and `seen`,
    /// and, as far as stored, the `definition` and the one `before`.
    fn held(&self, server: &str) -> Result<Value, Complaint>;

    /// Approves held-back definitions by the digests that the operator saw: all of them or none.
    fn approve(
        &self,
        server: &str,
        which: &[Approval],
    ) -> impl Future<Output = Result<Value, Complaint>> + Send;

    /// Revokes and forgets the login of a principal at a server, or those of all (`auth.perUser`).
    fn log_out(
        &self,
        server: &str,
        _principal: Option<&str>,
    ) -> impl Future<Output = Result<Value, Complaint>> + Send {
        let complaint = Complaint::no_server(server);
        async { Err(complaint) }
    }

    /// Drains and stops the instances of a server. The next call starts it again.
    fn stop(&self, server: &str) -> impl Future<Output = Result<Value, Complaint>> + Send;
}

/// The recent lines, and a channel of those to come.
pub type Followed<L> = (Vec<Arc<L>>, broadcast::Receiver<Arc<L>>);

/// Which definition an operator decides about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approving {
    /// The server.
    pub server: String,
    /// The kind of the definition, where several have the name.
    #[serde(default)]
    pub kind: Option<Part>,
    /// Its own name; empty for instructions.
    #[serde(default)]
    pub name: String,
    /// The digest that the operator saw.
    pub digest: String,
}

/// Which calls are kept, and under which name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keeping {
    name: String,
    /// As the parameters of `/v1/traffic`.
    #[serde(default)]
    filter: BTreeMap<String, String>,
}

impl Keeping {
    fn filter(&self) -> Result<TrafficFilter, Complaint> {
        let wrong = |message: String| Complaint::new(StatusCode::BAD_REQUEST, message);
        let mut filter = TrafficFilter::default();
        for (name, value) in &self.filter {
            if !filter.set(name, value).map_err(wrong)? {
                return Err(wrong(format!("`{name}` means nothing here.")));
            }
        }
        Ok(filter)
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The HTTP status.
    pub status: StatusCode,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do, in a sentence.
    pub advice: Option<String>,
    /// Details for programs: the faults of a catalog.
    pub faults: Option<Value>,
}

impl Complaint {
    /// A complaint without advice.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), advice: None, faults: None }
    }

    /// This gateway does not do that.
    fn absent() -> Self {
        Self::new(StatusCode::NOT_FOUND, "This gateway does not do that.")
    }

    /// There is no server by that name.
    pub fn no_server(name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        Self::new(StatusCode::NOT_FOUND, format!("There is no server `{name}`."))
            .advice("See those there are with `trunkline ps`.")
    }

    /// Adds advice.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The JSON body of the response.
    pub fn to_json(&self) -> Value {
        let mut error = json!({ "message": self.message, "advice": self.advice });
        if let Some(faults) = &self.faults {
            error["faults"] = faults.clone();
        }
        json!({ "error": error })
    }
}

impl From<Failure> for Complaint {
    fn from(failure: Failure) -> Self {
        let advice = failure.advice.clone();
        let told = Failure { advice: None, ..failure };
        Self { status: StatusCode::CONFLICT, message: told.to_string(), advice, faults: None }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.advice.iter().try_for_each(|it| write!(f, " {it}"))
    }
}

impl std::error::Error for Complaint {}

/// Answers until `shutdown`.
pub async fn serve(
    opened: Opened,
    operate: Arc<impl Operate>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let Opened { listener, entry, certificates, socket, console, beside, files, .. } = opened;
    // The second listener ends with the first.
    let (ends, ended) = oneshot::channel::<()>();
    let mut others = JoinSet::new();
    if let Some((listener, entry)) = beside {
        let (operate, console) = (Arc::clone(&operate), Arc::clone(&console));
        let admin = Arc::new(routes::Admin::new(operate, entry, console, files));
        let shutdown = async move { drop(ended.await) };
        others.spawn(trunkline_transport::http::serve(listener, admin, limits(), shutdown));
    }
    let admin = Arc::new(routes::Admin::new(operate, entry, console, files));
    let shutdown = async move {
        shutdown.await;
        drop(ends);
    };
    let served = trunkline_transport::http::serve(listener, admin, limits(), shutdown);
    let served = match certificates {
        None => served.await,
        Some(certificates) => {
            let complain = |error| tracing::error!(%error, "certificates are not in order");
            tokio::select! {
                served = served => served,
                never = certificates.watch(complain) => match never {},
            }
        }
    };
    drop(socket);
    while others.join_next().await.is_some() {}
    served
}

/// The API without a listener: for fuzzing.
pub(crate) fn in_memory<O: Operate>(operate: Arc<O>, token: Option<&str>) -> routes::Admin<O> {
    let console = console::Console::new(None);
    routes::Admin::new(operate, open::Entry::in_memory(token), console, None)
}

/// Few operators send short requests, but for the calls that they try.
fn limits() -> Limits {
    Limits::default()
        .connections(64)
        .body_bytes(64 << 10)
        .header_bytes(16 << 10)
        .body_read(Duration::from_secs(10))
        .shutdown(Duration::from_secs(2))
}
