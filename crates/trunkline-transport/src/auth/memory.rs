//! Logins stored until the process ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as Turn;
use trunkline_auth::client::vault::{Vault, VaultError};
use trunkline_auth::fetch::Pending;

/// Stores logins in memory: for tests, and for services that log in on every start.
#[derive(Default)]
pub struct MemoryVault {
    texts: Mutex<BTreeMap<String, String>>,
    locks: NameLocks,
}

impl MemoryVault {
    /// An empty vault.
    pub fn new() -> Self {
        Self::default()
    }

    fn texts(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryVault {
    /// Omits the logins.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryVault").finish_non_exhaustive()
    }
}

impl Vault for MemoryVault {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        Box::pin(async move { Ok(self.texts().get(name).cloned()) })
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move {
            self.texts().insert(name.to_owned(), text.to_owned());
            Ok(())
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move {
            self.texts().remove(name);
            Ok(())
        })
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        Box::pin(async move { Ok(self.texts().keys().cloned().collect()) })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        Box::pin(async move { Ok(Box::new(self.locks.take(name).await) as Box<dyn Send>) })
    }
}

/// A lock per name, among the tasks of this process.
#[derive(Default)]
pub(super) struct NameLocks(Mutex<BTreeMap<String, Arc<Turn<()>>>>);

impl NameLocks {
    /// Waits for the lock, which lasts until the guard is dropped.
    pub(super) async fn take(&self, name: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A lock that is held or awaited has a second reference.
            locks.retain(|_, it| Arc::strong_count(it) > 1);
            Arc::clone(locks.entry(name.to_owned()).or_default())
        };
        turn.lock_owned().await
    }

    #[cfg(test)]
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.0.lock().unwrap().get(name).is_some_and(|it| it.try_lock().is_err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_holds_a_name() {
        let vault = Arc::new(MemoryVault::new());
        let held = vault.lock("a").await.unwrap();
        let other = vault.lock("b").await.unwrap();
        let waiting = tokio::spawn({
            let vault = Arc::clone(&vault);
            async move { drop(vault.lock("a").await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap();
        drop(other);
        drop(vault.lock("c").await);
        assert_eq!(vault.locks.0.lock().unwrap().len(), 1, "those that nobody holds are forgotten");
    }

    #[tokio::test]
    async fn texts_are_kept_until_they_are_removed() {
        let vault = MemoryVault::new();
        assert_eq!(vault.get("a").await, Ok(None));
        vault.put("b", "2").await.unwrap();
        vault.put("a", "0").await.unwrap();
        vault.put("a", "1").await.unwrap();
        assert_eq!(vault.get("a").await, Ok(Some("1".to_owned())));
        assert_eq!(vault.names().await, Ok(vec!["a".to_owned(), "b".to_owned()]));
        vault.remove("a").await.unwrap();
        vault.remove("a").await.unwrap();
        assert_eq!(vault.names().await, Ok(vec!["b".to_owned()]));
    }
}
