//! Where the instances of one server live of which there is one over all replicas: a singleton, or the instance of an
//! affinity key. The replica that holds the claim runs it; the others make their calls there.
//!
//! A claim is held under the lease that sessions have: it ends before anybody else can get it. An instance whose
//! claim has ended stops, even in the middle of a call.

mod keys;
mod places;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use trunkline_auth::Principal;
use trunkline_auth::seal::Sealer;
use trunkline_transport::http::SharedSessions;
use trunkline_transport::http::replicas::{Peer, Place, Replicas, Unavailable};
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::revision::{Era, Revisions};

use crate::catalog::plan::{Pinning, Probe, Retry, ServerPlan, Sharing};
use crate::failure::{Failure, Reason, Stage};
use crate::fleet::Fleet;
use crate::policy::redact::Redactor;
use crate::pool::Pool;
use crate::upstream::{Upstream, Way};
use crate::watcher::Watcher;

use keys::{claim_of, while_elsewhere};
pub(crate) use keys::{claimed_key, has_clients_elsewhere, is_shared_by_all, may_be_claimed};
pub(crate) use places::Places;

/// The instances of one server, over all replicas.
pub(crate) struct Placement {
    server: Arc<str>,
    fleet: Fleet,
    sealer: Sealer,
    sessions: Arc<SharedSessions>,
    watcher: Weak<dyn Watcher>,
    redactor: Arc<Redactor>,
    /// The keys that are claimed here, or are about to be.
    keys: Mutex<HashMap<Box<str>, Key>>,
    /// The ways to other replicas, by their ids.
    ways: Mutex<HashMap<String, Arc<Pool<Upstream>>>>,
    /// The replica that runs the singleton, as the store last said.
    lives_at: Mutex<Option<Arc<str>>>,
    /// Whether this replica ends: it runs nothing for others any more.
    is_leaving: AtomicBool,
}

/// A key that is claimed here.
enum Key {
    Held(Arc<HeldKey>),
    /// Its claim is being released; whoever wants it waits until that is done.
    Releasing,
}

/// The claim of a key. Whoever has one besides the register is about to use it.
pub(crate) struct HeldKey {
    name: trunkline_transport::http::replicas::ClaimName,
    replicas: Arc<dyn Replicas>,
    /// Whether the claim was ever ours.
    was_claimed: AtomicBool,
}

impl HeldKey {
    /// Whether this replica may run the instance now.
    pub(crate) fn is_ours(&self) -> bool {
        self.replicas.may_answer(self.name.as_str())
    }
}

/// Where an instance lives.
pub(crate) enum Placed {
    /// Here, for as long as the claim lasts.
    Here(Arc<HeldKey>),
    /// At another replica, which is reached like a server.
    At(Arc<Pool<Upstream>>),
}

