//! Logins and registrations ⇄ texts in a vault.
//!
//! Four kinds of names: `login KIND SERVER` is the issuer and resource that a server named, `token
//! KIND ISSUER RESOURCE` is a login there, `client ISSUER` is a registration, and `issuer KIND
//! SERVER` is the issuer that given credentials are for; if they are secret, it outlives logins. So
//! a lookup for one authorization server never finds a credential of another.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Kept;
use super::error::AuthError;
use super::login::Login;
use super::register::Client;
use super::vault::Vault;
use crate::fetch::Pending;
use crate::jose::{Algorithm, SigningKey};
use crate::scope::Scopes;

impl Kept {
    pub(super) fn shown(&self) -> Login {
        Login {
            server: self.server.clone(),
            issuer: self.issuer.clone(),
            resource: self.resource.clone(),
            client_id: self.client.id.clone(),
            scopes: Scopes::parse(&self.granted).as_slice().to_vec(),
            subject: self.subject.clone(),
            expires: self.expires.map(|it| SystemTime::UNIX_EPOCH + Duration::from_secs(it)),
            renews: self.refresh.is_some(),
            is_bound: self.is_bound,
        }
    }

    /// Whether it is not expired yet.
    pub(super) fn is_alive(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|it| seconds(now) < it)
    }

    /// Whether it is due for a refresh.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        self.renew.is_some_and(|it| seconds(now) >= it)
    }
}

/// A login in use.
pub(super) struct Held {
    pub(super) kept: Kept,
    pub(super) key: Option<Arc<SigningKey>>,
    pub(super) origin: TokenOrigin,
}

/// How this process got a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenOrigin {
    /// It was in the vault.
    Stored,
    Renewed,
    LoggedIn,
}

impl Held {
    pub(super) fn new(kept: Kept, origin: TokenOrigin) -> Self {
        let key = kept.key.as_deref().and_then(|it| {
            let pkcs8 = STANDARD.decode(it).ok()?;
            SigningKey::from_pkcs8(&pkcs8, Algorithm::ES256).ok().map(Arc::new)
        });
        Self { kept, key, origin }
    }
}

/// A key as it is stored.
pub(super) fn written(key: &SigningKey) -> String {
    STANDARD.encode(key.pkcs8())
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

/// The issuer and resource that a server named.
#[derive(Serialize, Deserialize)]
pub(super) struct Pointer {
    pub(super) issuer: String,
    pub(super) resource: String,
}

/// The part of a vault that belongs to one server and one kind of login.
pub(super) struct Store<'a> {
    vault: &'a dyn Vault,
    server: &'a str,
    label: String,
}

type Lock = Box<dyn Send>;

impl<'a> Store<'a> {
    pub(super) fn new(vault: &'a dyn Vault, server: &'a str, label: String) -> Self {
        Self { vault, server, label }
    }

    /// The login of this server.
    pub(super) async fn load(&self) -> Result<Option<Held>, AuthError> {
        let Some(pointer) = self.pointer().await? else { return Ok(None) };
        let kept = self.token(&pointer.issuer, &pointer.resource).await?;
        let held = kept.map(|it| Held::new(it, TokenOrigin::Stored));
        // A bound token is useless without its key.
        Ok(held.filter(|it| !it.kept.is_bound || it.key.is_some()))
    }

    pub(super) async fn pointer(&self) -> Result<Option<Pointer>, AuthError> {
        self.read(&self.login_name()).await
    }

    pub(super) async fn token(
        &self,
        issuer: &str,
        resource: &str,
    ) -> Result<Option<Kept>, AuthError> {
        self.read(&self.token_name(issuer, resource)).await
    }

    /// Stores a new login.
    pub(super) async fn save(&self, kept: &Kept) -> Result<(), AuthError> {
        {
            // A refresh of the old login in flight must not overwrite it.
            let _turn = self.lock_token(&kept.issuer, &kept.resource).await?;
            self.put_token(kept).await?;
        }
        let pointer = Pointer { issuer: kept.issuer.clone(), resource: kept.resource.clone() };
        self.write(&self.login_name(), &pointer).await
    }

    /// Stores tokens. The caller holds [`lock_token`](Self::lock_token).
    pub(super) async fn put_token(&self, kept: &Kept) -> Result<(), AuthError> {
        self.write(&self.token_name(&kept.issuer, &kept.resource), kept).await
    }

