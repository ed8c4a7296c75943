//! A store and a network between replicas that a test can cut, on a clock that only the test moves.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use trunkline_replicas::{Pinger, Replica, Settings};
use trunkline_store::suite::Switched;
use trunkline_store::{Memory, Store};
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

    /// Replicas that know each other, and the id of a session that the first has opened.
    pub(crate) async fn serving<const N: usize>() -> (Self, [Arc<Replica>; N], String) {
        let mut fleet = Self::new();
        let replicas = fleet.start_many().await;
        let id = replicas[0].open(record("hello")).await.unwrap();
        (fleet, replicas, id)
    }

    /// Starts a replica and waits until it can open sessions.
    pub(crate) async fn start(&mut self) -> Arc<Replica> {
        let url = format!("http://10.0.0.{}:7474", self.started);
        self.started += 1;
        self.start_at(&url).await
    }

    pub(crate) async fn start_at(&mut self, url: &str) -> Arc<Replica> {
        let (url, network) = (url.to_owned(), Arc::clone(&self.network));
        let store = Switched::new(Arc::clone(&self.memory), self.switch(&url));
        let mut settings = Settings::new(Arc::new(store), &[[7; 32]], &*url);
        settings.pinger = Some(Arc::new(Line { from: url.clone(), network }));
        let replica = Replica::start(settings).expect("there is a key");
        self.network.listen(&url, &replica);
        replica.until_ready().await;
        replica
    }

    /// Whether the store is away from one replica, or from all.
    fn switch(&self, url: &str) -> impl Fn() -> bool + Send + Sync + 'static {
        let (url, network) = (url.to_owned(), Arc::clone(&self.network));
        let is_away = Arc::clone(&self.is_store_away);
        move || {
            network.without_store.lock().unwrap().contains(&url) || is_away.load(Ordering::Relaxed)
        }
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
