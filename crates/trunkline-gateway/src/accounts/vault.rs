//! Splits one vault into parts for each principal and server. Registrations (RFC 7591) are in a shared part.

use std::sync::Arc;

use trunkline_auth::client::vault::{Vault, VaultError};
use trunkline_auth::fetch::Pending;

/// The part of one principal at one server.
pub(super) struct Scoped {
    vault: Arc<dyn Vault>,
    prefix: String,
}

impl Scoped {
    pub(super) fn new(vault: Arc<dyn Vault>, id: &str, server: &str) -> Self {
        Self { vault, prefix: prefix(id, server) }
    }

    fn name(&self, name: &str) -> String {
        match is_of_all(name) {
            true => name.to_owned(),
            false => format!("{}{name}", self.prefix),
        }
    }
}

/// Whether all principals share the entry with this name.
pub(super) fn is_of_all(name: &str) -> bool {
    name.starts_with("client ")
}

/// The name of the entry that says that a principal is logged in. Its text is the principal's name.
pub(super) fn person(id: &str, server: &str) -> String {
    format!("{}{PERSON}", prefix(id, server))
}

/// The principal and the server of such an entry.
pub(super) fn is_person(name: &str) -> Option<(String, String)> {
    let mut parts = name.strip_prefix(ACCOUNT)?.split(' ');
    let (id, server, what) = (parts.next()?, parts.next()?, parts.next()?);
    (what == PERSON && parts.next().is_none()).then(|| Some((read(id)?, read(server)?))).flatten()
}

fn prefix(id: &str, server: &str) -> String {
    format!("{ACCOUNT}{} {} ", word(id), word(server))
}

/// Encodes a part of a name: printable, without spaces, injective.
fn word(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_graphic() && byte != b'%' {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn read(word: &str) -> Option<String> {
    let (mut out, mut bytes) = (Vec::new(), word.bytes());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(out).ok()
}

impl Vault for Scoped {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        Box::pin(async move { self.vault.get(&self.name(name)).await })
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move { self.vault.put(&self.name(name), text).await })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move { self.vault.remove(&self.name(name)).await })
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        Box::pin(async move {
            let all = self.vault.names().await?.into_iter();
            let own = |it: String| match is_of_all(&it) {
                true => Some(it),
                false => it.strip_prefix(&self.prefix).map(str::to_owned),
            };
            Ok(all.filter_map(own).collect())
        })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        Box::pin(async move { self.vault.lock(&self.name(name)).await })
    }
}

const ACCOUNT: &str = "account ";
const PERSON: &str = "person";

#[cfg(test)]
mod tests {
    use trunkline_transport::auth::MemoryVault;

    use super::*;

    #[test]
    fn principals_and_servers_stay_apart() {
        for (id, server) in [("n0:ann", "git"), ("i3:a b%20é", "x"), ("", "git")] {
            let name = person(id, server);
            assert!(name.bytes().all(|it| it.is_ascii_graphic() || it == b' '), "{name}");
            assert_eq!(is_person(&name), Some((id.to_owned(), server.to_owned())), "{name}");
        }
        assert_ne!(prefix("a b", "c"), prefix("a", "b c"));
        assert_eq!(is_person("account a b token x"), None);
        assert_eq!(is_person("client https://id.example"), None);
    }

    #[tokio::test]
    async fn tokens_are_per_principal_and_registrations_are_shared() {
        let vault: Arc<dyn Vault> = Arc::new(MemoryVault::new());
        let part = |id, server| Scoped::new(Arc::clone(&vault), id, server);
        let (ann, bob) = (part("ann", "git"), part("bob", "git"));
        ann.put("token x", "secret").await.unwrap();
        ann.put("client x", "registration").await.unwrap();
        assert_eq!(bob.get("token x").await.unwrap(), None);
        assert_eq!(part("ann", "mail").get("token x").await.unwrap(), None);
        assert_eq!(ann.get("token x").await.unwrap().as_deref(), Some("secret"));
        assert_eq!(bob.get("client x").await.unwrap().as_deref(), Some("registration"));
        assert_eq!(bob.names().await.unwrap(), ["client x"]);
        assert_eq!(ann.names().await.unwrap(), ["token x", "client x"]);
    }
}
