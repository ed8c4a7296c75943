//! Decisions → files. Everything here blocks.

mod maintain;

use std::collections::BinaryHeap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Damage;
use super::files::{
    make_private, make_private_in, open_private, read_file, sync_folder, unavailable,
};
use super::ledger::Ledger;
use super::locks::Locks;
use super::name::{self, Named};
use super::record;
use crate::decide::{Act, Change, Decide, Held, Space};
use crate::{Bounds, Clock, Entry, Item, Page, StoreError};
use maintain::KnownFiles;

pub(super) struct Disk {
    root: PathBuf,
    bounds: Bounds,
    clock: Box<dyn Clock>,
    locks: Locks,
    ledger: Ledger,
    known: KnownFiles,
}

/// A file as it was read.
struct Found {
    held: Option<Held>,
    /// Its length, damaged or not; `None` if there is no file.
    length: Option<u64>,
}

impl Disk {
    pub(super) fn open(
        root: PathBuf,
        bounds: Bounds,
        clock: Box<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let make = || -> io::Result<_> {
            make_private(&root)?;
            make_private_in(&root, &["entries", "leases", "temp", "locks"])?;
            Ok((Locks::open(&root.join("locks"))?, Ledger::open(&root.join("ledger"))?))
        };
        let (locks, ledger) = make().map_err(unavailable(&root, "opened"))?;
        let disk = Self { root, bounds, clock, locks, ledger, known: KnownFiles::default() };
        disk.settle()?;
        disk.survey()?;
        disk.sweep(usize::MAX);
        Ok(disk)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    pub(super) fn damaged(&self) -> Vec<Damage> {
        self.known.damaged()
    }

    /// The live state of `key`.
    pub(super) fn read(&self, space: Space, key: &str) -> Result<Option<Held>, StoreError> {
        self.bounds.check_key(key)?;
        let found = self.find(&self.path(space, key), key)?;
        let now = self.clock.now();
        Ok(found.held.filter(|held| held.is_live(now)))
    }

    /// Applies what `decide` returns, and returns its answer and the number written.
    ///
    /// `decide` may run twice, because room was made in between.
    pub(super) fn change<T>(
        &self,
        space: Space,
        key: &str,
        decide: &Decide<'_, T>,
    ) -> Result<(T, u64), StoreError> {
        self.bounds.check_key(key)?;
        self.sweep(SWEPT_AT_ONCE);
        match self.change_once(space, key, decide) {
            Err(StoreError::Full { .. }) => {}
            done => return done,
        }
        self.make_room()?;
        self.change_once(space, key, decide)
    }

    /// A page of the entries; see [`Store::scan`](crate::Store::scan).
    pub(super) fn scan(
        &self,
        prefix: &str,
        mut after: Option<String>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let limit = self.bounds.page_limit(limit);
        let (mut page, mut bytes) = (Page::default(), 0);
        loop {
            let keys = self.smallest(prefix, after.as_deref(), limit + 1)?;
            let is_last = keys.len() <= limit;
            after = keys.last().cloned();
            for key in keys {
                // It may have been deleted or replaced since its name was listed; the current state
                // counts.
                let Some(held) = self.read(Space::Entries, &key)? else { continue };
                if page.items.len() == limit || bytes >= self.bounds.page_bytes {
                    page.next = page.items.last().map(|item| item.key.clone());
                    return Ok(page);
                }
                bytes += held.value.len();
                let Entry { value, version } = held.entry();
                page.items.push(Item { key, value, version });
            }
            if is_last {
                return Ok(page);
            }
        }
    }

    fn change_once<T>(
        &self,
        space: Space,
        key: &str,
        decide: &Decide<'_, T>,
    ) -> Result<(T, u64), StoreError> {
        let (_locked, shard) = self.locks.lock(key).map_err(unavailable(&self.root, "locked"))?;
        let now = self.clock.now();
        let path = self.path(space, key);
        let found = self.find(&path, key)?;
        let before = found.held.as_ref().and_then(|held| held.expires);
        let live = found.held.as_ref().filter(|held| held.is_live(now));
        let Change { act, answer } = decide(live, now)?;
        let number = match act {
            Act::Keep => 0,
            Act::Remove => {
                self.remove(&path, found.length)?;
                self.sync(space)?;
                self.known.note(space, key, before, None);
                0
            }
            Act::Write { value, number, expires } => {
                let more = record::len(key, &value) as i64 - found.length.unwrap_or(0) as i64;
                let one = i64::from(found.length.is_none());
                let number = self.reserve(one, more, number, now)?;
                let held = Held { value, number, expires };
                if let Err(error) = self.place(space, &path, shard, &record::encode(key, &held)) {
                    self.account(-one, -more)?;
                    return Err(error);
                }
                self.sync(space)?;
                self.known.note(space, key, before, expires);
                number
            }
        };
        Ok((answer, number))
    }

    /// Adds a write to the totals before it happens, so that a crash never leaves more than was
    /// counted; and assigns its number.
    fn reserve(
        &self,
        entries: i64,
        bytes: i64,
        number: Option<u64>,
        now: Duration,
    ) -> Result<u64, StoreError> {
        let reserve = self.ledger.with(|totals| {
            let mut after = *totals;
            after.add(entries, bytes);
            // A write that adds nothing is allowed even if the bound was lowered.
            if entries > 0 || bytes > 0 {
                self.bounds.check_total(after.entries as usize, after.bytes as usize)?;
            }
            let number = number.unwrap_or_else(|| after.next(now));
            *totals = after;
            Ok(number)
        });
        reserve.map_err(unavailable(&self.root, "counted"))?
    }

    fn account(&self, entries: i64, bytes: i64) -> Result<(), StoreError> {
        let add = self.ledger.with(|totals| totals.add(entries, bytes));
        add.map_err(unavailable(&self.root, "counted"))
    }

    /// Writes a temporary file, then renames it into place.
    fn place(
        &self,
        space: Space,
        path: &Path,
        shard: usize,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        // The holder of the shard's lock is the only user of this name.
        let temp = self.root.join("temp").join(format!("{shard:x}"));
        let place = || -> io::Result<()> {
            let mut file = open_private(&temp)?;
            file.set_len(0)?;
            file.write_all(bytes)?;
            if space == Space::Entries {
                file.sync_all()?;
            }
            fs::rename(&temp, path)
        };
        place().map_err(|error| {
            // Its content is useless, and the disk may be full.
            let _ = fs::remove_file(&temp);
            unavailable(path, "written")(error)
        })
    }

    /// Makes the last rename or removal durable. Leases need not be: a machine that crashed has also
    /// ended their holders.
    fn sync(&self, space: Space) -> Result<(), StoreError> {
        if space == Space::Leases {
            return Ok(());
        }
        let folder = self.folder(space);
        sync_folder(&folder).map_err(unavailable(&folder, "synced"))
    }

    fn remove(&self, path: &Path, length: Option<u64>) -> Result<(), StoreError> {
        let Some(length) = length else { return Ok(()) };
        fs::remove_file(path).map_err(unavailable(path, "removed"))?;
        self.account(-1, -(length as i64))
    }

    fn find(&self, path: &Path, key: &str) -> Result<Found, StoreError> {
        let Some(bytes) = read_file(path).map_err(unavailable(path, "read"))? else {
            // A missing folder means that nothing is known, not that nothing is there.
            fs::metadata(self.root.join("entries")).map_err(unavailable(&self.root, "read"))?;
            return Ok(Found { held: None, length: None });
        };
        let length = Some(bytes.len() as u64);
        let reason = match record::decode(&bytes) {
            Ok((found, held)) if found == key => return Ok(Found { held: Some(held), length }),
            Ok(_) => "It holds another key than its name says.",
            Err(reason) => reason,
        };
        self.known.report(path, reason);
        Ok(Found { held: None, length })
    }

    /// The first `most` keys with `prefix` after `after`, in order.
    fn smallest(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut keys = BinaryHeap::new();
        let folder = self.folder(Space::Entries);
        self.each_file(&folder, &mut |path, named| {
            let key = match named {
                Named::Key(key) => key,
                Named::Inside => match self.key_inside(path)? {
                    Some(key) => key,
                    None => return Ok(()),
                },
            };
            if key.starts_with(prefix) && after.is_none_or(|after| *key > *after) {
                keys.push(key);
                if keys.len() > most {
                    keys.pop();
                }
            }
            Ok(())
        })?;
        Ok(keys.into_sorted_vec())
    }

    fn key_inside(&self, path: &Path) -> Result<Option<String>, StoreError> {
        let Some(bytes) = read_file(path).map_err(unavailable(path, "read"))? else {
            return Ok(None);
        };
        match record::decode(&bytes) {
            Ok((key, _)) => Ok(Some(key)),
            Err(reason) => {
                self.known.report(path, reason);
                Ok(None)
            }
        }
    }

    fn folder(&self, space: Space) -> PathBuf {
        self.root.join(match space {
            Space::Entries => "entries",
            Space::Leases => "leases",
        })
    }

    fn path(&self, space: Space, key: &str) -> PathBuf {
        self.folder(space).join(name::encode(key))
    }

    fn each_file(
        &self,
        folder: &Path,
        see: &mut dyn FnMut(&Path, Named) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for file in fs::read_dir(folder).map_err(unavailable(folder, "listed"))? {
            let file = file.map_err(unavailable(folder, "listed"))?;
            if let Some(named) = file.file_name().to_str().and_then(name::decode) {
                see(&file.path(), named)?;
            }
        }
        Ok(())
    }
}

/// A write adds at most one file, so removing more than one keeps up.
const SWEPT_AT_ONCE: usize = 4;
