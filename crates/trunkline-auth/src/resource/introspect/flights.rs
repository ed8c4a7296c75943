//! Single-flight introspection: one caller asks, others with the same token wait for that answer,
//! and the number of questions in flight is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Unproven;
use super::memory::Name;
use crate::Principal;
use crate::resource::turn::Turn;

type Outcome = Result<Principal, Unproven>;

/// The questions in flight.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<Name, Open>>);

#[derive(Default)]
struct Open {
    flight: Arc<Flight>,
    /// The number of callers that share it.
    seats: usize,
}

/// One question. The caller that holds the turn asks it.
#[derive(Default)]
struct Flight {
    turn: Turn,
    outcome: Mutex<Option<Outcome>>,
}

/// A caller's share in a question.
struct Seat<'a> {
    flights: &'a Flights,
    name: Name,
    flight: Arc<Flight>,
}

impl Flights {
    /// The result of `ask`, or of another caller's `ask` for the same token. `None` if too many are
    /// in flight.
    pub(super) async fn share(
        &self,
        name: Name,
        ask: impl Future<Output = Outcome>,
    ) -> Option<Outcome> {
        let seat = self.join(name)?;
        let _turn = seat.flight.turn.take().await;
        if let Some(outcome) = &*lock(&seat.flight.outcome) {
            return Some(outcome.clone());
        }
        let outcome = ask.await;
        *lock(&seat.flight.outcome) = Some(outcome.clone());
        // Later callers ask again, unless the answer is cached.
        seat.open(|all| all.remove(&name));
        Some(outcome)
    }

    fn join(&self, name: Name) -> Option<Seat<'_>> {
        let mut all = lock(&self.0);
        if all.len() >= MOST && !all.contains_key(&name) {
            return None;
        }
        let open = all.entry(name).or_default();
        open.seats += 1;
        Some(Seat { flights: self, name, flight: Arc::clone(&open.flight) })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

impl Seat<'_> {
    /// Accesses the questions, if this one is still among them.
    fn open<T>(&self, then: impl FnOnce(&mut HashMap<Name, Open>) -> T) -> Option<T> {
        let mut all = lock(&self.flights.0);
        let is_open = all.get(&self.name).is_some_and(|it| Arc::ptr_eq(&it.flight, &self.flight));
        is_open.then(|| then(&mut all))
    }
}

impl Drop for Seat<'_> {
    /// A caller that is dropped leaves the question to the next, if there is one.
    fn drop(&mut self) {
        self.open(|all| match all.get_mut(&self.name) {
            Some(open) if open.seats > 1 => open.seats -= 1,
            _ => drop(all.remove(&self.name)),
        });
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many questions to an authorization server may be in flight.
pub(super) const MOST: usize = 64;
