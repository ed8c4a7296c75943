//! Comparisons that find something to store → one change of the file for all that wait for their turn.
//!
//! The text of all pins is written for every change. When a gateway begins, each server of its catalog is new:
//! stored one by one, a thousand of them would cost a million times what one does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::file::{LISTS, PinFault, PinFile, Unstored, today};
use super::{Held, Offered};
use crate::catalog::plan::Pinning;

/// What to hold back, and why pins could not be stored, if so.
pub(super) type Outcome = (Vec<Held>, Option<PinFault>);

/// The comparisons that wait for their turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparing(Arc<Mutex<Vec<Comparison>>>);

/// The definitions of one server.
#[derive(Debug)]
struct Comparison {
    server: String,
    offered: Vec<Offered>,
    pinning: Pinning,
    tell: oneshot::Sender<Outcome>,
}

impl Comparing {
    fn lock(&self) -> MutexGuard<'_, Vec<Comparison>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinFile {
    /// Compares definitions in their turn, with others that wait for theirs.
    pub(super) async fn compare_in_turn(
        &self,
        server: &str,
        offered: &[Offered],
        pinning: Pinning,
    ) -> Outcome {
        loop {
            let (tell, mut told) = oneshot::channel();
            let (server, offered) = (server.to_owned(), offered.to_vec());
            self.comparing.lock().push(Comparison { server, offered, pinning, tell });
            let _turn = self.turn.lock().await;
            // Whoever had the turn before has mostly done it.
            if told.is_empty() && !told.is_terminated() {
                self.compare_waiting().await;
            }
            if let Ok(outcome) = told.try_recv() {
                return outcome;
            }
            // Whoever was about to do it was stopped.
        }
    }

    /// Compares for all who wait, and stores what they found together. Only whoever has the turn does this.
    async fn compare_waiting(&self) {
        // The longer the text of the pins takes to be written, the more come together.
        let servers = u32::try_from(self.pins().servers.len()).unwrap_or(u32::MAX);
        tokio::time::sleep(GATHERING * servers.min(MOST)).await;
        let waiting = std::mem::take(&mut *self.comparing.lock());
        let today = today();
        loop {
            // Another process may have pinned or approved meanwhile.
            let ((mut pins, lock), mut fault) = self.latest().await;
            let mut is_news = false;
            let mut all_held = Vec::with_capacity(waiting.len());
            for it in &waiting {
                let mut found = pins.compare(&it.server, &it.offered, it.pinning, today);
                all_held.push(std::mem::take(&mut found.held));
                if found.is_news {
                    is_news = true;
                    Arc::make_mut(&mut pins).note(&it.server, found, today);
                }
            }
            if is_news {
                match self.store(pins, lock).await {
                    Ok(()) => {}
                    Err(Unstored::Conflict) => continue,
                    Err(Unstored::Fault(later)) => drop(fault.get_or_insert(later)),
                }
            } else {
                self.lock().pins = pins;
            }
            for (it, held) in waiting.into_iter().zip(all_held) {
                self.hold(&it.server, LISTS, held.clone());
                // It may have been given up meanwhile.
                let _ = it.tell.send((held, fault.clone()));
            }
            return;
        }
    }
}

/// How long others are waited for, for each server that has pins: ten times what writing its pins takes.
const GATHERING: Duration = Duration::from_micros(50);
/// Servers for which that is done.
const MOST: u32 = 2000;
