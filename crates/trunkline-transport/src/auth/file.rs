//! Logins kept in the files of one folder, which only this user can read.
//!
//! ```text
//! 3f…a9.login   one file per name: the name, a newline, the text
//! 3f…a9.lock    held while that login is refreshed
//! 3f…a9.new     a text that is being written; renamed once it is synced
//! folder.lock   held while a file is replaced, for milliseconds
//! ```
//!
//! Locks belong to the operating system and end with their process, however it ends.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use trunkline_auth::client::vault::{Vault, VaultError};
use trunkline_auth::digest::sha256;
use trunkline_auth::fetch::Pending;

use super::memory::NameLocks;

/// Stores logins in a folder, for all processes of this user.
///
/// The folder has the mode 0700 and its files 0600, and this user owns them. The vault refuses files
/// that others could read or change, and links. A stored text is synced to the disk. The folder must be
/// on a local disk, not on a network share, where locks are unreliable.
pub struct FileVault {
    folder: Arc<Path>,
    locks: NameLocks,
    /// The user whose files it trusts, if not the one that runs this process.
    user: Option<u32>,
}

impl FileVault {
    /// Stores logins in this folder, which is created on first use.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into().into(), locks: NameLocks::default(), user: None }
    }

    /// The folder that this user's programs share: `$XDG_DATA_HOME/trunkline/logins`, by default
    /// `~/.local/share/trunkline/logins`; on macOS `~/Library/Application Support/trunkline/logins`.
    pub fn usual() -> Result<Self, VaultError> {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        usual(cfg!(target_os = "macos"), absolute("XDG_DATA_HOME"), absolute("HOME")).map(Self::new)
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `work` for `name` on a blocking thread.
    async fn run<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&LoginFiles) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let user = match self.user {
            Some(user) => user,
            None => current_user().map_err(|error| {
                VaultError(format!(
                    "Nobody knows who runs this program, to keep logins for: {error}."
                ))
            })?,
        };
        let files = LoginFiles::new(Arc::clone(&self.folder), name, user);
        let done = spawn_blocking(move || work(&files)).await;
        done.unwrap_or_else(|_| Err(VaultError("The program is ending.".to_owned())))
    }
}

impl std::fmt::Debug for FileVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileVault").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Vault for FileVault {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        Box::pin(self.run(name, |files| {
            files.check()?;
            let Some(whole) = files.read(&files.file("login"))? else { return Ok(None) };
            let text = whole.strip_prefix(files.name.as_bytes());
            let text = text.and_then(|it| it.strip_prefix(b"\n"));
            // A text that is not UTF-8 reads as empty, which is no login.
            Ok(text.map(|it| str::from_utf8(it).unwrap_or_default().to_owned()))
        }))
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        let text = text.to_owned();
        Box::pin(self.run(name, move |files| {
            files.prepare()?;
            let (new, file) = (files.file("new"), files.file("login"));
            let _turn = files.begin()?;
            // A killed process may have left a file of any mode and length.
            forget(&new)?;
            let write = || {
                let mut out = options().create_new(true).open(&new)?;
                out.write_all(format!("{}\n{text}", files.name).as_bytes())?;
                out.sync_all()?;
                fs::rename(&new, &file)?;
                File::open(&files.folder)?.sync_all()
            };
            write().map_err(|error| broken("written", &file, &error))
        }))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(self.run(name, |files| {
            if !files.check()? {
                return Ok(());
            }
            let _turn = files.begin()?;
            forget(&files.file("new"))?;
            forget(&files.file("login"))?;
            let synced = File::open(&files.folder).and_then(|it| it.sync_all());
            synced.map_err(|error| broken("written", &files.folder, &error))
        }))
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        Box::pin(self.run("", |files| {
            if !files.check()? {
                return Ok(Vec::new());
            }
            let unread = |error: io::Error| broken("read", &files.folder, &error);
            let mut names = Vec::new();
            for entry in fs::read_dir(&files.folder).map_err(unread)?.take(MOST) {
                let path = entry.map_err(unread)?.path();
                if path.extension().is_some_and(|it| it == "login")
                    && let Some(whole) = files.read(&path)?
                    && let Some(end) = whole.iter().position(|it| *it == b'\n')
                    && let Ok(name) = str::from_utf8(&whole[..end])
                {
                    names.push(name.to_owned());
                }
            }
            names.sort();
            Ok(names)
        }))
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        Box::pin(async move {
            let turn = self.locks.take(name).await;
            let open = |files: &LoginFiles| {
                files.prepare()?;
                let path = files.file("lock");
                Ok((open_lock(&path)?, path))
            };
            let (file, path) = self.run(name, open).await?;
            // Polling can be cancelled at any time; a blocked thread cannot.
            let mut pause = Duration::from_millis(5);
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(Box::new((file, turn)) as Box<dyn Send>),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(pause).await,
                    Err(TryLockError::Error(error)) => return Err(broken("locked", &path, &error)),
                }
                pause = (pause * 2).min(Duration::from_millis(100));
            }
        })
    }
}

/// The files of one name.
struct LoginFiles {
    folder: Arc<Path>,
    name: Box<str>,
    user: u32,
    /// How long to wait for another process that replaces a file.
    patience: Duration,
}

