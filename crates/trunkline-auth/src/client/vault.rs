//! Where logins are kept between requests, and between processes.

use std::fmt;

use crate::fetch::Pending;

/// Keeps short secret texts by name. Names are printable ASCII of any length.
pub trait Vault: Send + Sync + 'static {
    /// The text of this name.
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>>;

    /// Keeps a text: whoever reads sees the old one or the new one, also after a crash.
    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>>;

    /// Forgets a text; it need not be there.
    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>>;

    /// Every name, sorted.
    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>>;

    /// Waits until nobody else holds `name`, in this process or another that shares the vault.
    /// Dropping what comes back lets the next one in.
    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>>;
}

/// Why a vault cannot be used. In words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultError(pub String);

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VaultError {}
