//! Stores [`Lists`], so that they are served while no instance runs and after a restart.
//!
//! A cache: an unreadable entry counts as a miss, and a failed write is retried later. It holds only what
//! servers say of themselves, under the hash of a fingerprint.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::warn;
use trunkline_auth::digest::sha256;
use trunkline_store::Store;

use crate::merge::Lists;

/// Lists that outlive the process.
pub(crate) struct Cache {
    store: Arc<dyn Store>,
    /// The etag that the store holds under each key, as far as we know.
    kept: Mutex<HashMap<Box<str>, Box<str>>>,
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

#[derive(Deserialize)]
struct Read {
    lists: Lists,
}

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    lists: &'a Lists,
}

impl Cache {
    /// A cache in this store.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, kept: Mutex::default() }
    }

    /// The last lists of a server with this fingerprint.
    pub(crate) async fn load(&self, fingerprint: &str) -> Option<Lists> {
        let key = key(fingerprint);
        let entry = match self.store.get(&key).await {
            Ok(entry) => entry?,
            Err(error) => {
                warn!(%error, "cached lists cannot be read");
                return None;
            }
        };
        let lists = decode(&entry.value)?;
        self.remember(&key, lists.etag());
        Some(lists)
    }

    /// Stores the lists of a server with this fingerprint. Free if they are stored already. Returns whether
    /// they were not.
    pub(crate) async fn save(&self, fingerprint: &str, lists: &Lists) -> bool {
        let key = key(fingerprint);
        if self.is_kept(&key, lists.etag()) {
            return false;
        }
        let value = serde_json::to_vec(&Written { version: VERSION, lists })
            .expect("the protocol's own types are always writable as JSON");
        match self.store.put(&key, &value, Some(TTL)).await {
            Ok(_) => {
                self.remember(&key, lists.etag());
                true
            }
            Err(error) => {
                warn!(%error, "lists cannot be cached");
                false
            }
        }
    }

    fn is_kept(&self, key: &str, etag: &str) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).is_some_and(|it| **it == *etag)
    }

    fn remember(&self, key: &str, etag: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(key.into(), etag.into());
    }
}

fn decode(value: &[u8]) -> Option<Lists> {
    let lists = match serde_json::from_slice::<Head>(value) {
        // Another version of the gateway wrote it, and will read it again.
        Ok(head) if head.version != VERSION => return None,
        Ok(_) => serde_json::from_slice::<Read>(value).map(|it| it.lists),
        Err(error) => Err(error),
    };
    match lists {
        Ok(lists) if lists.is_sound() => Some(lists),
        Ok(_) => {
            warn!("cached lists are ignored: they are not what was written");
            None
        }
        Err(error) => {
            warn!(%error, "cached lists are ignored: they are damaged");
            None
        }
    }
}

/// Hashed: a fingerprint has any length, and the store must not reveal it.
fn key(fingerprint: &str) -> String {
    format!("lists/{}", &sha256(fingerprint.as_bytes())["sha256:".len()..])
}

const VERSION: u32 = 1;
/// Entries of servers that left every catalog expire.
const TTL: Duration = Duration::from_secs(90 * 24 * 3600);

#[cfg(test)]
mod tests {
    use trunkline_store::Memory;
    use trunkline_wire::json::Json;
    use trunkline_wire::model::{Implementation, ListChanged, ServerCapabilities};
    use trunkline_wire::revision::Revision;

    use super::*;
    use crate::merge::{Draft, Kind};

    fn lists(page: &str) -> Lists {
        let capabilities = ServerCapabilities::new().tools(ListChanged::new(true));
        let info = Implementation::new("git", "1");
        let mut draft = Draft::new(Revision::V2025_06_18, info, capabilities, Some("Hi.".into()));
        draft.add(Kind::Tools, &Json::parse(page).unwrap()).unwrap();
        draft.finish()
    }

    const PAGE: &str = r#"{"tools":[{"name":"log","inputSchema":{"type":"object","properties":{"n":{"maximum":1.50}}},"_meta":{"x/y":[1.0]}}]}"#;

    /// A store with the lists of `f`, and the cache that saved them.
    async fn saved() -> (Arc<dyn Store>, Cache) {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let cache = Cache::new(store.clone());
        cache.save("f", &lists(PAGE)).await;
        (store, cache)
    }

    #[tokio::test]
    async fn saved_lists_are_loaded_by_another_process() {
        let (saved, cache) = (lists(PAGE), Cache::new(saved().await.0));
        let loaded = cache.load("f").await.unwrap();
        assert_eq!(loaded, saved);
        assert_eq!(loaded.tools[0].input_schema.get(), saved.tools[0].input_schema.get());
        assert_eq!(cache.load("f2").await, None);
    }

    #[tokio::test]
    async fn unchanged_lists_are_not_written_again() {
        let (store, cache) = saved().await;
        let first = store.get(&key("f")).await.unwrap().unwrap().version;
        cache.save("f", &lists(PAGE)).await;
        assert_eq!(store.get(&key("f")).await.unwrap().unwrap().version, first);
        cache.save("f", &lists(r#"{"tools":[]}"#)).await;
        assert_ne!(store.get(&key("f")).await.unwrap().unwrap().version, first);
        // Another process that has read it knows the etag, too.
        let other = Cache::new(store.clone());
        let now = store.get(&key("f")).await.unwrap().unwrap().version;
        let read = other.load("f").await.unwrap();
        other.save("f", &read).await;
        assert_eq!(store.get(&key("f")).await.unwrap().unwrap().version, now);
    }

    #[tokio::test]
    async fn damaged_and_foreign_entries_are_cache_misses() {
        let (store, cache) = saved().await;
        let good = store.get(&key("f")).await.unwrap().unwrap().value;
        let good = String::from_utf8(good.to_vec()).unwrap();
        for bad in [
            "",
            "not JSON",
            "{}",
            &good[..good.len() / 2],
            &good.replace(r#""log""#, r#""rm""#),
            &good.replace("2025-06-18", "1999-01-01"),
            &good.replace(r#""version":1,"#, r#""version":2,"#),
        ] {
            assert_ne!(bad, good);
            store.put(&key("f"), bad.as_bytes(), None).await.unwrap();
            assert_eq!(cache.load("f").await, None, "{bad}");
        }
        // And the next good one takes their place.
        store.put(&key("f"), good.as_bytes(), None).await.unwrap();
        assert_eq!(cache.load("f").await, Some(lists(PAGE)));
    }
}
