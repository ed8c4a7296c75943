//! Logins in files that only a key from the operating system's keyring can open.
//!
//! The keyring holds one key, which never changes; the files hold the logins it sealed. So a login may
//! have any length, is replaced atomically, and is locked like a file.

mod tool;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::OnceCell;
use trunkline_auth::client::vault::{Vault, VaultError};
use trunkline_auth::fetch::Pending;
use trunkline_auth::seal::Sealer;
use trunkline_auth::tag::random_name;

use super::file::FileVault;
use tool::Tool;

/// Stores logins in a folder, sealed with a key from the keyring: the Secret Service on Linux (through
/// `secret-tool`), the keychain on macOS (through `security`).
pub struct KeyringVault {
    sealed: FileVault,
    plain: FileVault,
    tool: Tool,
    tell: Option<Tell>,
    /// `None` inside: there is no keyring, and plain files are used.
    sealer: OnceCell<Option<Sealer>>,
}

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

impl KeyringVault {
    /// Stores sealed logins in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::with(folder.into(), Tool::default())
    }

    /// Stores sealed logins in the folder of [`FileVault::usual`].
    pub fn usual() -> Result<Self, VaultError> {
        Ok(Self::new(FileVault::usual()?.folder()))
    }

    /// Without a keyring, or with a locked one, falls back to [`FileVault`], and reports it once to
    /// `tell`. If sealed logins exist already, that is an error instead: unlocking the keyring makes
    /// them available.
    #[must_use]
    pub fn or_files(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.tell = Some(Arc::new(tell));
        self
    }

    fn with(folder: PathBuf, tool: Tool) -> Self {
        Self {
            sealed: FileVault::new(folder.join("sealed")),
            plain: FileVault::new(folder),
            tool,
            tell: None,
            sealer: OnceCell::new(),
        }
    }

    /// The folder, and the key that seals it.
    async fn open(&self) -> Result<(&FileVault, Option<&Sealer>), VaultError> {
        let found = self.sealer.get_or_try_init(|| async {
            match (self.key().await, &self.tell) {
                (Ok(key), _) => Ok(Some(Sealer::new(&[key]))),
                (Err(VaultError(why)), Some(tell)) => {
                    if !self.sealed.names().await?.is_empty() {
                        let folder = self.sealed.folder().display();
                        let word =
                            "are sealed with its key; without it, remove them and log in anew.";
                        return Err(VaultError(format!("{why} The logins in `{folder}` {word}")));
                    }
                    let folder = self.plain.folder().display();
                    tell(&format!("{why} Logins are kept in `{folder}`, readable by you alone."));
                    Ok(None)
                }
                (Err(why), None) => Err(why),
            }
        });
        let sealer = found.await?.as_ref();
        Ok((if sealer.is_some() { &self.sealed } else { &self.plain }, sealer))
    }

    /// The key in the keyring, created if necessary.
    async fn key(&self) -> Result<[u8; 32], VaultError> {
        let unusable = |why: String| {
            VaultError(format!("The keyring cannot be used: {why}. Unlock it, or use files."))
        };
        // Two processes that each create a key would lose the other's logins.
        let _turn = self.sealed.lock("the key").await?;
        let mut text = self.tool.lookup().await.map_err(unusable)?;
        if text.is_none() {
            let new = random_name() + &random_name();
            self.tool.store(&new).await.map_err(unusable)?;
            text = self.tool.lookup().await.map_err(unusable)?;
        }
        let key = text.as_deref().and_then(key_of);
        key.ok_or_else(|| unusable("it does not give back what it was given".to_owned()))
    }
}

impl fmt::Debug for KeyringVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringVault")
            .field("folder", &self.sealed.folder())
            .field("or_files", &self.tell.is_some())
            .finish_non_exhaustive()
    }
}

impl Vault for KeyringVault {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        Box::pin(async move {
            let (files, sealer) = self.open().await?;
            let text = files.get(name).await?;
            let Some(sealer) = sealer else { return Ok(text) };
            // A login sealed by another key is lost: a new login replaces it.
            Ok(text.and_then(|it| {
                let opened = sealer.open(&it, name.as_bytes(), SystemTime::now()).ok()?;
                String::from_utf8(opened).ok()
            }))
        })
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move {
            match self.open().await? {
                (files, None) => files.put(name, text).await,
                (files, Some(sealer)) => {
                    let expires = SystemTime::now() + FOR_EVER;
                    let sealed = sealer.seal(text.as_bytes(), name.as_bytes(), expires);
                    files.put(name, &sealed).await
                }
            }
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move { self.open().await?.0.remove(name).await })
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        Box::pin(async move { self.open().await?.0.names().await })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        Box::pin(async move { self.open().await?.0.lock(name).await })
    }
}

/// 64 hexadecimal digits.
fn key_of(text: &str) -> Option<[u8; 32]> {
    let text = text.trim();
    if text.len() != 64 || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(key)
}

/// The TTL of the seal: its content has its own expiry.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[cfg(test)]
mod tests;
