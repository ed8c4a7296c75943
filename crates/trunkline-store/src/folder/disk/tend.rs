//! What keeps the folder small and honest: counting anew, finding damage, removing what has expired.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::Damage;
use super::super::files::{open_private, read_file, sync_folder, unavailable};
use super::super::record;
use super::Disk;
use crate::StoreError;
use crate::decide::Space;

impl Disk {
    /// Checks the format, throws away what was not finished, and counts, while nobody else is at work.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        let _locked = self.locks.lock_all().map_err(unavailable(&self.root, "locked"))?;
        self.check_format()?;
        for shard in fs::read_dir(self.root.join("temp"))
            .map_err(unavailable(&self.root, "listed"))?
            .flatten()
        {
            // One that stays is written over by the next who needs its name.
            let _ = fs::remove_file(shard.path());
        }
        let (mut entries, mut bytes) = (0, 0);
        for space in SPACES {
            self.each_file(&self.folder(space), &mut |path, _| {
                entries += 1;
                bytes += fs::metadata(path).map_err(unavailable(path, "read"))?.len();
                Ok(())
            })?;
        }
        let count = self.ledger.with(|totals| (totals.entries, totals.bytes) = (entries, bytes));
        count.map_err(unavailable(&self.root, "counted"))
    }

    /// Reads every file: what is damaged is reported, what expires is noted.
    pub(super) fn survey(&self) -> Result<(), StoreError> {
        let mut last = 0;
        for space in SPACES {
            self.each_file(&self.folder(space), &mut |path, _| {
                let bytes = read_file(path).map_err(unavailable(path, "read"))?;
                match bytes.as_deref().map(record::decode) {
                    // It was removed since its name was read.
                    None => {}
                    Some(Err(reason)) => self.known.report(path, reason),
                    Some(Ok((key, held))) => {
                        last = last.max(held.number);
                        self.known.note(space, &key, None, held.expires);
                    }
                }
                Ok(())
            })?;
        }
        let number = self.ledger.with(|totals| totals.last = totals.last.max(last));
        number.map_err(unavailable(&self.root, "counted"))?;
        self.known.state().surveyed = self.clock.now();
        Ok(())
    }

    /// Removes what has expired, the oldest first, but no more than `most`.
    pub(super) fn sweep(&self, most: usize) {
        for _ in 0..most {
            let Some((expires, space, key)) = self.known.expired(self.clock.now(), &self.bounds)
            else {
                return;
            };
            // What cannot be removed now is nobody's error: it is not returned either, and the next
            // survey finds it again.
            let _ = self.remove_expired(space, &key, expires);
        }
    }

    /// Removes all that has expired, also what other processes wrote, and counts anew what is left.
    pub(super) fn make_room(&self) -> Result<(), StoreError> {
        self.sweep(usize::MAX);
        // A full folder that is written to again and again must not be read again and again.
        if self.clock.now() >= self.known.state().surveyed + BETWEEN_SURVEYS {
            self.survey()?;
            self.sweep(usize::MAX);
            self.settle()?;
        }
        Ok(())
    }

    fn remove_expired(&self, space: Space, key: &str, expires: Duration) -> Result<(), StoreError> {
        let (_locked, _) = self.locks.lock(key).map_err(unavailable(&self.root, "locked"))?;
        let path = self.path(space, key);
        let found = self.find(&path, key)?;
        match found.held {
            // Another process gave it more time.
            Some(held) if held.is_live(self.clock.now()) => {
                self.known.note(space, key, Some(expires), held.expires);
                Ok(())
            }
            // Not synced: a file that comes back with the machine has expired still.
            Some(_) => self.remove(&path, found.length),
            // It is gone, or damaged and kept for who wants to look at it.
            None => Ok(()),
        }
    }

    fn check_format(&self) -> Result<(), StoreError> {
        let path = self.root.join("format");
        let format = read_file(&path).map_err(unavailable(&path, "read"))?.unwrap_or_default();
        if format == FORMAT {
            return Ok(());
        }
        // A crash can have left the beginning of it.
        if !FORMAT.starts_with(&format) {
            return Err(StoreError::Unavailable(format!(
                "`{}` names a format that this version does not know; use the version that wrote it, or another folder.",
                path.display()
            )));
        }
        let write = || {
            let mut file = open_private(&path)?;
            std::io::Write::write_all(&mut file, FORMAT)?;
            file.sync_all()?;
            sync_folder(&self.root)
        };
        write().map_err(unavailable(&path, "written"))
    }
}

/// What this process remembers of the files.
#[derive(Default)]
pub(super) struct Known {
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// What will expire when. Other processes change files too, so this is a hint: a file is read
    /// before it is removed, and what is missing here is found by the next survey.
    times: BTreeSet<(Duration, Space, Arc<str>)>,
    damaged: Vec<Damage>,
    surveyed: Duration,
}

impl Known {
    /// Notes when `key` expires now, and that what was known no longer holds.
    pub(super) fn note(
        &self,
        space: Space,
        key: &str,
        before: Option<Duration>,
        expires: Option<Duration>,
    ) {
        if before.is_none() && expires.is_none() {
            return;
        }
        let (mut state, key) = (self.state(), Arc::<str>::from(key));
        if let Some(before) = before {
            state.times.remove(&(before, space, key.clone()));
        }
        if let Some(expires) = expires {
            state.times.insert((expires, space, key));
        }
    }

    pub(super) fn report(&self, path: &Path, reason: &'static str) {
        let mut state = self.state();
        let is_new = state.damaged.iter().all(|damage| damage.path != path);
        if is_new && state.damaged.len() < MOST_REPORTED {
            state.damaged.push(Damage { path: path.to_owned(), reason });
        }
    }

    pub(super) fn damaged(&self) -> Vec<Damage> {
        self.state().damaged.clone()
    }

    /// Takes out what expired first.
    fn expired(
        &self,
        now: Duration,
        bounds: &crate::Bounds,
    ) -> Option<(Duration, Space, Arc<str>)> {
        let mut state = self.state();
        while state.times.len() > bounds.entries {
            // Other processes removed what is still noted here.
            state.times.pop_last();
        }
        let is_over = state.times.first().is_some_and(|(expires, ..)| *expires <= now);
        if is_over { state.times.pop_first() } else { None }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SPACES: [Space; 2] = [Space::Entries, Space::Leases];
const FORMAT: &[u8] = b"trunkline-store 1\n";
const BETWEEN_SURVEYS: Duration = Duration::from_secs(1);
const MOST_REPORTED: usize = 64;
