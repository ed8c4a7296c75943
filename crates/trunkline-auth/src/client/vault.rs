//! Where logins are kept between requests, and between processes.

use std::fmt;

use crate::fetch::Pending;

/// Keeps short secret texts by name. Names are printable ASCII of any length.
///
/// ```
/// use trunkline_auth::client::vault::{Vault, VaultError};
///
/// /// Whether somebody was ever logged in.
/// async fn is_used(vault: &dyn Vault) -> Result<bool, VaultError> {
///     Ok(!vault.names().await?.is_empty())
/// }
/// ```
pub trait Vault: Send + Sync + 'static {
    /// The text of this name.
    ///
    /// ```
    /// # use trunkline_auth::client::vault::{Vault, VaultError};
    /// async fn has(vault: &dyn Vault, name: &str) -> Result<bool, VaultError> {
    ///     Ok(vault.get(name).await?.is_some())
    /// }
    /// ```
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>>;

    /// Keeps a text: whoever reads sees the old one or the new one, also after a crash.
    ///
    /// ```
    /// # use trunkline_auth::client::vault::{Vault, VaultError};
    /// async fn keep(vault: &dyn Vault) -> Result<(), VaultError> {
    ///     vault.put("name", "text").await
    /// }
    /// ```
    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>>;

    /// Forgets a text; it need not be there.
    ///
    /// ```
    /// # use trunkline_auth::client::vault::{Vault, VaultError};
    /// async fn forget(vault: &dyn Vault) -> Result<(), VaultError> {
    ///     vault.remove("name").await
    /// }
    /// ```
    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>>;

    /// Every name, sorted.
    ///
    /// ```
    /// # use trunkline_auth::client::vault::{Vault, VaultError};
    /// async fn count(vault: &dyn Vault) -> Result<usize, VaultError> {
    ///     Ok(vault.names().await?.len())
    /// }
    /// ```
    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>>;

    /// Waits until nobody else holds `name`, in this process or another that shares the vault.
    /// Dropping what comes back lets the next one in.
    ///
    /// ```
    /// # use trunkline_auth::client::vault::{Vault, VaultError};
    /// async fn change(vault: &dyn Vault) -> Result<(), VaultError> {
    ///     let _only_us = vault.lock("name").await?;
    ///     let text = vault.get("name").await?.unwrap_or_default();
    ///     vault.put("name", &format!("{text}, changed")).await
    /// }
    /// ```
    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>>;
}

/// Why a vault cannot be used. In words.
///
/// ```
/// use trunkline_auth::client::vault::VaultError;
///
/// let error = VaultError("`logins` can be read by others; make it yours alone.".into());
/// assert_eq!(error.to_string(), "`logins` can be read by others; make it yours alone.");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultError(pub String);

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VaultError {}
