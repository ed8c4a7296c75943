//! Where several processes check proofs: which were used anywhere.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fetch::Pending;

/// Remembers DPoP proofs for all servers behind one load balancer.
pub trait Replays: Send + Sync + 'static {
    /// Whether a proof of this name is used for the first time, anywhere. It is remembered for at least
    /// `life`. `None`: that cannot be told now, and the request is refused with 503.
    fn is_first<'a>(&'a self, name: &'a str, life: Duration) -> Pending<'a, Option<bool>>;
}

/// The memory that a gate shares with others.
#[derive(Clone)]
pub(crate) struct SharedReplays(pub(crate) Arc<dyn Replays>);

impl fmt::Debug for SharedReplays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
