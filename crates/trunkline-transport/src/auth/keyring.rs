//! Logins kept in files that only the keyring of the operating system can open.
//!
//! The keyring holds one key, which never changes; the files hold what it sealed. So a login may be
//! of any length, is replaced as a whole, and is locked like a file.

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

/// Keeps logins in a folder, sealed with a key from the keyring: the Secret Service on Linux
/// (through `secret-tool`), the keychain on macOS (through `security`).
pub struct KeyringVault {
    sealed: FileVault,
    plain: FileVault,
    tool: Tool,
    tell: Option<Tell>,
    /// `None` inside: there is no keyring, and files will do.
    sealer: OnceCell<Option<Sealer>>,
}

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

impl KeyringVault {
    /// Keeps what is sealed in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::with(folder.into(), Tool::default())
    }

    /// Keeps what is sealed in the folder of [`FileVault::usual`].
    pub fn usual() -> Result<Self, VaultError> {
        Ok(Self::new(FileVault::usual()?.folder()))
    }

    /// Where there is no keyring, or it stays locked, logins are kept as [`FileVault`] keeps them;
    /// `tell` is told so once. Where some were sealed before, that is an error instead: they are
    /// there, and whoever unlocks the keyring has them.
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

    /// Where things are, and what seals them.
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

    /// The key of the keyring, made if there is none.
    async fn key(&self) -> Result<[u8; 32], VaultError> {
        let unusable = |why: String| {
            VaultError(format!("The keyring cannot be used: {why}. Unlock it, or use files."))
        };
        // Two processes that make one at once would each lose what the other sealed.
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
            // What another keyring sealed is lost: logging in anew replaces it.
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

/// How long what is sealed is good: what it holds has an end of its own.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[cfg(test)]
mod tests;
