//! Watches a file and returns its text each time it has changed and settled (debounced).
//!
//! It polls instead of subscribing: that works on every file system, in containers, and with swapped symlinks,
//! as Kubernetes uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::file::LARGEST;
use super::{Faults, unreadable};

/// Watches a catalog and the files that it takes values from.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    files: BTreeSet<PathBuf>,
    seen: Stamps,
    /// The text returned last.
    last: Option<String>,
}

impl Watch {
    /// Begins to watch. Create it before reading the file, so that no change is missed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let seen = stamps([path.clone()].into());
        Self { path, files: BTreeSet::new(), seen, last: None }
    }

    /// Replaces the further files to watch: those of [`super::Loaded::files`].
    pub fn follow(&mut self, files: BTreeSet<PathBuf>) {
        for path in &files {
            self.seen.entry(path.clone()).or_insert_with(|| stamp(path));
        }
        self.seen.retain(|path, _| *path == self.path || files.contains(path));
        self.files = files;
    }

    /// Waits until something has changed and settled, and returns the text of the catalog. Waits while the
    /// catalog does not exist.
    ///
    /// # Errors
    ///
    /// That the catalog cannot be read.
    pub async fn changed(&mut self) -> Result<String, Faults> {
        let paths: BTreeSet<_> = self.files.iter().chain([&self.path]).cloned().collect();
        let look = || {
            let paths = paths.clone();
            async { spawn_blocking(|| stamps(paths)).await.unwrap_or_default() }
        };
        loop {
            sleep(EVERY).await;
            let mut now = look().await;
            if now == self.seen {
                continue;
            }
            loop {
                sleep(REST).await;
                let then = std::mem::replace(&mut now, look().await);
                if now == then && now.get(&self.path).is_some_and(Option::is_some) {
                    break;
                }
            }
            let path = self.path.clone();
            let text = spawn_blocking(move || read_text(&path, LARGEST as u64)).await;
            let others_changed = self.files.iter().any(|it| self.seen.get(it) != now.get(it));
            self.seen = now;
            match text.unwrap_or_else(|error| Err(io::Error::other(error))) {
                Ok(text) if !others_changed && self.last.as_ref() == Some(&text) => {}
                Ok(text) => {
                    self.last = Some(text.clone());
                    return Ok(text);
                }
                Err(error) => return Err(unreadable(&self.path, &error)),
            }
        }
    }
}

/// Reads a text file of at most `most` bytes.
pub(super) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it is larger than {} KiB", most / 1024);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Distinguishes two states of some files.
type Stamps = BTreeMap<PathBuf, Option<Stamp>>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    /// The file's identity, after following symlinks.
    identity: (u64, u64),
    size: u64,
    modified: Option<SystemTime>,
}

fn stamps(paths: BTreeSet<PathBuf>) -> Stamps {
    paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    let (size, modified) = (metadata.len(), metadata.modified().ok());
    Some(Stamp { identity: identity(&metadata), size, modified })
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// The polling interval.
const EVERY: Duration = Duration::from_millis(500);
/// The debounce interval.
const REST: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::time::timeout;
    use trunkline_testkit::Folder;

    use super::*;

    // The paused clock stands still during file access, and advances when all tasks wait.
    async fn next(watch: &mut Watch) -> Option<Result<String, Faults>> {
        timeout(Duration::from_secs(60), watch.changed()).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_reported_once() {
        let folder = Folder::new();
        let path = folder.put("a.yaml", "one");
        let mut watch = Watch::new(&path);
        assert_eq!(next(&mut watch).await, None);
        folder.put("a.yaml", "two, longer");
        assert_eq!(next(&mut watch).await, Some(Ok("two, longer".to_owned())));
        assert_eq!(next(&mut watch).await, None);
        // Editors write another file and rename it over the first.
        let other = folder.put("a.yaml~", "two, longer");
        fs::rename(&other, &path).unwrap();
        assert_eq!(next(&mut watch).await, None, "the text is the same");
        fs::remove_file(&path).unwrap();
        assert_eq!(next(&mut watch).await, None, "it is not there");
        folder.put("a.yaml", "three");
        assert_eq!(next(&mut watch).await, Some(Ok("three".to_owned())));
        fs::write(&path, [0xff]).unwrap();
        let faults = next(&mut watch).await.unwrap().unwrap_err();
        assert_eq!(faults.faults[0].message, "The file cannot be read: it is not UTF-8.");
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_swapped_link_is_a_change() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new();
        folder.put("..1/a.yaml", "one");
        folder.put("..2/a.yaml", "two");
        symlink("..1", folder.join("..data")).unwrap();
        symlink("..data/a.yaml", folder.join("a.yaml")).unwrap();
        let mut watch = Watch::new(folder.join("a.yaml"));
        symlink("..2", folder.join("..new")).unwrap();
        fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
        assert_eq!(next(&mut watch).await, Some(Ok("two".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_secret_that_changes_is_a_change() {
        let folder = Folder::new();
        let path = folder.put("a.yaml", "one");
        let secret = folder.put("secret", "s");
        let mut watch = Watch::new(&path);
        watch.follow([secret].into());
        folder.put("secret", "other");
        assert_eq!(next(&mut watch).await, Some(Ok("one".to_owned())));
        assert_eq!(next(&mut watch).await, None);
        watch.follow(BTreeSet::new());
        folder.put("secret", "yet another");
        assert_eq!(next(&mut watch).await, None);
    }
}
