//! Replicas in one process, over one store that can go away.

mod fleet;
mod leave;
mod outage;
mod takeover;
