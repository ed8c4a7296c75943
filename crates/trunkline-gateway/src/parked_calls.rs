//! Calls that wait for their callers to come back with answers.
//!
//! A client of the new era is asked by ending its call. The server's call stays open here meanwhile,
//! under a name that only the caller can use, and for a while only.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::task::AbortHandle;
use trunkline_auth::tag::random_name;

use crate::failure::{Done, Failure, Reason, Stage};
use crate::forward::Forward;
use crate::question::PATIENCE;

/// Where they wait.
#[derive(Default)]
pub(crate) struct ParkedCalls(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    parked: HashMap<String, Parked>,
    /// The last that made way for others.
    made_way: VecDeque<String>,
}

/// Why a call cannot be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It made way for others.
    MadeWay,
    /// It is over, or there never was one.
    Unknown,
}

struct Parked {
    forward: Forward,
    /// Whose it is.
    owner: Arc<str>,
    /// What ends it if nobody comes.
    patience: AbortHandle,
}

impl ParkedCalls {
    /// Parks a call and names it.
    pub(crate) fn park(
        self: &Arc<Self>,
        mut forward: Forward,
        owner: &Arc<str>,
    ) -> Result<String, Failure> {
        let mut lot = self.lock();
        let own = lot.parked.values().filter(|it| it.owner == *owner).count();
        // Those without a name cannot be told apart; they leave room for those who have one.
        let most = if owner.is_empty() { ALL / 2 } else { OWN };
        if lot.parked.len() >= ALL || own >= most {
            let mut failure = Failure::new(
                Reason::TooManyParked,
                Stage::Bridge,
                "Too many calls wait for answers of their callers.",
            );
            // The server is at work on it.
            failure.done = Done::Unknown;
            return Err(failure.advice("Answer or give up the others first."));
        }
        let (name, told) = (random_name(), forward.park());
        let (this, gone) = (Arc::downgrade(self), name.clone());
        let patience = tokio::spawn(async move {
            let made_way = tokio::time::timeout(PATIENCE, told.notified()).await.is_ok();
            if let Some(this) = Weak::upgrade(&this) {
                this.give_up(gone, made_way);
            }
        });
        let patience = patience.abort_handle();
        forward.line.park(true);
        lot.parked.insert(name.clone(), Parked { forward, owner: Arc::clone(owner), patience });
        Ok(name)
    }

    /// Takes a call back. It can be taken once.
    pub(crate) fn resume(&self, name: &str) -> Result<Forward, Missing> {
        let mut lot = self.lock();
        let Some(parked) = lot.parked.remove(name) else {
            let made_way = lot.made_way.iter().any(|it| it == name);
            return Err(if made_way { Missing::MadeWay } else { Missing::Unknown });
        };
        parked.patience.abort();
        parked.forward.line.park(false);
        Ok(parked.forward)
    }

    /// Nobody came in time, or others came who wanted its place.
    fn give_up(&self, name: String, made_way: bool) {
        let mut lot = self.lock();
        let parked = lot.parked.remove(&name);
        if made_way && parked.is_some() {
            if lot.made_way.len() >= REMEMBERED {
                lot.made_way.pop_front();
            }
            lot.made_way.push_back(name);
        }
        drop(lot);
        // It is cancelled at the server.
        drop(parked);
    }

    /// Gives all of them up: nobody can come back.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut self.lock().parked);
        all.values().for_each(|it| it.patience.abort());
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().parked.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many may wait for one caller, and for all.
const OWN: usize = 64;
const ALL: usize = 1024;
/// Of how many it is known that they made way.
const REMEMBERED: usize = 256;
