//! Pins in the store that replicas share. A change replaces exactly what was read, so two replicas that see a
//! server at the same time agree on what they saw first.

use std::path::Path;
use std::sync::Arc;

use trunkline_store::{Expect, Swap};

use super::Pins;
use super::disk::{Unread, decode, encode, read};
use super::file::PinFault;
use crate::fleet::{Fleet, News};

#[derive(Clone, Debug)]
pub(super) struct SharedPins(Fleet);

impl SharedPins {
    pub(super) fn new(fleet: Fleet) -> Self {
        Self(fleet)
    }

    /// The pins, and what a change expects to find. A store that lost them gets `ours` with the next change.
    pub(super) async fn read(
        &self,
        ours: Option<Arc<Pins>>,
    ) -> Result<(Arc<Pins>, Expect), PinFault> {
        let what = "Until they can, everything new that the servers offer is held back.";
        let failed = |why: &dyn std::fmt::Display| {
            PinFault(format!("The pins in the shared store cannot be read: {why} {what}"))
        };
        match self.0.store().get(KEY).await.map_err(|error| failed(&error))? {
            None => Ok((ours.unwrap_or_default(), Expect::Absent)),
            Some(entry) => {
                let pins = decode(&entry.value).map_err(|why| failed(&format!("{why}.")))?;
                Ok((Arc::new(pins), Expect::Version(entry.version)))
            }
        }
    }

    /// Puts the pins of a file into a store that has none. Returns what is wrong with the file.
    pub(super) async fn begin_with(&self, file: &Path) -> Option<PinFault> {
        let pins = match read(file) {
            Ok((_, None)) => return None,
            Ok((pins, Some(_))) => pins,
            Err(Unread::Fault(fault)) => return Some(fault),
            Err(Unread::Damaged(why)) => {
                let file = file.display();
                return Some(PinFault(format!(
                    "`{file}` is damaged, and nothing of it was put into the shared store: {why}."
                )));
            }
        };
        // If another replica was faster, its pins stay.
        self.write(&pins, Expect::Absent).await.err()
    }

    /// Replaces the pins, and tells the other replicas. `false`: they are not the expected ones any more.
    pub(super) async fn write(&self, pins: &Pins, expect: Expect) -> Result<bool, PinFault> {
        let written = self.0.store().swap(KEY, expect, &encode(pins), None).await;
        let written = written.map_err(|error| {
            PinFault(format!("The pins in the shared store cannot be written: {error}"))
        })?;
        let is_done = matches!(written, Swap::Done(_));
        if is_done {
            self.0.tell(News::Pins);
        }
        Ok(is_done)
    }
}

const KEY: &str = "pins";
