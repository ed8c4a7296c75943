//! Keys ⇄ bytes in the files of one folder: what survives a restart where there is no database.
//!
//! ```text
//! entries/k-task%2f1   one file per entry: header, key, value, checksum   (`folder/record.rs`)
//! leases/k-sweeper     the same for leases
//! temp/                a file is written here, synced, then renamed to its place
//! locks/0 … f          who changes a key holds the lock of its shard      (`folder/locks.rs`)
//! ledger               the last version, how many entries, how many bytes (`folder/ledger.rs`)
//! format               which program may read this
//! ```
//!
//! Readers take no lock: a file is replaced as a whole. Locks are the operating system's and end with
//! the process that held them, however it ends.

mod disk;
mod files;
mod ledger;
mod locks;
mod name;
mod record;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::backend::Backend;
use crate::channels::Channels;
use crate::clock::{Clock, Wall};
use crate::decide::{Change, Held, Space};
use crate::{Bounds, Capabilities, Entry, Page, StoreError};

use disk::Disk;

/// A store in a folder, for one process or many on one machine.
///
/// When a write is acknowledged it is on the disk: the file and the folder were synced. Whatever
/// kills the process or the machine, an entry is afterwards what it was before a write or after it. A
/// file that is damaged all the same counts as absent and is listed in [`damaged`](Self::damaged).
/// Only this user may read the files.
///
/// Entries and leases are seen by all processes that open the same folder. **Channels are not**: what
/// is published is heard in this process, by those who listen through this `Folder`
/// ([`Capabilities::shared_channels`] is false). The folder must be on a disk of this machine, not on
/// a network share, where locks and syncs do not mean what they say.
///
/// File operations block, a sync for milliseconds and a lock for as long as another process writes.
/// They are therefore done by tokio's threads for blocking work, at most 32 at once, and need a tokio
/// runtime. Each page of a scan reads the names of all entries.
pub struct Folder {
    disk: Arc<Disk>,
    channels: Channels,
    gate: Arc<Semaphore>,
}

/// A file that could not be read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Where it lies. It stays there until its key is written or deleted.
    pub path: PathBuf,
    /// What is wrong with it, as a sentence.
    pub reason: &'static str,
}

impl Folder {
    /// Opens the store in the folder at `path`; makes it if there is none.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, Bounds::default(), Wall).await
    }

    /// Opens the store in the folder at `path`, within `bounds`, going by `clock`. All who open the
    /// folder, at once or later, must have the same idea of time.
    ///
    /// [`Bounds::bytes`] counts the lengths of the files.
    pub async fn open_with(
        path: impl AsRef<Path>,
        bounds: Bounds,
        clock: impl Clock,
    ) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let disk = block(move || Disk::open(path, bounds, Box::new(clock))).await?;
        let gate = Arc::new(Semaphore::new(AT_ONCE));
        Ok(Self { disk: Arc::new(disk), channels: Channels::default(), gate })
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        self.disk.root()
    }

    /// The damaged files that were met since the folder was opened, and when it was; the first 64.
    pub fn damaged(&self) -> Vec<Damage> {
        self.disk.damaged()
    }

    /// Lets a thread for blocking work do `work`.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Disk) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let disk = self.disk.clone();
        // The permit goes along: work that nobody waits for any more still takes a thread.
        let permit = self.gate.clone().acquire_owned().await;
        block(move || {
            let _permit = permit;
            work(&disk)
        })
        .await
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Backend for Folder {
    fn bounds(&self) -> &Bounds {
        self.disk.bounds()
    }

    fn channels(&self) -> &Channels {
        &self.channels
    }

    fn reach(&self) -> Capabilities {
        Capabilities::default().durable(true).shared(true)
    }

    async fn read(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let key = key.to_owned();
        self.run(move |disk| Ok(disk.read(Space::Entries, &key)?.map(|held| held.entry()))).await
    }

    async fn change<T: Send + 'static>(
        &self,
        space: Space,
        key: &str,
        decide: impl Fn(Option<&Held>, Duration) -> Result<Change<T>, StoreError> + Send + 'static,
    ) -> Result<(T, u64), StoreError> {
        let key = key.to_owned();
        self.run(move |disk| disk.change(space, &key, &decide)).await
    }

    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.run(move |disk| disk.scan(&prefix, after, limit)).await
    }
}

async fn block<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let runtime = Handle::try_current().map_err(|_| {
        StoreError::Unavailable(
            "A folder store needs a tokio runtime; call it from within one.".to_owned(),
        )
    })?;
    let done = runtime.spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(StoreError::Unavailable(format!("The work on the folder did not end: {error}.")))
    })
}

/// Operations that use a thread at once. More would wait for the same few locks.
const AT_ONCE: usize = 32;
