//! What tests of several modules share.

use std::sync::Arc;

use trunkline_transport::http::replicas::{
    KeptEvent, Lookup, Peer, Place, Replicas, SessionRecord, Unavailable,
};

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

/// Replicas whose store is away.
pub(crate) struct Away(pub(crate) &'static str);

impl Replicas for Away {
    fn me(&self) -> &str {
        self.0
    }
    fn may_answer(&self, _: &str) -> bool {
        false
    }
    fn open(&self, _: SessionRecord) -> Lookup<'_, Result<String, Unavailable>> {
        Box::pin(async { Err(Unavailable) })
    }
    fn locate<'a>(&'a self, _: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        Box::pin(async { Err(Unavailable) })
    }
    fn is_lost(&self, _: &str) -> bool {
        true
    }
    fn locate_replica<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        let peer = Peer { id: id.to_owned(), url: "http://peer".to_owned() };
        Box::pin(async { Ok(Place::At(peer)) })
    }
    fn update(&self, _: &str, _: SessionRecord) {
        panic!("nothing of it is stored");
    }
    fn close<'a>(&'a self, _: &'a str) -> Lookup<'a, Result<(), Unavailable>> {
        Box::pin(async { Err(Unavailable) })
    }
    fn keep(&self, _: &str, _: KeptEvent) {
        panic!("nothing of it is stored");
    }
    fn kept<'a>(
        &'a self,
        _: &'a str,
        _: u64,
        _: u64,
    ) -> Lookup<'a, Result<Vec<KeptEvent>, Unavailable>> {
        Box::pin(async { Err(Unavailable) })
    }
}