    pub(super) async fn forget(&self, login: Option<&Pointer>) -> Result<(), AuthError> {
        self.vault.remove(&self.login_name()).await?;
        if let Some(kept) = login {
            self.vault.remove(&self.token_name(&kept.issuer, &kept.resource)).await?;
        }
        Ok(())
    }

    /// The issuer that given credentials are for.
    pub(super) async fn issuer(&self) -> Result<Option<String>, AuthError> {
        self.read(&self.issuer_name()).await
    }

    pub(super) async fn put_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        self.write(&self.issuer_name(), &issuer).await
    }

    pub(super) async fn forget_issuer(&self) -> Result<(), AuthError> {
        Ok(self.vault.remove(&self.issuer_name()).await?)
    }

    pub(super) async fn client(&self, issuer: &str) -> Result<Option<Client>, AuthError> {
        self.read(&client_name(issuer)).await
    }

    pub(super) async fn put_client(&self, issuer: &str, it: &Client) -> Result<(), AuthError> {
        self.write(&client_name(issuer), it).await
    }

    /// Records whether the last page of this client never redirected. A registration that another
    /// login has made meanwhile is left alone.
    pub(super) async fn mark_client(
        &self,
        issuer: &str,
        id: &str,
        is_unanswered: bool,
    ) -> Result<(), AuthError> {
        match self.client(issuer).await? {
            Some(client) if client.id == id && client.is_unanswered != is_unanswered => {
                self.put_client(issuer, &Client { is_unanswered, ..client }).await
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn forget_client(&self, issuer: &str) -> Result<(), AuthError> {
        Ok(self.vault.remove(&client_name(issuer)).await?)
    }

    /// One login at a time.
    pub(super) async fn lock_login(&self) -> Result<Lock, AuthError> {
        Ok(self.vault.lock(&self.login_name()).await?)
    }

    /// One change of these tokens at a time.
    pub(super) async fn lock_token(&self, issuer: &str, resource: &str) -> Result<Lock, AuthError> {
        Ok(self.vault.lock(&self.token_name(issuer, resource)).await?)
    }

    async fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, AuthError> {
        read(self.vault, name).await
    }

    fn write<'b, T: Serialize>(
        &'b self,
        name: &'b str,
        it: &T,
    ) -> Pending<'b, Result<(), AuthError>> {
        let text = serde_json::to_string(it).expect("texts, numbers and lists have a JSON form");
        Box::pin(async move { Ok(self.vault.put(name, &text).await?) })
    }

    fn login_name(&self) -> String {
        format!("{LOGIN}{} {}", word(&self.label), word(self.server))
    }

    fn issuer_name(&self) -> String {
        format!("issuer {} {}", word(&self.label), word(self.server))
    }

    fn token_name(&self, issuer: &str, resource: &str) -> String {
        format!("token {} {} {}", word(&self.label), word(issuer), word(resource))
    }
}

/// Every login in a vault.
pub(super) async fn all(vault: &dyn Vault) -> Result<Vec<Login>, AuthError> {
    let mut logins = Vec::new();
    for name in vault.names().await? {
        let Some((label, _)) = name.strip_prefix(LOGIN).and_then(|it| it.split_once(' ')) else {
            continue;
        };
        let Some(pointer) = read::<Pointer>(vault, &name).await? else { continue };
        let token = format!("token {label} {} {}", word(&pointer.issuer), word(&pointer.resource));
        logins.extend(read::<Kept>(vault, &token).await?.map(|it| it.shown()));
    }
    Ok(logins)
}

/// An unreadable entry counts as absent: then the user logs in again.
async fn read<T: DeserializeOwned>(vault: &dyn Vault, name: &str) -> Result<Option<T>, AuthError> {
    let text = vault.get(name).await?;
    Ok(text.and_then(|it| serde_json::from_str(&it).ok()))
}

fn client_name(issuer: &str) -> String {
    format!("client {}", word(issuer))
}

/// A part of a name: printable, without spaces, and injective.
fn word(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

const LOGIN: &str = "login ";

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn parts_of_names_stay_apart() {
        assert_eq!(word("https://a.example/x"), "https://a.example/x");
        assert_eq!(word("a b"), "a%20b");
        assert_eq!(word("a%20b"), "a%2520b");
        assert_eq!(word("é\n"), "%C3%A9%0A");
    }
}
