//! Replicas in one process, over one store that can go away.

mod claims;
mod fleet;
mod leave;
mod outage;
mod takeover;
