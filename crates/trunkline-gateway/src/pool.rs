//! Wants of callers ⇄ instances of one server: started when wanted, shared, stopped when idle.
//!
//! `state.rs` decides (no clock, no lock, no task), `run.rs` acts. Neither knows MCP: an instance is
//! whatever a [`Backend`] makes.
//!
//! Invariant: there are never more than `max_instances` processes, those that are being stopped
//! included. A start that needs the place of a process that is going waits until it is gone.

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

pub use run::{Hold, Lease, Parking, Pool};
pub use status::{InstanceStatus, PoolStatus};

/// A future that a backend hands out.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What makes instances and ends them.
pub trait Backend: Send + Sync + 'static {
    /// A process or a connection.
    type Instance: Send + Sync + 'static;

    /// Spawns and shakes hands. `id` is unique in the process for ever. Dropping the future must
    /// stop what it has begun.
    /// `owner` is whose it will be; it never changes where [`ServerPlan::per_user`] is set.
    ///
    /// [`ServerPlan::per_user`]: crate::catalog::plan::ServerPlan
    fn start(
        &self,
        id: u64,
        profile: Profile,
        owner: Option<Arc<str>>,
    ) -> Work<Result<Self::Instance, Failure>>;

    /// Closes stdin, waits, terminates, kills; ready when it is gone. Also asked of instances that
    /// have ended by themselves: then there is nothing to wait for.
    fn stop(&self, instance: Arc<Self::Instance>) -> Work<()>;

    /// Is it well? An error says what is wrong.
    fn probe(&self, instance: Arc<Self::Instance>) -> Work<Result<(), String>>;

    /// Ready when the instance has ended by itself.
    fn ended(&self, instance: Arc<Self::Instance>) -> Work<Failure>;
}

/// What the callers of an instance can be asked, as bits that mean nothing here. An instance is
/// opened with one profile for its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile(pub u8);

impl Profile {
    /// Everything: how a singleton is opened.
    pub const ALL: Self = Self(0xff);

    /// Whether every bit of it is also one of `other`: whoever can be asked all that is in `other`
    /// can use an instance that was opened with this.
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// What a caller wants.
#[derive(Clone, Debug)]
pub struct Want {
    /// Whose instance; of meaning to a stateful server only, where `None` is the same as `""`.
    pub key: Option<Box<str>>,
    /// Whose instance it becomes for the rest of its life; `None` where anybody may have any. Of a
    /// [`Cause::List`] it is whose instance will do as well as one that is nobody's.
    pub owner: Option<Arc<str>>,
    /// Whose share of the pool it comes out of.
    pub by: Arc<str>,
    /// What the caller can be asked.
    pub profile: Profile,
    /// Whether it shares an instance with no other call.
    pub is_alone: bool,
    /// What for.
    pub cause: Cause,
    /// How long the caller waits for a place.
    pub patience: Duration,
}

impl Want {
    /// Whether what it is lent becomes its owner's. A look at the lists leaves nothing behind.
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
    /// A call that is made once more.
    Retry,
}

/// Why an instance was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Nobody used it for long enough.
    Idle,
    /// The last client has left.
    NoClients,
    /// The session that it belonged to is over or was silent for too long.
    SessionOver,
    /// Its place was needed by one that can ask its callers other things.
    Profile,
    /// Its place was needed by another principal.
    Owner,
    /// The catalog has changed.
    Reconfigured,
    /// The pool was closed and nothing was in flight, or what was has finished.
    Closed,
    /// Calls were still in flight when the time for them was up.
    Forced,
    /// It ended by itself.
    Ended,
    /// It did not answer a probe.
    Unwell,
    /// Somebody said so.
    Killed,
}

/// What happened in a pool, for logs and metrics.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An instance is being started.
    Starting {
        /// Which.
        id: u64,
        /// What for.
        cause: Cause,
    },
    /// It is ready.
    Started {
        /// Which.
        id: u64,
        /// What for.
        cause: Cause,
        /// How long it took.
        took: Duration,
    },
    /// It did not come up.
    StartFailed {
        /// Which.
        id: u64,
        /// What for.
        cause: Cause,
        /// How long it took.
        took: Duration,
        /// What was wrong.
        failure: Failure,
    },
    /// No start is tried before this time is over.
    BackingOff {
        /// How many starts have failed in a row.
        attempt: u32,
        /// How long.
        pause: Duration,
    },
    /// No start is tried until somebody says `retry`.
    Suspended {
        /// How many starts have failed in a row.
        attempt: u32,
    },
    /// An instance is being stopped.
    Stopping {
        /// Which.
        id: u64,
        /// Why.
        why: Why,
        /// More about it, if there is: what the probe said, how it ended.
        detail: Option<String>,
    },
    /// It is gone.
    Stopped {
        /// Which.
        id: u64,
        /// Why.
        why: Why,
        /// How long stopping took.
        took: Duration,
    },
    /// A caller had to wait, and does not any more.
    Waited {
        /// How long.
        took: Duration,
        /// Whether it got an instance.
        served: bool,
    },
    /// A caller was told no.
    Refused {
        /// The failure's reason.
        reason: &'static str,
    },
}
