//! Maintenance of the folder: recounting, finding damage, removing expired files.

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
    /// Checks the format, removes unfinished writes, and counts, under all locks.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        let _locked = self.locks.lock_all().map_err(unavailable(&self.root, "locked"))?;
        self.check_format()?;
        for shard in fs::read_dir(self.root.join("temp"))
            .map_err(unavailable(&self.root, "listed"))?
            .flatten()
        {
            // A leftover is overwritten by the next user of its name.
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

    /// Reads every file: reports damaged ones, records expiries.
    pub(super) fn survey(&self) -> Result<(), StoreError> {
        let mut last = 0;
        for space in SPACES {
            self.each_file(&self.folder(space), &mut |path, _| {
                let bytes = read_file(path).map_err(unavailable(path, "read"))?;
                match bytes.as_deref().map(record::decode) {
                    // It was removed since its name was listed.
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

    /// Removes expired files, the oldest first, at most `most`.
    pub(super) fn sweep(&self, most: usize) {
        for _ in 0..most {
            let Some((expires, space, key)) = self.known.expired(self.clock.now(), &self.bounds)
            else {
                return;
            };
            // A file that cannot be removed now is no error: it is not returned either, and the next
            // survey finds it again.
            let _ = self.remove_expired(space, &key, expires);
        }
    }

    /// Removes all expired files, also those of other processes, and counts the rest again.
    pub(super) fn make_room(&self) -> Result<(), StoreError> {
        self.sweep(usize::MAX);
        // A full folder must not be surveyed again on every write.
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
            // Another process extended it.
            Some(held) if held.is_live(self.clock.now()) => {
                self.known.note(space, key, Some(expires), held.expires);
                Ok(())
            }
            // Not synced: a file that a crash brings back is still expired.
            Some(_) => self.remove(&path, found.length),
            // It is gone, or damaged and kept for inspection.
            None => Ok(()),
        }
    }

    fn check_format(&self) -> Result<(), StoreError> {
        let path = self.root.join("format");
        let format = read_file(&path).map_err(unavailable(&path, "read"))?.unwrap_or_default();
        if format == FORMAT {
            return Ok(());
        }
        // A crash can have left a partial file.
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

/// What this process remembers about the files.
#[derive(Default)]
pub(super) struct KnownFiles {
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// Expiries in order. Other processes change files too, so this is a hint: a file is read before it
    /// is removed, and the next survey finds missing ones.
    times: BTreeSet<(Duration, Space, Arc<str>)>,
    damaged: Vec<Damage>,
    surveyed: Duration,
}

impl KnownFiles {
    /// Records the new expiry of `key`, replacing the old one.
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

    /// Takes the earliest expired key.
    fn expired(
        &self,
        now: Duration,
        bounds: &crate::Bounds,
    ) -> Option<(Duration, Space, Arc<str>)> {
        let mut state = self.state();
        while state.times.len() > bounds.entries {
            // Other processes removed files that are still recorded here.
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
