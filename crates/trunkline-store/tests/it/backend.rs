//! Names → stores to test, in temporary folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_store::{Bounds, Folder, Manual, Memory, Store};

/// A temporary folder, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-store-{}-{made}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A leftover of a killed run with the same id.
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store, its clock, and the folder it may need.
pub(crate) struct Made {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Manual,
    pub(crate) scratch: Scratch,
}

/// Each backend with `bounds`.
pub(crate) async fn each(bounds: &Bounds) -> Vec<Made> {
    let (clock, scratch) = (Manual::default(), Scratch::new());
    let memory = Arc::new(Memory::new(bounds.clone(), clock.clone()));
    let memory = Made { store: memory, clock, scratch };
    vec![memory, folder(bounds).await]
}

/// A store in a new folder.
pub(crate) async fn folder(bounds: &Bounds) -> Made {
    let (clock, scratch) = (Manual::default(), Scratch::new());
    let store = reopen(&scratch, bounds, &clock).await;
    Made { store: Arc::new(store), clock, scratch }
}

/// The store in this folder, opened once more.
pub(crate) async fn reopen(scratch: &Scratch, bounds: &Bounds, clock: &Manual) -> Folder {
    let folder = Folder::open_with(scratch.path(), bounds.clone(), clock.clone()).await;
    folder.expect("the folder opens")
}
