//! A bound on the instances of one server over all replicas: numbered places, each of which is a claim.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use trunkline_transport::http::SharedSessions;
use trunkline_transport::http::replicas::{ClaimName, Place};

use super::keys::owner_of;
use crate::failure::{Failure, Reason, Stage};
use crate::fleet::Fleet;

/// The places of one server.
pub(crate) struct Places {
    server: Arc<str>,
    fleet: Fleet,
    sessions: Arc<SharedSessions>,
    /// Those that this replica has, or tries to get.
    ours: Mutex<BTreeSet<usize>>,
}

/// The place of one instance. Dropping it makes room for another, at any replica.
pub(crate) struct TakenPlace {
    places: Arc<Places>,
    number: usize,
}

impl Places {
    pub(crate) fn new(server: &Arc<str>, fleet: &Fleet, sessions: &Arc<SharedSessions>) -> Self {
        Self {
            server: Arc::clone(server),
            fleet: fleet.clone(),
            sessions: Arc::clone(sessions),
            ours: Mutex::default(),
        }
    }

    /// Takes one of `most` places. What others have is read once; a place that another takes meanwhile is passed
    /// over.
    pub(crate) async fn take(self: &Arc<Self>, most: usize) -> Result<TakenPlace, Failure> {
        let others = self.of_others(most).await?;
        for number in (0..most).filter(|it| !others.contains(it)) {
            if !self.lock().insert(number) {
                continue;
            }
            // From here on dropping it gives it back.
            let place = TakenPlace { places: Arc::clone(self), number };
            let (name, replicas) = (self.name(number), self.sessions.replicas());
            if !replicas.may_answer(name.as_str()) {
                replicas.forget(name.as_str());
            }
            match replicas.claim(&name).await {
                Ok(Place::Here | Place::TakenOver(_)) => return Ok(place),
                Ok(_) => {}
                Err(_) => return Err(self.unavailable()),
            }
        }
        Err(self.full(most))
    }

    /// The places that replicas have which are alive.
    async fn of_others(&self, most: usize) -> Result<BTreeSet<usize>, Failure> {
        let prefix = format!("{}place/{}/", ClaimName::PREFIX, self.server);
        let (mut taken, mut cursor) = (BTreeSet::new(), None::<String>);
        loop {
            let page = self.fleet.store().scan(&prefix, cursor.as_deref(), PAGE).await;
            let page = page.map_err(|_| self.unavailable())?;
            for item in page.items {
                let number = item.key.strip_prefix(&prefix).and_then(|it| it.parse().ok());
                let Some(number) = number.filter(|it| *it < most) else { continue };
                let owner = owner_of(&item.value).filter(|it| **it != *self.fleet.me());
                if let Some(owner) = owner
                    && !matches!(
                        self.sessions.replicas().locate_replica(&owner).await,
                        Ok(Place::Gone)
                    )
                {
                    taken.insert(number);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(taken);
            }
        }
    }

    fn name(&self, number: usize) -> ClaimName {
        ClaimName::new(&format!("place/{}/{number}", self.server))
    }

    fn full(&self, most: usize) -> Failure {
        let server = &*self.server;
        let message = format!(
            "`{server}` has {most} instance{} over all replicas of this gateway, as many as the catalog allows.",
            if most == 1 { "" } else { "s" }
        );
        let mut failure = Failure::new(Reason::TotalReached, Stage::Acquire, message).of(server);
        failure.retry_after = Some(SOON);
        failure.advice("Try again in a moment, or raise `maxInstancesTotal`.")
    }

    fn unavailable(&self) -> Failure {
        let server = &*self.server;
        let message = format!(
            "The instances of `{server}` are counted over all replicas of this gateway, and the store that they share does not answer."
        );
        let mut failure =
            Failure::new(Reason::StoreUnavailable, Stage::Acquire, message).of(server);
        failure.retry_after = Some(SOON);
        failure.advice("Try again in a moment.")
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let (places, number) = (Arc::clone(&self.places), self.number);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let (name, replicas) = (places.name(number), places.sessions.replicas());
            if replicas.may_answer(name.as_str()) {
                // If the store is away, the claim ends with this replica, which may use the place again.
                let _ = replicas.release(&name).await;
            }
            places.lock().remove(&number);
        });
    }
}

const PAGE: usize = 1_000;
const SOON: Duration = Duration::from_secs(1);
