//! Keys → the locks for changing them, between threads and processes alike.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::files::open_private;
use super::record;

/// A lock file. A mutex guards it within the process, so that one handle is enough.
pub(super) struct Lock {
    file: Mutex<File>,
}

/// Holds a lock until it is dropped, with the locked file.
pub(super) struct Locked<'a> {
    file: MutexGuard<'a, File>,
}

impl Lock {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(open_private(path)?) })
    }

    pub(super) fn lock(&self) -> io::Result<Locked<'_>> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match file.lock() {
                Ok(()) => return Ok(Locked { file }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Locked<'_> {
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // If this fails the lock ends with the process.
        let _ = self.file.unlock();
    }
}

/// The locks of all keys. Few, so that there are few files; several, so that syncs overlap.
pub(super) struct Locks {
    shards: Vec<Lock>,
}

impl Locks {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let shards = (0..SHARDS).map(|shard| Lock::open(&folder.join(format!("{shard:x}"))));
        Ok(Self { shards: shards.collect::<io::Result<_>>()? })
    }

    /// The lock of `key`, and its shard.
    pub(super) fn lock(&self, key: &str) -> io::Result<(Locked<'_>, usize)> {
        let shard = (record::checksum(key.as_bytes()) % SHARDS) as usize;
        Ok((self.shards[shard].lock()?, shard))
    }

    /// Every lock, always in the same order, so that two callers cannot deadlock.
    pub(super) fn lock_all(&self) -> io::Result<Vec<Locked<'_>>> {
        self.shards.iter().map(Lock::lock).collect()
    }
}

const SHARDS: u64 = 16;
