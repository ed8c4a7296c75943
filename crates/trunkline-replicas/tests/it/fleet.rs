//! A store and a network between replicas that a test can cut, on a clock that only the test moves.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use trunkline_replicas::{Pinger, Replica, Settings};
use trunkline_store::{
    Capabilities, Entry, Expect, Lease, Listener, Memory, Page, Pending, Store, StoreError, Swap,
    Version,
};
use trunkline_transport::http::replicas::{Lookup, Peer, Place, Replicas, SessionRecord};

/// Replicas that share a store.
pub(crate) struct Fleet {
    pub(crate) memory: Arc<Memory>,
    is_store_away: Arc<AtomicBool>,
    network: Arc<Network>,
    started: u32,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let (memory, is_store_away, network) = Default::default();
        Self { memory, is_store_away, network, started: 0 }
    }

    /// Starts a replica and waits until it can open sessions.
    pub(crate) async fn start(&mut self) -> Arc<Replica> {
        let url = format!("http://10.0.0.{}:7474", self.started);
        self.started += 1;
        self.start_at(&url).await
    }

    pub(crate) async fn start_at(&mut self, url: &str) -> Arc<Replica> {
        let (url, network) = (url.to_owned(), Arc::clone(&self.network));
        let (inner, is_away) = (Arc::clone(&self.memory), Arc::clone(&self.is_store_away));
        let switch = Switch { of: url.clone(), inner, is_away, network: Arc::clone(&network) };
        let mut settings = Settings::new(Arc::new(switch), &[[7; 32]], &*url);
        settings.pinger = Some(Arc::new(Line { from: url.clone(), network }));
        let replica = Replica::start(settings).expect("there is a key");
        self.network.listen(&url, &replica);
        replica.until_ready().await;
        replica
    }

    /// Starts several that know each other.
    pub(crate) async fn start_many<const N: usize>(&mut self) -> [Arc<Replica>; N] {
        let mut list = Vec::new();
        for _ in 0..N {
            list.push(self.start().await);
        }
        until(|| list.iter().all(|it| it.peers().len() == N - 1)).await;
        // The rosters settle.
        pass(SECOND).await;
        list.try_into().expect("as many as were started")
    }

    /// No ping reaches a replica or comes from it.
    pub(crate) fn isolate(&self, replica: &Replica) {
        self.network.cut.lock().unwrap().insert(replica.url().to_owned());
    }

    /// Neither the store nor another replica hears of a replica.
    pub(crate) fn stop(&self, replica: &Replica) {
        self.isolate(replica);
        self.network.without_store.lock().unwrap().insert(replica.url().to_owned());
    }

    /// All reach each other and the store.
    pub(crate) fn reconnect(&self) {
        self.network.cut.lock().unwrap().clear();
        self.network.without_store.lock().unwrap().clear();
    }

    pub(crate) fn set_store_away(&self, is_away: bool) {
        self.is_store_away.store(is_away, Ordering::Relaxed);
    }

    /// The store loses everything.
    pub(crate) async fn wipe(&self) {
        for item in self.memory.scan("", None, 1_000).await.unwrap().items {
            self.memory.delete(&item.key).await.unwrap();
        }
    }
}

#[derive(Default)]
struct Network {
    replicas: Mutex<HashMap<String, Weak<Replica>>>,
    cut: Mutex<HashSet<String>>,
    without_store: Mutex<HashSet<String>>,
}

impl Network {
    fn listen(&self, url: &str, replica: &Arc<Replica>) {
        self.replicas.lock().unwrap().insert(url.to_owned(), Arc::downgrade(replica));
    }
}

/// The way of one replica's pings.
struct Line {
    from: String,
    network: Arc<Network>,
}

impl Pinger for Line {
    fn ping<'a>(
        &'a self,
        peer: &'a Peer,
        question: Vec<u8>,
        _: Duration,
    ) -> Lookup<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let cut = self.network.cut.lock().unwrap().clone();
            if cut.contains(&self.from) || cut.contains(&peer.url) {
                return None;
            }
            let there = self.network.replicas.lock().unwrap().get(&peer.url)?.upgrade()?;
            there.answer_ping(&question)
        })
    }
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Lets time pass in small steps, so that everything happens in its order.
pub(crate) async fn pass(time: Duration) {
    let step = Duration::from_millis(10);
    for _ in 0..time.as_millis().div_ceil(step.as_millis()) {
        tokio::time::advance(step).await;
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
}

/// Lets time pass until something is so; panics after a minute.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if is_so() {
            return;
        }
        pass(Duration::from_millis(10)).await;
    }
    panic!("it is not so after a minute");
}

pub(crate) fn record(hello: &str) -> SessionRecord {
    SessionRecord { path: "/mcp".to_owned(), hello: hello.to_owned(), ..SessionRecord::default() }
}

pub(crate) fn at(replica: &Replica) -> Place {
    Place::At(Peer { id: replica.me().to_owned(), url: replica.url().to_owned() })
}

/// The store as one replica sees it: it can be switched away from this one, or from all.
struct Switch {
    of: String,
    inner: Arc<Memory>,
    is_away: Arc<AtomicBool>,
    network: Arc<Network>,
}

impl Switch {
    fn ask<'a, T: 'a>(&'a self, pending: Pending<'a, T>) -> Pending<'a, T> {
        let is_cut = self.network.without_store.lock().unwrap().contains(&self.of);
        if is_cut || self.is_away.load(Ordering::Relaxed) {
            let away = StoreError::Unavailable("The store is switched away.".to_owned());
            return Box::pin(async { Err(away) });
        }
        pending
    }
}

impl Store for Switch {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        self.ask(self.inner.get(key))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: &'a [u8],
        ttl: Option<Duration>,
    ) -> Pending<'a, Version> {
        self.ask(self.inner.put(key, value, ttl))
    }

    fn swap<'a>(
        &'a self,
        key: &'a str,
        expect: Expect,
        value: &'a [u8],
        ttl: Option<Duration>,
    ) -> Pending<'a, Swap> {
        self.ask(self.inner.swap(key, expect, value, ttl))
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool> {
        self.ask(self.inner.delete(key))
    }

    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Option<Duration>) -> Pending<'a, i64> {
        self.ask(self.inner.count(key, by, ttl))
    }

    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>> {
        self.ask(self.inner.lease(name, ttl))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool> {
        self.ask(self.inner.renew(lease, ttl))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool> {
        self.ask(self.inner.release(lease))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Pending<'a, Page> {
        self.ask(self.inner.scan(prefix, after, limit))
    }

    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()> {
        self.ask(self.inner.publish(channel, message))
    }

    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener> {
        self.ask(self.inner.listen(channel))
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities().shared(true)
    }
}
