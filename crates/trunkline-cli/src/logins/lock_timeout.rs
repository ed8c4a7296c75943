//! A vault → the same vault with a time-out on its locks.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use trunkline::auth::Pending;
use trunkline::auth::vault::{Vault, VaultError};

/// Waits for a lock for a limited time, and then names it in the error.
pub(super) struct LockTimeout {
    inner: Arc<dyn Vault>,
    folder: PathBuf,
    is_late: AtomicBool,
}

impl LockTimeout {
    pub(super) fn new(inner: Arc<dyn Vault>, folder: &Path) -> Arc<Self> {
        Arc::new(Self { inner, folder: folder.to_owned(), is_late: AtomicBool::new(false) })
    }

    /// Whether a lock timed out.
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    fn late(&self) -> VaultError {
        self.is_late.store(true, Ordering::Relaxed);
        let which = match held(&self.folder) {
            Some(path) => format!("the lock `{}`", path.display()),
            None => format!("a lock in `{}`", self.folder.display()),
        };
        VaultError(format!(
            "Another program has held {which} for {} seconds. See what holds it, end that, and try \
             again.",
            PATIENCE.as_secs()
        ))
    }
}

impl Vault for LockTimeout {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        self.inner.get(name)
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        self.inner.put(name, text)
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        self.inner.remove(name)
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        self.inner.names()
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        Box::pin(async move {
            let locked = timeout(PATIENCE, self.inner.lock(name)).await;
            locked.unwrap_or_else(|_| Err(self.late()))
        })
    }
}

/// A lock of the folder that another process holds.
fn held(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(|it| Some(it.ok()?.path()));
    let mut locks = files.filter(|it| it.extension().is_some_and(|it| it == "lock"));
    locks.find(|path| {
        fs::symlink_metadata(path).is_ok_and(|it| it.is_file())
            && File::open(path)
                .is_ok_and(|it| matches!(it.try_lock(), Err(TryLockError::WouldBlock)))
    })
}

const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline::auth::FileVault;

    #[tokio::test(start_paused = true)]
    async fn a_lock_that_is_never_given_back_is_named() {
        let folder = std::env::temp_dir().join(format!("trunkline-vault-{}", std::process::id()));
        let holder = FileVault::new(&folder);
        let _lock = holder.lock("token a").await.unwrap();
        let vault = LockTimeout::new(Arc::new(FileVault::new(&folder)), &folder);
        drop(vault.lock("token b").await.unwrap());
        assert!(!vault.is_late());
        let why = vault.lock("token a").await.err().expect("somebody holds it").to_string();
        let path = held(&folder).expect("it is held");
        fs::remove_dir_all(&folder).unwrap();
        assert!(vault.is_late());
        assert!(
            why.contains(&format!("held the lock `{}` for 30 seconds", path.display())),
            "{why}"
        );
    }
}
