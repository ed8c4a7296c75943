//! Calls that stay open at a server while their callers find answers.
//!
//! In the stateless era the gateway asks a client by ending its request (`input_required`). The server's call
//! stays open here meanwhile, under a name that only its caller can use, and for a limited time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::task::AbortHandle;
use trunkline_auth::tag::random_name;

use crate::failure::{Done, Failure, Reason, Stage};
use crate::forward::Forward;
use crate::question::PATIENCE;

/// All parked calls.
#[derive(Default)]
pub(crate) struct ParkedCalls(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    parked: HashMap<String, Parked>,
    /// The last calls that made way.
    made_way: VecDeque<String>,
}

/// Why a call cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It made way for others.
    MadeWay,
    /// It has ended, or never existed.
    Unknown,
}

struct Parked {
    forward: Forward,
    /// Its principal.
    owner: Arc<str>,
    /// The task that ends it after the deadline.
    patience: AbortHandle,
}

impl ParkedCalls {
    /// Parks a call and returns its name.
    pub(crate) fn park(
        self: &Arc<Self>,
        mut forward: Forward,
        owner: &Arc<str>,
    ) -> Result<String, Failure> {
        let mut calls = self.lock();
        let own = calls.parked.values().filter(|it| it.owner == *owner).count();
        // Anonymous callers cannot be told apart; together they leave room for named principals.
        let most = if owner.is_empty() { ALL / 2 } else { OWN };
        if calls.parked.len() >= ALL || own >= most {
            let mut failure = Failure::new(
                Reason::TooManyParked,
                Stage::Bridge,
                "Too many calls wait for their callers' answers.",
            );
            // The server has begun the work.
            failure.done = Done::Unknown;
            return Err(failure.advice("Answer or cancel the others first."));
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
        forward.context().park(true);
        calls.parked.insert(name.clone(), Parked { forward, owner: Arc::clone(owner), patience });
        Ok(name)
    }

    /// Resumes a call. This works once.
    pub(crate) fn resume(&self, name: &str) -> Result<Forward, Missing> {
        let mut calls = self.lock();
        let Some(parked) = calls.parked.remove(name) else {
            let made_way = calls.made_way.iter().any(|it| it == name);
            return Err(if made_way { Missing::MadeWay } else { Missing::Unknown });
        };
        parked.patience.abort();
        parked.forward.context().park(false);
        Ok(parked.forward)
    }

    /// The deadline has passed, or the call makes way.
    fn give_up(&self, name: String, made_way: bool) {
        let mut calls = self.lock();
        let parked = calls.parked.remove(&name);
        if made_way && parked.is_some() {
            if calls.made_way.len() >= REMEMBERED {
                calls.made_way.pop_front();
            }
            calls.made_way.push_back(name);
        }
        drop(calls);
        // Dropping it cancels the call at the server.
        drop(parked);
    }

    /// Cancels all of them: no caller can resume.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut self.lock().parked);
        all.values().for_each(|it| it.patience.abort());
    }

    /// How many calls are parked.
    pub(crate) fn len(&self) -> usize {
        self.lock().parked.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bound for one principal, and for all.
const OWN: usize = 64;
const ALL: usize = 1024;
/// How many calls are remembered to have made way.
const REMEMBERED: usize = 256;
