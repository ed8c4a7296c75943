//! What tests of several modules share.

use std::sync::Arc;

use crate::Settings;
use crate::catalog::plan::Plan;
use crate::catalog::{Process, load};

/// The plan of a catalog without faults.
pub(crate) fn plan(text: &str) -> Plan {
    load(text, "/etc/trunkline.yaml".as_ref(), &Process).unwrap().plan
}

/// Settings that keep everything in memory.
pub(crate) fn settings() -> Settings {
    Settings {
        store: Arc::new(trunkline_store::Memory::default()),
        pins: None,
        accounts: Arc::new(trunkline_transport::auth::MemoryVault::new()),
        logins: None,
        limits: trunkline_transport::Limits::default(),
        otel: None,
        lasting: None,
        fleet: None,
        sessions: None,
    }
}
