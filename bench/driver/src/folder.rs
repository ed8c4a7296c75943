//! A folder that what is measured may write to; it goes with the measurement.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Folder(PathBuf);

impl Folder {
    pub fn make() -> Result<Folder, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).map_err(|error| unwritable(&path, error))?;
        Ok(Folder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing is lost when it stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn unwritable(path: &Path, error: std::io::Error) -> String {
    format!("`{}` cannot be written: {error}.", path.display())
}