impl Placement {
    pub(crate) fn new(
        server: Arc<str>,
        fleet: &Fleet,
        sessions: &Arc<SharedSessions>,
        watcher: Weak<dyn Watcher>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self {
            server,
            sealer: fleet.sealer(),
            fleet: fleet.clone(),
            sessions: Arc::clone(sessions),
            watcher,
            redactor,
            keys: Mutex::default(),
            ways: Mutex::default(),
            lives_at: Mutex::default(),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// Finds the instance of a key, or claims the key for this replica.
    pub(crate) async fn place(&self, plan: &ServerPlan, key: &str) -> Result<Placed, Failure> {
        if self.is_leaving.load(Ordering::Acquire) {
            return self.place_elsewhere(plan, key).await;
        }
        let held = loop {
            match self.held(key) {
                Some(held) => break held,
                None => tokio::time::sleep(PAUSE).await,
            }
        };
        if held.is_ours() {
            return Ok(Placed::Here(held));
        }
        let place = held.replicas.claim(&held.name).await;
        if let Ok(Place::Here | Place::TakenOver(_)) = place {
            held.was_claimed.store(true, Ordering::Release);
            return Ok(Placed::Here(held));
        }
        drop(held);
        self.placed_at(plan, place)
    }

    /// The same for a replica that claims nothing any more.
    async fn place_elsewhere(&self, plan: &ServerPlan, key: &str) -> Result<Placed, Failure> {
        if self.holds(key) {
            return Err(moved(&self.server));
        }
        match self.sessions.replicas().claim(&claim_of(&self.server, key)).await {
            Ok(Place::At(peer)) => Ok(Placed::At(self.way_to(&peer, plan))),
            // Whoever is asked for it first starts it.
            _ => match self.fleet.another() {
                Some(peer) => Ok(Placed::At(self.way_to(&peer, plan))),
                None => Err(nobody_knows(&self.server)),
            },
        }
    }

    fn placed_at(
        &self,
        plan: &ServerPlan,
        place: Result<Place, Unavailable>,
    ) -> Result<Placed, Failure> {
        match place {
            Ok(Place::At(peer)) => Ok(Placed::At(self.way_to(&peer, plan))),
            _ => Err(nobody_knows(&self.server)),
        }
    }

    /// The replica that was named for a key does not hold it, or cannot be reached.
    pub(crate) fn forget(&self, key: &str) {
        self.sessions.replicas().forget(claim_of(&self.server, key).as_str());
    }

    /// The replica at which the singleton runs, as far as known.
    pub(crate) fn lives_at(&self) -> Option<Arc<str>> {
        self.lives_at.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Seals who a call is made for, for the replica that makes it.
    pub(crate) fn seal_caller(&self, peer: &str, principal: Option<&Principal>) -> String {
        let plain = principal.map(Principal::to_bytes).unwrap_or_default();
        let context = caller_context(peer, &self.server);
        self.sealer.seal(&plain, context.as_bytes(), SystemTime::now() + LONG)
    }

    /// Opens what another replica has sealed for this one: the principal, if the caller has a name.
    pub(crate) fn open_caller(&self, sealed: &str) -> Option<Option<Principal>> {
        let context = caller_context(self.fleet.me(), &self.server);
        match &*self.sealer.open(sealed, context.as_bytes(), SystemTime::now()).ok()? {
            [] => Some(None),
            bytes => Principal::from_bytes(bytes).map(Some),
        }
    }

    /// The plan that this replica's own instances follow: they are started for calls alone, unless the claim is
    /// held here.
    pub(crate) fn plan_here(&self, plan: &Arc<ServerPlan>) -> Arc<ServerPlan> {
        match is_shared_by_all(plan) && !self.holds("") {
            true => Arc::new(while_elsewhere(plan)),
            false => Arc::clone(plan),
        }
    }

    /// Compares what runs here with what is claimed here: stops what may not run here any more, and lets go of what
    /// has ended.
    pub(crate) async fn tend(&self, plan: &Arc<ServerPlan>, pool: &Pool<Upstream>) {
        let mut released = Vec::new();
        let mut is_lost = false;
        {
            let mut keys = self.lock();
            for (key, it) in &mut *keys {
                let Key::Held(held) = it else { continue };
                let (is_ours, has_one) = (held.is_ours(), pool.has_instance_of(key));
                if !is_ours && held.was_claimed.load(Ordering::Acquire) && has_one {
                    is_lost = true;
                    released.push((key.clone(), None));
                } else if is_ours && !has_one && Arc::strong_count(held) == 1 {
                    released.push((key.clone(), Some(held.name.clone())));
                    *it = Key::Releasing;
                }
            }
            keys.retain(|key, it| match it {
                Key::Held(held) => {
                    held.is_ours() || Arc::strong_count(held) > 1 || pool.has_instance_of(key)
                }
                Key::Releasing => true,
            });
        }
        if is_lost && is_shared_by_all(plan) {
            // Before it stops: nothing may start it again.
            pool.reconfigure(Arc::new(while_elsewhere(plan)));
        }
        for (key, name) in released {
            match name {
                None => pool.evict(&key, &moved(&self.server)),
                Some(name) => {
                    // If the store is away, the claim ends with the lease.
                    let _ = self.sessions.replicas().release(&name).await;
                    self.lock().remove(&key);
                }
            }
        }
    }

    /// Claims a singleton that must always run, if nobody runs it.
    pub(crate) async fn keep_running(&self, plan: &Arc<ServerPlan>, pool: &Pool<Upstream>) {
        if self.is_leaving.load(Ordering::Acquire) || self.holds("") {
            return;
        }
        if let Ok(Placed::Here(_held)) = self.place(plan, "").await {
            pool.reconfigure(Arc::clone(plan));
        }
    }

    /// Asks the store where the singleton runs.
    pub(crate) async fn look_where_it_lives(&self) {
        let name = claim_of(&self.server, "");
        let Ok(entry) = self.fleet.store().get(name.as_str()).await else { return };
        let owner = entry.and_then(|it| keys::owner_of(&it.value));
        *self.lives_at.lock().unwrap_or_else(PoisonError::into_inner) = owner;
    }

    /// Forgets the ways to replicas that are gone. What is in flight there ends with an unknown outcome.
    pub(crate) async fn forget_the_gone(&self) {
        let known: Vec<_> = self.lock_ways().keys().cloned().collect();
        for id in known {
            if let Ok(Place::Gone) = self.sessions.replicas().locate_replica(&id).await {
                self.lock_ways().remove(&id);
            }
        }
    }

    /// This replica ends: each instance stops as soon as nothing is in flight in it, or `at_once`, and its claim is
    /// free. Returns whether nothing is left.
    pub(crate) async fn leave(
        &self,
        plan: &Arc<ServerPlan>,
        pool: &Pool<Upstream>,
        at_once: bool,
    ) -> bool {
        if !self.is_leaving.swap(true, Ordering::AcqRel) && is_shared_by_all(plan) {
            pool.reconfigure(Arc::new(while_elsewhere(plan)));
        }
        let held: Vec<_> = self.lock().keys().cloned().collect();
        for key in held.iter().filter(|key| at_once || !pool.is_busy_with(key)) {
            pool.evict(key, &moved(&self.server));
        }
        self.tend(plan, pool).await;
        self.lock().is_empty()
    }

    /// What is held under a key, or is about to be; `None` while its claim is being released.
    fn held(&self, key: &str) -> Option<Arc<HeldKey>> {
        let mut keys = self.lock();
        match keys.get(key) {
            Some(Key::Held(held)) => Some(Arc::clone(held)),
            Some(Key::Releasing) => None,
            None => {
                let held = Arc::new(HeldKey {
                    name: claim_of(&self.server, key),
                    replicas: Arc::clone(self.sessions.replicas()),
                    was_claimed: AtomicBool::new(false),
                });
                keys.insert(key.into(), Key::Held(Arc::clone(&held)));
                Some(held)
            }
        }
    }

    fn holds(&self, key: &str) -> bool {
        match self.lock().get(key) {
            Some(Key::Held(held)) => held.is_ours(),
            Some(Key::Releasing) => true,
            None => false,
        }
    }

    fn way_to(&self, peer: &Peer, plan: &ServerPlan) -> Arc<Pool<Upstream>> {
        let mut ways = self.lock_ways();
        let way = ways.entry(peer.id.clone()).or_insert_with(|| {
            let plan = Arc::new(plan_of_way(&self.server, peer, plan));
            let way = Way { peer: peer.clone(), sessions: Arc::clone(&self.sessions) };
            let watcher = Weak::clone(&self.watcher);
            let upstream =
                Upstream::new(Arc::clone(&plan), watcher, Arc::clone(&self.redactor), Some(way));
            Pool::new(plan, upstream)
        });
        Arc::clone(way)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Key>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_ways(&self) -> MutexGuard<'_, HashMap<String, Arc<Pool<Upstream>>>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the instances of another replica are reached: as a server of 2026-07-28 that serves everybody.
fn plan_of_way(server: &str, peer: &Peer, plan: &ServerPlan) -> ServerPlan {
    let mut way = ServerPlan::http(server, format!("{}{PATH}{server}", peer.url));
    way.revisions = Revisions::ALL.of_era(Era::Stateless);
    way.sharing = Sharing::Shared;
    (way.max_instances, way.max_each, way.max_concurrent) = (1, 1, CALLS);
    way.probe = Probe { every: Duration::ZERO, ..Probe::default() };
    way.retry = Retry { base: PAUSE, max: Duration::from_secs(1), tries: u32::MAX };
    way.pin = Pinning::Off;
    way.questions = plan.questions;
    way.timeouts = plan.timeouts;
    way.timeouts.start = REACHED_WITHIN;
    way
}

/// Whether a replica answered that the instance is not there, and has done nothing.
pub(crate) fn is_moved(error: &ErrorObject) -> bool {
    #[derive(serde::Deserialize)]
    struct Data {
        reason: String,
    }
    let data = error.data.as_ref().and_then(|it| it.to::<Data>().ok());
    data.is_some_and(|it| it.reason == Reason::InstanceMoved.word())
}

/// The instance moves: it is not here, or not for long.
pub(crate) fn moved(server: &str) -> Failure {
    let message =
        format!("The instance of `{server}` is moving to another replica of this gateway.");
    let mut failure = Failure::new(Reason::InstanceMoved, Stage::Acquire, message).of(server);
    failure.retry_after = Some(SOON);
    failure.advice("Try again in a moment.")
}

/// Nobody can tell where the instance is, so nobody starts another.
fn nobody_knows(server: &str) -> Failure {
    let message = format!(
        "There is one instance of `{server}` over all replicas of this gateway, and they cannot agree now on where it is."
    );
    let mut failure = Failure::new(Reason::StoreUnavailable, Stage::Acquire, message).of(server);
    failure.retry_after = Some(SOON);
    failure.advice("Try again in a moment.")
}

fn caller_context(peer: &str, server: &str) -> String {
    format!("trunkline gateway\0instance\0{peer}\0{server}")
}

/// The path of instances on the internal listener; the name of the server follows.
pub(crate) const PATH: &str = "/instances/";
/// The member of `_meta` that says who a call is made for, sealed.
pub(crate) const FOR_CALLER: &str = "trunkline/caller";
/// Calls in flight on the way to one replica.
const CALLS: usize = 4096;
/// How long it may take to reach another replica.
const REACHED_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
const SOON: Duration = Duration::from_secs(1);
/// The clocks of two replicas may differ by much; the header of each request is good once.
const LONG: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
