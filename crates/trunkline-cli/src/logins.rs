//! A server's URL → the user's stored login for it, and the credentials for calls.
//!
//! ```text
//! cli URL      how to log in there: client, scopes, key …          always in the folder
//! secret URL   the client's secret, if it has one                  where the login is
//! login …      what the rules of authorization keep                in the folder or the keyring
//! ```

mod lock_timeout;
mod method;
mod person;
mod profile;
mod unreadable;

pub(crate) use method::{Probe, StoredLogin};
pub(crate) use person::Person;
pub(crate) use profile::{Profile, certificate};
pub(crate) use unreadable::Damaged;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use trunkline::auth::vault::{Vault, VaultError};
use trunkline::auth::{FileVault, KeyringVault, Login, OAuth};

use self::lock_timeout::LockTimeout;
use crate::failure::Failure;
use crate::words::as_word;

/// The logins of this user.
pub(crate) struct Logins {
    files: Arc<FileVault>,
    keyring: OnceLock<Arc<KeyringVault>>,
}

impl Logins {
    /// Those in the folder that `TRUNKLINE_LOGINS` names, or else in the default one.
    pub(crate) fn open() -> Result<Self, Failure> {
        let files = match std::env::var_os("TRUNKLINE_LOGINS") {
            Some(folder) if !folder.is_empty() => FileVault::new(folder),
            _ => FileVault::usual().map_err(|error| {
                Failure::vault(&error).advice("Name a folder in `TRUNKLINE_LOGINS`.")
            })?,
        };
        Ok(Self { files: Arc::new(files), keyring: OnceLock::new() })
    }

    /// The profile of the login to a server, if there is one.
    pub(crate) async fn find(&self, url: &str) -> Result<Option<Profile>, Failure> {
        if let Some(text) = self.files.get(&name(url)).await.map_err(broken)? {
            return match serde_json::from_str(&text) {
                Ok(profile) => Ok(Some(profile)),
                Err(_) => Err(unreadable(url)),
            };
        }
        // Another program of this user may have logged in.
        let profile = Profile::new(url);
        let is_there = self.login(&profile).await?.is_some();
        Ok(is_there.then_some(profile))
    }

    /// Every server with a login, in order; and the unreadable ones.
    pub(crate) async fn all(&self) -> Result<(Vec<Profile>, Vec<Damaged>), Failure> {
        let (mut profiles, mut damaged) = (Vec::new(), Vec::new());
        for name in self.files.names().await.map_err(broken)? {
            if let Some(url) = name.strip_prefix(PROFILE) {
                match self.find(url).await {
                    Err(failure) if failure.is_damaged => {
                        damaged.push(Damaged::Login(url.to_owned()));
                    }
                    found => profiles.extend(found?),
                }
            }
        }
        for login in OAuth::kept(&*self.files).await.map_err(Failure::login)? {
            let is_known = |it: &Profile| key(it.server()) == key(&login.server);
            let is_damaged = |it: &Damaged| it.is_about(&key(&login.server));
            if !profiles.iter().any(is_known) && !damaged.iter().any(is_damaged) {
                profiles.extend(self.find(&login.server).await?);
            }
        }
        profiles.sort_by(|one, other| one.server().cmp(other.server()));
        damaged.extend(unreadable::files(self.files.folder()).into_iter().map(Damaged::File));
        Ok((profiles, damaged))
    }

    /// The stored login, for display.
    pub(crate) async fn login(&self, profile: &Profile) -> Result<Option<Login>, Failure> {
        let oauth = profile.way_in(self.vault(profile), None)?;
        oauth.status().await.map_err(Failure::login)
    }

    /// The login that a profile describes.
    pub(crate) async fn way_in(&self, profile: &Profile) -> Result<OAuth, Failure> {
        profile.way_in(self.vault(profile), self.secret(profile).await?)
    }

    /// Stores a profile, and the client's secret if there is one.
    pub(crate) async fn keep(
        &self,
        profile: &Profile,
        client_secret: Option<&str>,
    ) -> Result<(), Failure> {
        let text = serde_json::to_string(profile).expect("texts and lists have a JSON form");
        if let Some(client_secret) = client_secret {
            let put = self.vault(profile);
            put.put(&secret(profile.server()), client_secret).await.map_err(broken)?;
        }
        self.files.put(&name(profile.server()), &text).await.map_err(broken)
    }

