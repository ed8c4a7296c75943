//! The client's cache of results, for as long as the server says that they stay fresh.
//!
//! Only 2026-07-28 has such hints. A client is one authorization context, so it may cache private
//! results beside public ones; neither ever leaves the client.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use trunkline_proto::Change;
use trunkline_wire::era::stateless::decode_cache;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;

/// The cached results of one server.
pub(super) struct Cache {
    entries: usize,
    bytes: usize,
    state: Mutex<State>,
}

/// A request. Two requests with the same key have the same result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    method: Method,
    params: String,
}

/// When a request was sent, counted in changes: its result may predate later changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch(u64);

#[derive(Default)]
struct State {
    kept: HashMap<Key, Entry>,
    bytes: usize,
    /// How often a change invalidated something.
    changes: u64,
    /// How often the cache was read, for LRU eviction.
    uses: u64,
}

struct Entry {
    result: Json,
    until: Instant,
    used: u64,
}

impl Cache {
    /// Caches at most this many results and bytes. Zero disables the cache.
    pub(super) fn new(entries: usize, bytes: usize) -> Self {
        Self { entries, bytes, state: Mutex::default() }
    }

    /// The key of a request, if its result may be cached.
    pub(super) fn key(&self, method: Method, params: &Object) -> Option<Key> {
        let is_on = self.entries > 0 && self.bytes > 0;
        if !is_on || !CACHEABLE.contains(&method) {
            return None;
        }
        let mut members: Vec<_> = params.iter().filter(|(name, _)| *name != "_meta").collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        let mut sorted = Object::default();
        for (name, value) in members {
            sorted.set(name.to_owned(), value.clone());
        }
        Some(Key { method, params: sorted.to_json().get().to_owned() })
    }

    /// The current epoch.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.lock().changes)
    }

    /// A fresh result.
    pub(super) fn get(&self, key: &Key) -> Option<Json> {
        let mut state = self.lock();
        state.uses += 1;
        let used = state.uses;
        let entry = state.kept.get_mut(key)?;
        if entry.until <= Instant::now() {
            state.remove(key);
            return None;
        }
        entry.used = used;
        Some(entry.result.clone())
    }

    /// Caches a new result for its TTL, unless something changed since the request was sent. It
    /// replaces what was cached for the same request in any case.
    pub(super) fn put(&self, key: Key, result: &Json, asked: Epoch) {
        let ttl = Duration::from_millis(decode_cache(result).ttl_ms).min(LONGEST);
        let now = Instant::now();
        let mut state = self.lock();
        state.remove(&key);
        let size = key.weight(result);
        if ttl.is_zero() || size > self.bytes || asked != Epoch(state.changes) {
            return;
        }
        state.make_room(self.entries - 1, self.bytes - size, now);
        state.uses += 1;
        let entry = Entry { result: result.clone(), until: now + ttl, used: state.uses };
        state.bytes += size;
        state.kept.insert(key, entry);
    }

    /// Invalidates what a change concerns.
    pub(super) fn forget(&self, change: &Change) {
        match change {
            Change::Tools => self.forget_if(|key| key.method == Method::ToolsList),
            Change::Prompts => self.forget_if(|key| key.method == Method::PromptsList),
            Change::Resources => self.forget_if(|key| {
                matches!(key.method, Method::ResourcesList | Method::ResourcesTemplatesList)
            }),
            Change::Resource(uri) => self.forget_if(|key| key.reads(uri)),
            Change::Task(..) | Change::ElicitationComplete(_) => {}
        }
    }

    /// Removes every result of `method`.
    pub(super) fn forget_method(&self, method: Method) {
        self.forget_if(|key| key.method == method);
    }

    /// Removes everything.
    pub(super) fn clear(&self) {
        self.forget_if(|_| true);
    }

    fn forget_if(&self, is_stale: impl Fn(&Key) -> bool) {
        let mut state = self.lock();
        state.changes += 1;
        let State { kept, bytes, .. } = &mut *state;
        kept.retain(|key, entry| {
            let stays = !is_stale(key);
            if !stays {
                *bytes -= key.weight(&entry.result);
            }
            stays
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(1000, 8 << 20)
    }
}

impl Key {
    fn weight(&self, result: &Json) -> usize {
        // The constant estimates the overhead of an entry.
        self.params.len() + result.get().len() + 128
    }

    /// Whether this request reads the changed resource or one that contains it or is contained in
    /// it: servers may announce a sub-resource of a subscribed resource.
    fn reads(&self, changed: &str) -> bool {
        if self.method != Method::ResourcesRead {
            return false;
        }
        let params = Object::parse(&self.params).ok();
        let uri = params.and_then(|it| it.get("uri")?.to::<String>().ok());
        uri.is_none_or(|uri| uri.starts_with(changed) || changed.starts_with(&uri))
    }
}

impl State {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.kept.remove(key) {
            self.bytes -= key.weight(&entry.result);
        }
    }

    /// Evicts stale entries and then the least recently used ones until this much is left.
    fn make_room(&mut self, entries: usize, bytes: usize, now: Instant) {
        if self.kept.len() <= entries && self.bytes <= bytes {
            return;
        }
        let mut order: Vec<_> = self
            .kept
            .iter()
            .map(|(key, entry)| ((entry.until > now).then_some(entry.used), key.clone()))
            .collect();
        order.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in order {
            if self.kept.len() <= entries && self.bytes <= bytes {
                return;
            }
            self.remove(&key);
        }
    }
}

