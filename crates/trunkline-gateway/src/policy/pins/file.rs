//! Pins ⇄ a file that several processes may share.
//!
//! Whatever changes pins does so with the file locked and read anew, so that two gateways that see
//! a server at the same time agree on what they saw first, and what one approves the other knows.
//! A list in which everything is as pinned touches no file.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;

use super::{Held, Pins, Which};

/// Pins with their file. Clones are the same.
#[derive(Clone, Debug)]
pub struct PinFile {
    path: Arc<Path>,
    known: Arc<Mutex<Known>>,
    /// One change at a time in this process; the lock on the file is for the others.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Known {
    pins: Pins,
    /// What is held back, by the key of the server. Not kept: it is found again when
    /// the list is looked at, be it one that was kept.
    held: BTreeMap<String, Vec<Held>>,
}

/// Why the file cannot be used, in a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinFault(String);

impl PinFile {
    /// Reads the file; there need not be one. A damaged one is an error, for without it everything
    /// would be trusted anew.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, PinFault> {
        let path: Arc<Path> = path.into().into();
        let pins = read(&path)?;
        let known = Arc::new(Mutex::new(Known { pins, held: BTreeMap::new() }));
        Ok(Self { path, known, turn: Arc::default() })
    }

    /// Looks at the whole list of a server, `(name, digest)`: pins what is new, and says what to
    /// hold back. If the file cannot be written, pins hold as long as this process.
    pub async fn sift(
        &self,
        server: &str,
        tools: Vec<(String, String)>,
    ) -> (Vec<Held>, Option<PinFault>) {
        let sift = |pins: &Pins| {
            pins.sift(server, tools.iter().map(|(tool, digest)| (tool.as_str(), digest.as_str())))
        };
        let sifted = sift(&self.lock().pins);
        if sifted.held.is_empty() && sifted.pinned.is_empty() {
            self.lock().held.remove(server);
            return (Vec::new(), None);
        }
        let _turn = self.turn.lock().await;
        // Somebody else may have pinned or approved meanwhile.
        let (latest, mut fault) = self.latest().await;
        let sifted = sift(&latest.0);
        if !sifted.pinned.is_empty() {
            let (mut pins, lock) = latest;
            pins.pin(server, &sifted.pinned);
            if let Err(later) = self.store(pins, lock).await {
                fault.get_or_insert(later);
            }
        } else {
            self.lock().pins = latest.0;
        }
        let mut known = self.lock();
        match sifted.held.is_empty() {
            true => drop(known.held.remove(server)),
            false => drop(known.held.insert(server.to_owned(), sifted.held.clone())),
        }
        (sifted.held, fault)
    }

    /// Holds back those of these definitions, `(name, digest)`, that are pinned and are not what was
    /// pinned, until the next look at the whole list. Says which were not held back before.
    pub(crate) fn hold(&self, server: &str, tools: &[(String, String)]) -> Vec<Held> {
        let mut known = self.lock();
        let tools = tools.iter().map(|(tool, digest)| (tool.as_str(), digest.as_str()));
        let sifted = known.pins.sift(server, tools);
        if sifted.held.is_empty() {
            return Vec::new();
        }
        let held = known.held.entry(server.to_owned()).or_default();
        let new: Vec<_> = sifted.held.into_iter().filter(|it| !held.contains(it)).collect();
        held.retain(|it| new.iter().all(|new| new.tool != it.tool));
        held.extend(new.iter().cloned());
        held.sort();
        new
    }

    /// Pins what is held back as it is now. Says which tools these are; nobody else is asked.
    pub async fn approve(&self, server: &str, which: &Which) -> Result<Vec<String>, PinFault> {
        let _turn = self.turn.lock().await;
        let meant = which.of(&self.held(server));
        if meant.is_empty() {
            return Ok(Vec::new());
        }
        let ((mut pins, lock), fault) = self.latest().await;
        if let Some(fault) = fault {
            return Err(fault);
        }
        pins.pin(server, &meant);
        self.store(pins, lock).await?;
        if let Some(held) = self.lock().held.get_mut(server) {
            held.retain(|it| !meant.contains_key(&it.tool));
        }
        Ok(meant.into_keys().collect())
    }

    /// What is held back of a server.
    pub fn held(&self, server: &str) -> Vec<Held> {
        self.lock().held.get(server).cloned().unwrap_or_default()
    }

    /// Whether a tool of a server is held back.
    pub fn is_held(&self, server: &str, tool: &str) -> bool {
        self.lock().held.get(server).is_some_and(|held| held.iter().any(|it| it.tool == tool))
    }

    /// What the file says now, and its lock; what we know, if it cannot be locked or read.
    async fn latest(&self) -> ((Pins, Option<File>), Option<PinFault>) {
        let latest = match self.take_lock().await {
            Err(fault) => Err(fault),
            Ok(lock) => {
                let path = Arc::clone(&self.path);
                blocking(move || read(&path)).await.map(|pins| (pins, Some(lock)))
            }
        };
        match latest {
            Ok(latest) => (latest, None),
            Err(fault) => ((self.lock().pins.clone(), None), Some(fault)),
        }
    }

    /// Keeps pins, in the file only if we hold its lock.
    async fn store(&self, pins: Pins, lock: Option<File>) -> Result<(), PinFault> {
        self.lock().pins = pins.clone();
        if lock.is_none() {
            return Ok(());
        }
        let path = Arc::clone(&self.path);
        blocking(move || {
            let _lock = lock;
            write(&path, &pins)
        })
        .await
    }

    async fn take_lock(&self) -> Result<File, PinFault> {
        let path = self.path.with_extension("lock");
        let open = {
            let path = path.clone();
            move || {
                let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
                let made = folder.map_or(Ok(()), |folder| {
                    DirBuilder::new().recursive(true).mode(0o700).create(folder)
                });
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(false).mode(0o600);
                made.and_then(|()| options.open(&path)).map_err(|it| broken("locked", &path, &it))
            }
        };
        let file = blocking(open).await?;
        let mut patience = PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(broken("locked", &path, &error)),
                Err(TryLockError::WouldBlock) if patience.is_zero() => {
                    return Err(PinFault(format!(
                        "Another program has held the lock `{}` for too long. See what holds it, \
                         and end that.",
                        path.display()
                    )));
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            }
            patience = patience.saturating_sub(PAUSE);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for PinFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PinFault {}

fn read(path: &Path) -> Result<Pins, PinFault> {
    let mut text = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pins::default()),
        file => file
            .and_then(|file| file.take(LONGEST).read_to_end(&mut text))
            .map_err(|error| broken("read", path, &error))?,
    };
    serde_json::from_slice(&text).map_err(|error| {
        PinFault(format!(
            "`{}`, which pins the definitions of tools, is damaged: {error}. Restore it from a copy; \
             or remove it, and whatever the servers say then is trusted.",
            path.display()
        ))
    })
}

/// All of it or nothing: written beside, then put in place.
fn write(path: &Path, pins: &Pins) -> Result<(), PinFault> {
    let new = path.with_extension("new");
    let put = || {
        let mut options = OpenOptions::new();
        // What a process left that was killed here may have any mode.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = options.write(true).create_new(true).mode(0o600).open(&new)?;
        let mut text = serde_json::to_vec_pretty(pins)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    put().map_err(|error| broken("written", path, &error))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PinFault> + Send + 'static,
) -> Result<T, PinFault> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(PinFault("The program is ending.".to_owned())))
}

fn broken(verb: &str, path: &Path, error: &io::Error) -> PinFault {
    PinFault(format!(
        "`{}`, which pins the definitions of tools, cannot be {verb}: {error}.",
        path.display()
    ))
}

/// How long another process may hold the lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before asking for it again.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a file may be.
const LONGEST: u64 = 256 << 20;
