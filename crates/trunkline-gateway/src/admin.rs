//! The admin API: requests of operators, answered as JSON.
//!
//! [`open`] binds the listener and protects it; [`serve`] answers there with what [`Operate`] provides.
//! [`health`] also serves the main listener.

mod answer;
mod open;
mod routes;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use trunkline_transport::Limits;

use crate::failure::Failure;
use crate::policy::pins::Approval;

pub use answer::health;
pub use open::{Opened, open, open_at};

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
    let Opened { listener, entry, certificates, socket, .. } = opened;
    let admin = Arc::new(routes::Admin::new(operate, entry));
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
    served
}

/// The API without a listener: for fuzzing.
pub(crate) fn in_memory<O: Operate>(operate: Arc<O>, token: Option<&str>) -> routes::Admin<O> {
    routes::Admin::new(operate, open::Entry::in_memory(token))
}

/// Few operators send short requests.
fn limits() -> Limits {
    Limits::default()
        .connections(64)
        .body_bytes(64 << 10)
        .header_bytes(16 << 10)
        .body_read(Duration::from_secs(10))
        .shutdown(Duration::from_secs(2))
}