    /// The client's secret of an earlier login.
    pub(crate) async fn secret(&self, profile: &Profile) -> Result<Option<String>, Failure> {
        let kept = self.vault(profile).get(&secret(profile.server())).await.map_err(broken)?;
        // An unreadable secret counts as absent.
        Ok(kept.filter(|it| !it.is_empty()))
    }

    /// Revokes a login and deletes everything about it.
    pub(crate) async fn leave(&self, profile: &Profile) -> Result<(), Failure> {
        // The keyring may be unavailable; delete what can be deleted.
        let left = match self.secret(profile).await {
            Ok(secret) => self.give_back(profile, secret).await,
            Err(failure) => Err(failure),
        };
        if left.as_ref().is_err_and(Failure::is_late) {
            return left;
        }
        self.vault(profile).remove(&secret(profile.server())).await.map_err(broken)?;
        self.files.remove(&name(profile.server())).await.map_err(broken)?;
        left
    }

    /// Revokes the tokens of a login, and deletes them.
    pub(crate) async fn give_back(
        &self,
        profile: &Profile,
        secret: Option<String>,
    ) -> Result<(), Failure> {
        let vault = LockTimeout::new(self.vault(profile), self.files.folder());
        let oauth = profile.way_in(Arc::clone(&vault) as _, secret)?;
        oauth.logout().await.map_err(|error| match vault.is_late() {
            true => Failure::late(&error),
            false => Failure::login(error),
        })
    }

    /// The authorization servers at which we are registered.
    pub(crate) async fn registrations(&self) -> Result<Vec<String>, Failure> {
        let names = self.files.names().await.map_err(broken)?;
        let issuers = names.iter().filter_map(|it| it.strip_prefix(CLIENT));
        Ok(issuers.map(str::to_owned).collect())
    }

    /// Deletes registrations, and tokens that belong to no login.
    pub(crate) async fn forget_rest(&self) -> Result<(), Failure> {
        for name in self.files.names().await.map_err(broken)? {
            if name.starts_with("token ") || name.starts_with(CLIENT) {
                self.files.remove(&name).await.map_err(broken)?;
            }
        }
        Ok(())
    }

    /// Removes an unreadable file.
    pub(crate) fn discard(&self, file: &Path) -> Result<(), Failure> {
        std::fs::remove_file(file).map_err(|error| {
            broken(VaultError(format!("`{}` cannot be removed: {error}.", file.display())))
        })
    }

    /// Where a login is stored, in words.
    pub(crate) fn place(&self, profile: &Profile) -> String {
        let folder = shown(self.files.folder());
        match profile.keyring {
            true => format!("{folder}, sealed by the keyring"),
            false => folder,
        }
    }

    pub(crate) fn vault(&self, profile: &Profile) -> Arc<dyn Vault> {
        if !profile.keyring {
            return Arc::clone(&self.files) as _;
        }
        let keyring = || Arc::new(KeyringVault::new(self.files.folder()));
        Arc::clone(self.keyring.get_or_init(keyring)) as _
    }
}

/// A folder for display.
fn shown(folder: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|it| !it.is_empty());
    match home.and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    }
}

/// A normalized URL.
fn key(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("{}://{}{slash}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
}

fn name(url: &str) -> String {
    format!("{PROFILE}{}", key(url))
}

fn secret(url: &str) -> String {
    format!("secret {}", key(url))
}

fn broken(error: VaultError) -> Failure {
    Failure::vault(&error)
}

fn unreadable(url: &str) -> Failure {
    let why = Damaged::Login(url.to_owned()).to_string();
    let mut failure = Failure::vault(&VaultError(why))
        .advice(format!("Forget it with `trunkline logout {}`, then log in again.", as_word(url)));
    failure.is_damaged = true;
    failure
}

const PROFILE: &str = "cli ";
/// The prefix of the names of registrations.
const CLIENT: &str = "client ";

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn a_server_is_found_however_its_address_is_written() {
        for (written, expected) in [
            ("https://MCP.example", "https://mcp.example/"),
            ("HTTPS://mcp.example/", "https://mcp.example/"),
            ("https://mcp.example/Mcp", "https://mcp.example/Mcp"),
            ("https://mcp.example/mcp/", "https://mcp.example/mcp/"),
            ("https://mcp.example?a=B#c", "https://mcp.example/?a=B"),
        ] {
            assert_eq!(key(written), expected, "{written}");
        }
    }
}
