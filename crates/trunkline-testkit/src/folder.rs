//! A temporary folder, removed with the test.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of its own for a test; dropping it removes it with everything in it.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates an empty one.
    #[expect(
        clippy::new_without_default,
        reason = "a default that writes to the disk would be odd"
    )]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("trunkline-{}-{number}", std::process::id()));
        // Another process with this number may have left it behind.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder for temporary files is writable");
        Self(path)
    }

    /// Writes a file into it, in folders that are created as needed.
    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        let parent = path.parent().expect("a file in a folder has a parent");
        std::fs::create_dir_all(parent).expect("a folder in the test's own can be created");
        std::fs::write(&path, text).expect("a file in the test's folder can be written");
        path
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