/// The cacheable methods. `server/discover` is left to the handshake and to `ping`, which needs a
/// current answer.
const CACHEABLE: [Method; 5] = [
    Method::ToolsList,
    Method::PromptsList,
    Method::ResourcesList,
    Method::ResourcesTemplatesList,
    Method::ResourcesRead,
];

/// The longest TTL, whatever the server says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Object {
        Object::parse(text).unwrap()
    }

    fn answer(ttl_ms: impl std::fmt::Display, text: &str) -> Json {
        let text = format!(r#"{{"ttlMs":{ttl_ms},"cacheScope":"private","text":"{text}"}}"#);
        Json::parse(text).unwrap()
    }

    fn read(cache: &Cache, uri: &str) -> Key {
        cache.key(Method::ResourcesRead, &params(&format!(r#"{{"uri":"{uri}"}}"#))).unwrap()
    }

    fn list(cache: &Cache, method: Method) -> Key {
        cache.key(method, &Object::default()).unwrap()
    }

    fn put(cache: &Cache, key: &Key, ttl_ms: u64) {
        cache.put(key.clone(), &answer(ttl_ms, ""), cache.epoch());
    }

    #[test]
    fn a_key_is_what_was_asked_and_nothing_else() {
        let cache = Cache::default();
        let key = |text: &str| cache.key(Method::ResourcesRead, &params(text)).unwrap();
        assert_eq!(key(r#"{"uri":"a","x":1}"#), key(r#"{"x":1,"_meta":{"y":2},"uri":"a"}"#));
        assert_ne!(key(r#"{"uri":"a"}"#), key(r#"{"uri":"b"}"#));
        assert_ne!(list(&cache, Method::ToolsList), list(&cache, Method::PromptsList));
        let page = cache.key(Method::ToolsList, &params(r#"{"cursor":""}"#)).unwrap();
        assert_ne!(page, list(&cache, Method::ToolsList));
        for method in [
            Method::ToolsCall,
            Method::ServerDiscover,
            Method::PromptsGet,
            Method::CompletionComplete,
        ] {
            assert_eq!(cache.key(method, &Object::default()), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_fresh_as_long_as_it_says() {
        let cache = Cache::default();
        let key = list(&cache, Method::ToolsList);
        put(&cache, &key, 1000);
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(cache.get(&key).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(cache.get(&key), None);
        assert_eq!(cache.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_says_nothing_useful_is_not_kept() {
        let cache = Cache::default();
        let key = list(&cache, Method::ToolsList);
        for ttl in ["0", "-1", "1.5", "\"1000\"", "null", "99999999999999999999999"] {
            put(&cache, &key, 1000);
            cache.put(key.clone(), &answer(ttl, ""), cache.epoch());
            assert_eq!(cache.get(&key), None, "{ttl}");
        }
        cache.put(key.clone(), &Json::empty_object(), cache.epoch());
        assert_eq!(cache.get(&key), None);
        put(&cache, &key, u64::MAX);
        assert!(cache.get(&key).is_some());
        tokio::time::advance(LONGEST).await;
        assert_eq!(cache.get(&key), None);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_make_stale_what_they_change() {
        let all = |cache: &Cache| {
            let mut keys: Vec<_> = CACHEABLE[..4].iter().map(|it| list(cache, *it)).collect();
            keys.extend(["demo://a", "demo://a/part", "demo://b"].map(|uri| read(cache, uri)));
            keys
        };
        let cases = [
            (Change::Tools, vec!["tools/list"]),
            (Change::Prompts, vec!["prompts/list"]),
            (Change::Resources, vec!["resources/list", "resources/templates/list"]),
            (Change::Resource("demo://b".to_owned()), vec!["demo://b"]),
            (Change::Resource("demo://a/part".to_owned()), vec!["demo://a", "demo://a/part"]),
            (Change::Resource("demo://a".to_owned()), vec!["demo://a", "demo://a/part"]),
            (Change::ElicitationComplete("x".to_owned()), vec![]),
        ];
        for (change, expected) in cases {
            let cache = Cache::default();
            all(&cache).iter().for_each(|key| put(&cache, key, 1000));
            cache.forget(&change);
            let gone: Vec<_> =
                all(&cache).into_iter().filter(|key| cache.get(key).is_none()).collect();
            let names: Vec<_> = gone
                .iter()
                .map(|key| match params(&key.params).get("uri") {
                    Some(uri) => uri.to::<String>().unwrap(),
                    None => key.method.name().to_owned(),
                })
                .collect();
            assert_eq!(names, expected, "{change:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_from_before_a_change_is_not_kept() {
        let cache = Cache::default();
        let key = list(&cache, Method::ToolsList);
        let asked = cache.epoch();
        cache.forget(&Change::Tools);
        cache.put(key.clone(), &answer(1000, "old"), asked);
        assert_eq!(cache.get(&key), None);
    }

    #[tokio::test(start_paused = true)]
    async fn bounds_hold_and_what_is_used_stays() {
        let cache = Cache::new(3, 10_000);
        let keys: Vec<_> = (0..4).map(|at| read(&cache, &format!("demo://{at}"))).collect();
        keys[..3].iter().for_each(|key| put(&cache, key, 1000));
        assert!(cache.get(&keys[0]).is_some());
        put(&cache, &keys[3], 1000);
        let kept: Vec<_> = keys.iter().map(|key| cache.get(key).is_some()).collect();
        assert_eq!(kept, [true, false, true, true]);

        let large = "x".repeat(9_800);
        cache.put(keys[1].clone(), &answer(1000, &large), cache.epoch());
        assert_eq!(cache.lock().kept.len(), 1);
        assert!(cache.lock().bytes <= 10_000);
        cache.put(keys[2].clone(), &answer(1000, &large.repeat(2)), cache.epoch());
        assert_eq!(cache.get(&keys[2]), None);
        assert!(cache.get(&keys[1]).is_some());
        cache.clear();
        assert_eq!(cache.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_stale_goes_before_what_is_fresh() {
        let cache = Cache::new(2, 10_000);
        let keys: Vec<_> = (0..3).map(|at| read(&cache, &format!("demo://{at}"))).collect();
        put(&cache, &keys[0], 5000);
        put(&cache, &keys[1], 10);
        tokio::time::advance(Duration::from_millis(20)).await;
        put(&cache, &keys[2], 5000);
        assert!(cache.get(&keys[0]).is_some());
        assert!(cache.get(&keys[2]).is_some());
    }

    #[test]
    fn with_nothing_allowed_nothing_is_kept() {
        for cache in [Cache::new(0, 1000), Cache::new(10, 0)] {
            assert_eq!(cache.key(Method::ToolsList, &Object::default()), None);
        }
    }
}
