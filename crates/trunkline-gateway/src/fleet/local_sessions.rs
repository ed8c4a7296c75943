//! `whenAway: local`: a session that begins while the store is away lives in this replica alone.
//!
//! Its id names this replica, so any other forwards its requests here. It ends with this process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use trunkline_auth::seal::Sealer;
use trunkline_transport::http::replicas::{
    ClaimName, KeptEvent, Lookup, Peer, Place, Replicas, SessionRecord, Unavailable,
};

/// Replicas, of which each opens sessions of its own while the store is away.
pub struct LocalSessions {
    inner: Arc<dyn Replicas>,
    sealer: Sealer,
    open: Mutex<HashSet<String>>,
    /// Whether there is any, so that requests of other sessions need no lock.
    any: AtomicBool,
}

impl LocalSessions {
    /// Adds local sessions to `inner`, whose replicas share these keys.
    pub fn new(inner: Arc<dyn Replicas>, keys: &[[u8; 32]]) -> Self {
        Self {
            inner,
            sealer: Sealer::new(keys),
            open: Mutex::default(),
            any: AtomicBool::new(false),
        }
    }

    fn is_ours(&self, id: &str) -> bool {
        self.any.load(Ordering::Acquire) && self.lock().contains(id)
    }

    /// The replica of a local session.
    fn owner(&self, id: &str) -> Option<String> {
        let owner = self.sealer.open(id, CONTEXT, SystemTime::now()).ok()?;
        String::from_utf8(owner).ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replicas for LocalSessions {
    fn me(&self) -> &str {
        self.inner.me()
    }

    fn may_answer(&self, id: &str) -> bool {
        self.inner.may_answer(id) || self.is_ours(id)
    }

    fn open(&self, record: SessionRecord) -> Lookup<'_, Result<String, Unavailable>> {
        Box::pin(async move {
            if let Ok(id) = self.inner.open(record).await {
                return Ok(id);
            }
            let id = self.sealer.seal(self.me().as_bytes(), CONTEXT, SystemTime::now() + LIFE);
            let mut open = self.lock();
            open.insert(id.clone());
            self.any.store(true, Ordering::Release);
            drop(open);
            tracing::warn!("the store is away: a session begins that ends with this replica");
            Ok(id)
        })
    }

    fn locate<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        Box::pin(async move {
            match self.owner(id) {
                None => self.inner.locate(id).await,
                Some(owner) if owner != self.me() => self.inner.locate_replica(&owner).await,
                Some(_) if self.is_ours(id) => Ok(Place::Here),
                Some(_) => Ok(Place::Gone),
            }
        })
    }

    fn found_lately(&self, id: &str) -> Option<Peer> {
        self.inner.found_lately(id)
    }

    fn forget(&self, id: &str) {
        self.inner.forget(id);
    }

    fn is_lost(&self, id: &str) -> bool {
        !self.is_ours(id) && self.inner.is_lost(id)
    }

    fn locate_replica<'a>(&'a self, replica: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        self.inner.locate_replica(replica)
    }

    fn has_answered_all<'a>(&'a self, replica: &'a str) -> Lookup<'a, bool> {
        self.inner.has_answered_all(replica)
    }

    fn claim<'a>(&'a self, name: &'a ClaimName) -> Lookup<'a, Result<Place, Unavailable>> {
        self.inner.claim(name)
    }

    fn release<'a>(&'a self, name: &'a ClaimName) -> Lookup<'a, Result<(), Unavailable>> {
        self.inner.release(name)
    }

    fn update(&self, id: &str, record: SessionRecord) {
        if !self.is_ours(id) {
            self.inner.update(id, record);
        }
    }

    fn close<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<(), Unavailable>> {
        let mut open = self.lock();
        let was_ours = open.remove(id);
        self.any.store(!open.is_empty(), Ordering::Release);
        match was_ours {
            true => Box::pin(async { Ok(()) }),
            false => self.inner.close(id),
        }
    }

    fn keep(&self, id: &str, event: KeptEvent) {
        if !self.is_ours(id) {
            self.inner.keep(id, event);
        }
    }

    fn kept<'a>(
        &'a self,
        id: &'a str,
        stream: u64,
        after: u64,
    ) -> Lookup<'a, Result<Vec<KeptEvent>, Unavailable>> {
        match self.is_ours(id) {
            true => Box::pin(async { Ok(Vec::new()) }),
            false => self.inner.kept(id, stream, after),
        }
    }
}

const CONTEXT: &[u8] = b"trunkline gateway\0local session";
/// Longer than any process runs.
const LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Away;

    #[tokio::test]
    async fn a_local_session_is_served_where_it_began_and_found_from_elsewhere() {
        let [a, b] = ["a", "b"].map(|me| LocalSessions::new(Arc::new(Away(me)), &[[7; 32]]));
        let id = a.open(SessionRecord::default()).await.unwrap();
        assert!(id.len() < 300 && id.bytes().all(|it| it.is_ascii_graphic()), "{id}");
        assert!(a.may_answer(&id) && !a.is_lost(&id) && !b.may_answer(&id));
        assert_eq!(a.locate(&id).await, Ok(Place::Here));
        assert!(matches!(b.locate(&id).await, Ok(Place::At(peer)) if peer.id == "a"));
        assert_eq!(b.locate("another").await, Err(Unavailable), "that takes the store");
        a.update(&id, SessionRecord::default());
        assert_eq!(a.kept(&id, 0, 0).await, Ok(Vec::new()));
        assert_eq!(a.close(&id).await, Ok(()));
        assert!(!a.may_answer(&id));
        assert_eq!(a.locate(&id).await, Ok(Place::Gone));
    }
}