impl LoginFiles {
    fn new(folder: Arc<Path>, name: &str, user: u32) -> Self {
        Self { folder, name: name.into(), user, patience: LOCK_TIMEOUT }
    }

    /// Names may be long and contain anything, so files are named by their digest.
    fn file(&self, kind: &str) -> PathBuf {
        let digest = sha256(self.name.as_bytes());
        self.folder.join(format!("{}.{kind}", digest.trim_start_matches("sha256:")))
    }

    /// Creates the folder if necessary.
    fn prepare(&self) -> Result<(), VaultError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|error| broken("made", &self.folder, &error))?;
        self.check().map(|_| ())
    }

    /// Whether the folder exists; an error if others have access to it.
    fn check(&self) -> Result<bool, VaultError> {
        match fs::metadata(&self.folder) {
            Ok(known) => self.guard(&self.folder, &known, "700").map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(broken("read", &self.folder, &error)),
        }
    }

    /// Waits until no other process replaces a file. That takes milliseconds, unless a process was
    /// stopped meanwhile.
    fn begin(&self) -> Result<File, VaultError> {
        let path = self.folder.join("folder.lock");
        let file = open_lock(&path)?;
        let until = Instant::now() + self.patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(broken("locked", &path, &error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                    let path = path.display();
                    return Err(VaultError(format!(
                        "Another program has held the lock `{path}` for too long. See what holds \
                         it, end that, and try again."
                    )));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The content of a file; `None` if there is none.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, VaultError> {
        let unread = |error: io::Error| broken("read", path, &error);
        let file = match OpenOptions::new().read(true).custom_flags(CAREFUL).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(unread)?,
        };
        let known = file.metadata().map_err(unread)?;
        if !known.is_file() {
            return Err(no_file(path));
        }
        self.guard(path, &known, "600")?;
        let mut whole = Vec::new();
        file.take(LONGEST).read_to_end(&mut whole).map_err(unread)?;
        Ok(Some(whole))
    }

    /// Refuses a file that others may read or change.
    fn guard(&self, path: &Path, known: &Metadata, right: &str) -> Result<(), VaultError> {
        let path = path.display();
        // Its owner may change its mode at any time.
        if known.uid() != self.user {
            return Err(VaultError(format!(
                "`{path}` holds logins, and belongs to another user (uid {}). Run this as that user, \
                 or keep logins somewhere else.",
                known.uid()
            )));
        }
        if known.mode() & 0o077 != 0 {
            return Err(VaultError(format!(
                "`{path}` holds logins, and others may read or change it. Take that from them: \
                 `chmod {right} '{path}'`; if they may have read it, log in anew."
            )));
        }
        Ok(())
    }
}

/// The user of this process, as the kernel reports a socket's own peer.
fn current_user() -> io::Result<u32> {
    static KNOWN: OnceLock<u32> = OnceLock::new();
    if let Some(user) = KNOWN.get() {
        return Ok(*user);
    }
    let (one, _other) = UnixStream::pair()?;
    let user = one.peer_cred()?.uid();
    Ok(*KNOWN.get_or_init(|| user))
}

fn usual(
    is_mac: bool,
    data: Option<PathBuf>,
    home: Option<PathBuf>,
) -> Result<PathBuf, VaultError> {
    let data = match (is_mac, data, home) {
        (true, _, Some(home)) => home.join("Library/Application Support"),
        (false, Some(data), _) => data,
        (false, None, Some(home)) => home.join(".local/share"),
        (_, _, None) => {
            let why = "There is no folder for logins. Set `HOME`, or say where to keep them.";
            return Err(VaultError(why.to_owned()));
        }
    };
    Ok(data.join("trunkline/logins"))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(CAREFUL);
    options
}

fn open_lock(path: &Path) -> Result<File, VaultError> {
    let opened = options().create(true).truncate(false).open(path);
    let known = opened.and_then(|it| it.metadata().map(|known| (it, known)));
    match known.map_err(|error| broken("opened", path, &error))? {
        (file, known) if known.is_file() => Ok(file),
        _ => Err(no_file(path)),
    }
}

fn forget(path: &Path) -> Result<(), VaultError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(broken("removed", path, &error))
        }
        _ => Ok(()),
    }
}

fn no_file(path: &Path) -> VaultError {
    let path = path.display();
    VaultError(format!(
        "`{path}` is where logins are kept, and is no ordinary file. Remove it, and log in anew."
    ))
}

fn broken(verb: &str, path: &Path, error: &io::Error) -> VaultError {
    // A pipe without a reader, or a folder.
    if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::EISDIR)) {
        return no_file(path);
    }
    if error.raw_os_error() == Some(libc::ELOOP) {
        let path = path.display();
        let why = "and is a link to somewhere else. Remove it, and log in anew.";
        return VaultError(format!("`{path}` is where logins are kept, {why}"));
    }
    VaultError(format!("`{}`, which keeps logins, cannot be {verb}: {error}.", path.display()))
}

/// Follows no links, and does not block on a pipe.
const CAREFUL: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;
/// How long another process may take to replace a file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest file.
const LONGEST: u64 = 1 << 20;
/// How many files of a folder are read.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests;
