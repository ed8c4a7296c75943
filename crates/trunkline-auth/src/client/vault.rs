//! The storage of logins, between requests and between processes.

use crate::fetch::Pending;

/// Stores short secret texts by name. Names are printable ASCII of any length.
pub trait Vault: Send + Sync + 'static {
    /// The text of this name.
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>>;

    /// Stores a text atomically: a reader sees the old one or the new one, also after a crash.
    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>>;

    /// Deletes a text, if it exists.
    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>>;

    /// Every name, sorted.
    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>>;

    /// Waits for the lock of `name`, which processes that share the vault share too. Dropping the
    /// returned value releases it.
    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>>;
}

/// Why a vault cannot be used, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultError(pub String);

crate::error_in_words!(VaultError);
