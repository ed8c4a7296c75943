//! What the runner and those who ask share: the lease, the owned sessions, and what waits to be written.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use trunkline_transport::http::replicas::{ById, ClaimName};

use crate::clock::Clock;
use crate::state::State;
use crate::state::message::Name;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// In nanoseconds since the start.
    until: AtomicU64,
    generation: AtomicU64,
    owned: RwLock<HashMap<Name, Owned, ById>>,
    lost: Mutex<Lost>,
    pub(crate) state: Mutex<State>,
    updates: Mutex<HashMap<Name, Name>>,
    pub(crate) updated: Notify,
    /// Whenever the lease has been set.
    pub(crate) leased: Notify,
}

/// A session that this replica owns.
#[derive(Debug)]
struct Owned {
    generation: u64,
    /// Whether somebody asked for it lately.
    used: AtomicBool,
}

/// Sessions that were owned here and are not any more, in two halves: the older is dropped when the younger is full.
#[derive(Debug, Default)]
struct Lost {
    young: HashSet<Name>,
    old: HashSet<Name>,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self {
            clock: Clock::start(),
            until: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            owned: RwLock::default(),
            lost: Mutex::default(),
            state: Mutex::new(state),
            updates: Mutex::default(),
            updated: Notify::new(),
            leased: Notify::new(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether this replica owns the session and may answer for it now.
    pub(crate) fn may_answer(&self, id: &str) -> bool {
        let owned = self.owned.read().unwrap_or_else(PoisonError::into_inner);
        let Some(session) = owned.get(id) else { return false };
        // A lease that is seen comes with its generation, and the clock is read last: a process that is stopped in
        // between finds the lease over.
        let until = self.until.load(Ordering::Acquire);
        let is_current = session.generation == self.generation.load(Ordering::Acquire);
        let may = is_current && nanos(self.clock.now()) < until;
        if may && !session.used.load(Ordering::Relaxed) {
            session.used.store(true, Ordering::Relaxed);
        }
        may
    }

    pub(crate) fn is_leased(&self) -> bool {
        nanos(self.clock.now()) < self.until.load(Ordering::Acquire)
    }

    pub(crate) fn set_lease(&self, until: Duration, generation: u64) {
        self.generation.store(generation, Ordering::Release);
        self.until.store(nanos(until), Ordering::Release);
        self.leased.notify_one();
        self.leased.notify_waiters();
    }

    pub(crate) fn own(&self, id: Name, generation: u64) {
        lock(&self.lost).remove(&id);
        let session = Owned { generation, used: AtomicBool::new(true) };
        self.owned.write().unwrap_or_else(PoisonError::into_inner).insert(id, session);
    }

    pub(crate) fn disown(&self, id: &Name) {
        self.owned.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        lock(&self.updates).remove(id);
        lock(&self.lost).insert(id.clone());
    }

    /// Whether the session was owned here and is not any more.
    pub(crate) fn is_lost(&self, id: &str) -> bool {
        let lost = lock(&self.lost);
        lost.young.contains(id) || lost.old.contains(id)
    }

    /// Keeps a record to be written, in place of an older one of the same session.
    pub(crate) fn update(&self, id: &str, body: Name) {
        let owned = self.owned.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((id, _)) = owned.get_key_value(id) {
            lock(&self.updates).insert(id.clone(), body);
            self.updated.notify_one();
        }
    }

    pub(crate) fn take_updates(&self) -> HashMap<Name, Name> {
        std::mem::take(&mut *lock(&self.updates))
    }

    /// The sessions that were asked for since the last time, and all claims: what they name lasts without a request.
    pub(crate) fn take_used(&self) -> Vec<Name> {
        let owned = self.owned.read().unwrap_or_else(PoisonError::into_inner);
        let used = owned.iter().filter(|(id, it)| {
            it.used.swap(false, Ordering::Relaxed) || id.starts_with(ClaimName::PREFIX)
        });
        used.map(|(id, _)| id.clone()).collect()
    }

    /// How many sessions are owned.
    pub(crate) fn sessions(&self) -> usize {
        let owned = self.owned.read().unwrap_or_else(PoisonError::into_inner);
        owned.keys().filter(|id| !id.starts_with(ClaimName::PREFIX)).count()
    }
}

impl Lost {
    fn insert(&mut self, id: Name) {
        if self.young.len() >= MOST_LOST / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id);
    }

    fn remove(&mut self, id: &str) {
        self.young.remove(id);
        self.old.remove(id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How many lost sessions are remembered: an endpoint asks twice a second, so the younger ones are enough.
const MOST_LOST: usize = 200_000;
