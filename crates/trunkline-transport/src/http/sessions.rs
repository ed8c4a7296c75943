//! The sessions of an endpoint by id, each with its place in the budget, until they expire.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::replicas::ById;
use super::session::Session;
use super::shared_sessions::{SharedSessions, close_later};
use crate::budget::Held;
use crate::clock::now;
use crate::handler::Handler;

/// The sessions of one endpoint.
pub(super) struct Sessions<H: Handler> {
    known: Mutex<Known<H>>,
    idle: Duration,
    sweep: Duration,
}

struct Known<H: Handler> {
    /// Each with its place in the budget.
    by_id: HashMap<Arc<str>, (Arc<Session<H>>, Held), ById>,
    is_swept: bool,
    /// Set if replicas share the sessions.
    shared: Option<Arc<SharedSessions>>,
}

impl<H: Handler> Sessions<H> {
    pub(super) fn new(idle: Duration, sweep: Duration) -> Self {
        let known = Known { by_id: HashMap::default(), is_swept: false, shared: None };
        Self { known: Mutex::new(known), idle, sweep }
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session<H>>> {
        self.lock().by_id.get(id).map(|(session, _)| Arc::clone(session))
    }

    /// Adds a session. The first one starts the periodic sweep.
    pub(super) fn add(self: &Arc<Self>, place: Held, session: &Arc<Session<H>>) {
        let mut known = self.lock();
        known.by_id.insert(Arc::clone(&session.id), (Arc::clone(session), place));
        let first = !std::mem::replace(&mut known.is_swept, true);
        drop(known);
        if first {
            tokio::spawn(sweep(Arc::downgrade(self), self.sweep));
        }
    }

    /// Watches from now on whether the sessions are still owned here.
    pub(super) fn guard(self: &Arc<Self>, shared: &Arc<SharedSessions>) {
        let mut known = self.lock();
        if known.shared.is_none() {
            known.shared = Some(Arc::clone(shared));
            tokio::spawn(guard(Arc::downgrade(self), Arc::clone(shared)));
        }
    }

    /// Ends a session.
    pub(super) fn remove(&self, id: &str) -> bool {
        let session = self.lock().by_id.remove(id);
        match session {
            Some((session, _)) => {
                session.end();
                true
            }
            None => false,
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Session<H>>> {
        self.lock().by_id.values().map(|(session, _)| Arc::clone(session)).collect()
    }

    fn end_idle(&self, now: Instant) {
        let since = now.checked_sub(self.idle);
        let shared = self.lock().shared.clone();
        // Each sweep takes the session's lock, so ours is free by then.
        for session in self.all() {
            if session.sweep(since, now) {
                self.remove(&session.id);
                if let Some(shared) = &shared {
                    close_later(shared, &session.id);
                }
            }
        }
        let mut known = self.lock();
        if known.by_id.len() * 4 < known.by_id.capacity() {
            known.by_id.shrink_to_fit();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known<H>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Handler> Drop for Sessions<H> {
    /// No client can reach the sessions any more, so their handlers stop.
    fn drop(&mut self) {
        for session in self.all() {
            session.end();
        }
    }
}

/// Ends expired sessions while the endpoint exists.
async fn sweep<H: Handler>(sessions: Weak<Sessions<H>>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(sessions) = sessions.upgrade() else { return };
        sessions.end_idle(now());
    }
}

/// Ends sessions that another replica has taken over, and the streams of those that may not be answered for
/// now: their clients reconnect, and find the owner.
async fn guard<H: Handler>(sessions: Weak<Sessions<H>>, shared: Arc<SharedSessions>) {
    loop {
        tokio::time::sleep(GUARD).await;
        let Some(sessions) = sessions.upgrade() else { return };
        for session in sessions.all() {
            if shared.replicas.is_lost(&session.id) {
                sessions.remove(&session.id);
            } else if session.has_readers() && !shared.replicas.may_answer(&session.id) {
                session.wake_readers();
            }
        }
    }
}

/// How long the streams of a session may stay open after its lease has lapsed.
const GUARD: Duration = Duration::from_millis(500);
