//! The pool of one server: starts instances on demand, lends them to calls, and stops them when idle.
//!
//! `state.rs` decides (no clock, no lock, no task), `run.rs` acts. Neither knows MCP: a [`Backend`] defines
//! what an instance is.
//!
//! Invariant: there are never more than `max_instances` processes, including those that are stopping. A start
//! that needs the place of a stopping process waits until that process is gone.

mod run;
mod state;
mod status;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Failure;

pub(crate) use run::Leasing;
pub use run::{Hold, Lease, Parking, Pool};
pub use status::{InstanceStatus, PoolStatus};

/// A future returned by a backend.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts and stops instances.
pub trait Backend: Send + Sync + 'static {
    /// A process or a connection.
    type Instance: Send + Sync + 'static;

    /// Spawns the process or opens the connection, and completes the handshake. `id` is unique for the lifetime
    /// of the gateway's process. Dropping the future must stop what it has begun. `owner` is the principal that
    /// the instance will belong to; it never changes where [`ServerPlan::per_user`] is set.
    ///
    /// [`ServerPlan::per_user`]: crate::catalog::plan::ServerPlan
    fn start(
        &self,
        id: u64,
        profile: Profile,
        owner: Option<Arc<str>>,
    ) -> Work<Result<Self::Instance, Failure>>;

    /// Closes stdin, waits, terminates, kills; completes when the instance is gone. It is also called for
    /// instances that ended by themselves: then there is nothing to wait for.
    fn stop(&self, instance: Arc<Self::Instance>) -> Work<()>;

    /// Health probe. The error says what is wrong.
    fn probe(&self, instance: Arc<Self::Instance>) -> Work<Result<(), String>>;

    /// Completes when the instance has ended by itself.
    fn ended(&self, instance: Arc<Self::Instance>) -> Work<Failure>;
}

/// What the callers of an instance can be asked, as bits that have no meaning here. An instance keeps the
/// profile that it was opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile(pub u8);

impl Profile {
    /// Everything: the profile of a singleton.
    pub const ALL: Self = Self(0xff);

    /// Whether every bit is also set in `other`: a caller with the profile `other` can use an instance opened
    /// with this one.
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// A request for an instance.
#[derive(Clone, Debug)]
pub struct Want {
    /// The affinity key; only stateful servers use it, and `None` equals `""`.
    pub key: Option<Box<str>>,
    /// The principal that will own the instance for the rest of its life; `None` if instances are shared. For
    /// [`Cause::List`] it names an owner whose instance is as good as a shared one.
    pub owner: Option<Arc<str>>,
    /// The principal whose fair share of the pool it counts against.
    pub by: Arc<str>,
    /// What the caller can be asked.
    pub profile: Profile,
    /// Whether it must not share the instance with another call.
    pub is_alone: bool,
    /// Why it is wanted.
    pub cause: Cause,
    /// How long the caller waits for a place.
    pub patience: Duration,
}

impl Want {
    /// Whether the lease makes the caller the owner. Listing leaves no state behind, so it does not.
    pub(crate) fn owns(&self) -> bool {
        self.cause != Cause::List
    }
}

/// Why an instance was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A call.
    Call,
    /// The fetching of a list.
    List,
    /// `minReady`.
    Warm,
    /// `activation: always-on`.
    AlwaysOn,
    /// A subscription.
    Subscription,
    /// A retried call.
    Retry,
}

/// Why an instance was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Unused for the idle time.
    Idle,
    /// The last client has disconnected.
    NoClients,
    /// Its session has ended or reached its TTL.
    SessionOver,
    /// Its place was needed for an instance with another profile.
    Profile,
    /// Its place was needed for another principal.
    Owner,
    /// The catalog has changed.
    Reconfigured,
    /// The pool was closed, and no call was in flight or all have finished.
    Closed,
    /// The drain time ended with calls still in flight.
    Forced,
    /// It ended by itself.
    Ended,
    /// It failed a health probe.
    Unwell,
    /// The operator or the gateway ended it.
    Killed,
}

/// What happened in a pool, for logs and metrics.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An instance is being started.
    Starting {
        /// The instance.
        id: u64,
        /// Why.
        cause: Cause,
    },
    /// The instance is ready.
    Started {
        /// The instance.
        id: u64,
        /// Why.
        cause: Cause,
        /// How long it took.
        took: Duration,
    },
    /// The start failed.
    StartFailed {
        /// The instance.
        id: u64,
        /// Why.
        cause: Cause,
        /// How long it took.
        took: Duration,
        /// The cause.
        failure: Failure,
    },
    /// No start is tried before the pause is over.
    BackingOff {
        /// How many starts have failed in a row.
        attempt: u32,
        /// How long the pause is.
        pause: Duration,
    },
    /// No start is tried until an operator says `retry`.
    Suspended {
        /// How many starts have failed in a row.
        attempt: u32,
    },
    /// An instance is being stopped.
    Stopping {
        /// The instance.
        id: u64,
        /// Why.
        why: Why,
        /// Details, if any: the probe's error, or how the instance ended.
        detail: Option<String>,
    },
    /// The instance is gone.
    Stopped {
        /// The instance.
        id: u64,
        /// Why.
        why: Why,
        /// How long stopping took.
        took: Duration,
    },
    /// A caller has stopped waiting.
    Waited {
        /// How long it waited.
        took: Duration,
        /// Whether it got an instance.
        served: bool,
    },
    /// A caller was refused.
    Refused {
        /// The failure's reason.
        reason: &'static str,
    },
}
