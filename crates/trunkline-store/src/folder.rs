//! Keys ⇄ bytes in the files of one folder: persistence without a database.
//!
//! ```text
//! entries/k-task%2f1   one file per entry: header, key, value, checksum   (`folder/record.rs`)
//! leases/k-sweeper     the same for leases
//! temp/                a file is written here, synced, then renamed to its place
//! locks/0 … f          the writer of a key holds the lock of its shard    (`folder/locks.rs`)
//! ledger               the last version, number of entries and bytes      (`folder/ledger.rs`)
//! format               which program may read this
//! ```
//!
//! Readers take no lock: a file is replaced atomically. Locks belong to the operating system and end
//! with their process, however it ends.

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

use crate::backend::{Answer, Backend};
use crate::channels::Channels;
use crate::clock::{Clock, Wall};
use crate::decide::{Change, Held, Space};
use crate::{Bounds, Capabilities, Cursor, Entry, Page, StoreError};

use disk::Disk;

/// A store in a folder, for one process or many on one machine.
///
/// An acknowledged write is durable: the file and the folder are synced. After a crash of the process
/// or the machine, an entry is either as before a write or as after it. A file that is damaged all the
/// same counts as absent and is listed in [`damaged`](Self::damaged). Only this user may read the
/// files.
///
/// All processes that open the same folder share entries and leases. **Channels are not shared**: only
/// listeners of this `Folder` in this process hear what is published ([`Capabilities::shared_channels`]
/// is false). The folder must be on a local disk, not on a network share, where locks and syncs are
/// unreliable.
///
/// File operations block: a sync for milliseconds, a lock for as long as another process writes. So
/// they run on tokio's blocking threads, at most 32 at once, and need a tokio runtime. Each page of a
/// scan reads the names of all entries.
pub struct Folder {
    disk: Arc<Disk>,
    channels: Channels,
    gate: Arc<Semaphore>,
}

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Its path. It stays there until its key is written or deleted.
    pub path: PathBuf,
    /// What is wrong with it, as a sentence.
    pub reason: &'static str,
}

impl Folder {
    /// Opens the store in the folder at `path`, and creates it if necessary.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, Bounds::default(), Wall).await
    }

    /// Opens the store in the folder at `path`, with `bounds` and `clock`. All processes that open the
    /// folder, at once or later, must use the same clock.
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

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.disk.root()
    }

    /// The damaged files found since the folder was opened, the opening included; the first 64.
    pub fn damaged(&self) -> Vec<Damage> {
        self.disk.damaged()
    }

    /// Runs `work` on a blocking thread.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Disk) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let disk = self.disk.clone();
        // The work holds the permit: abandoned work still takes a thread.
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

    async fn read(&self, key: &str) -> Answer<Option<Entry>> {
        let key = key.to_owned();
        self.run(move |disk| Ok(disk.read(Space::Entries, &key)?.map(|held| held.entry()))).await
    }

    async fn change<T: Send + 'static>(
        &self,
        (space, key): (Space, &str),
        decide: impl Fn(Option<&Held>, Duration) -> Result<Change<T>, StoreError> + Send + 'static,
    ) -> Answer<(T, u64)> {
        let key = key.to_owned();
        self.run(move |disk| disk.change(space, &key, &decide)).await
    }

    async fn page(&self, prefix: &str, after: Cursor<'_>, limit: usize) -> Answer<Page> {
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

/// How many operations run at once. More would wait for the same few locks.
const AT_ONCE: usize = 32;
