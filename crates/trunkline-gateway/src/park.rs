//! Calls that wait for their callers to come back with answers.
//!
//! A client of the new era is asked by ending its call. The server's call stays open here meanwhile,
//! under a name that only the caller can use, and for a while only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use trunkline_auth::tag::random_name;
use trunkline_proto::Timing;

use crate::failure::{Done, Failure, Stage};
use crate::forward::Forward;

/// Where they wait.
#[derive(Default)]
pub(crate) struct Lot(Mutex<HashMap<String, Parked>>);

struct Parked {
    forward: Forward,
    /// Whose it is.
    owner: String,
    /// What ends it if nobody comes.
    patience: AbortHandle,
}

impl Lot {
    /// Parks a call and names it.
    pub(crate) fn park(self: &Arc<Self>, forward: Forward, owner: &str) -> Result<String, Failure> {
        let mut lot = self.lock();
        let own = lot.values().filter(|it| it.owner == owner).count();
        // Those without a name cannot be told apart; they leave room for those who have one.
        let most = if owner.is_empty() { ALL / 2 } else { OWN };
        if lot.len() >= ALL || own >= most {
            let mut failure = Failure::new(
                "too_many_parked",
                Stage::Bridge,
                "Too many calls wait for answers of their callers.",
            );
            // The server is at work on it.
            failure.done = Done::Unknown;
            return Err(failure.advice("Answer or give up the others first."));
        }
        let name = random_name();
        let (this, gone) = (Arc::downgrade(self), name.clone());
        let patience = tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            if let Some(this) = Weak::upgrade(&this) {
                drop(this.take(&gone));
            }
        });
        let patience = patience.abort_handle();
        lot.insert(name.clone(), Parked { forward, owner: owner.to_owned(), patience });
        Ok(name)
    }

    /// Takes a call back. It can be taken once.
    pub(crate) fn resume(&self, name: &str) -> Option<Forward> {
        let parked = self.take(name)?;
        parked.patience.abort();
        Some(parked.forward)
    }

    /// Gives all of them up: nobody can come back.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        all.values().for_each(|it| it.patience.abort());
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn take(&self, name: &str) -> Option<Parked> {
        self.lock().remove(name)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a person may think.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// The time that a question to a person has.
pub(crate) const THINKING: Timing = Timing { idle: PATIENCE, hard: PATIENCE };
/// How many may wait for one caller, and for all.
const OWN: usize = 64;
const ALL: usize = 1024;
