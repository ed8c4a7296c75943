//! A vault in the store that replicas share. Names and texts are sealed: the store's operator reads neither.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use trunkline_auth::client::vault::{Vault, VaultError};
use trunkline_auth::digest::sha256;
use trunkline_auth::fetch::Pending;
use trunkline_auth::seal::Sealer;
use trunkline_store::{Lease, Store};

use crate::fleet::Fleet;

/// The vault of all replicas.
pub(crate) struct FleetVault {
    store: Arc<dyn Store>,
    sealer: Sealer,
    /// A secret of all replicas: nobody else can tell from a key which name it is.
    salt: String,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    name: String,
    text: String,
}

impl FleetVault {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        // The last key is the oldest: a new one is put before it, and the keys of entries stay.
        let oldest = fleet.keys().last().copied().unwrap_or_default();
        let salt = sha256(&[&oldest[..], b"trunkline vault"].concat());
        Self { store: Arc::clone(fleet.store()), sealer: fleet.sealer(), salt }
    }

    fn key(&self, name: &str) -> String {
        let digest = sha256(format!("{}\0{name}", self.salt).as_bytes());
        format!("{PREFIX}{}", &digest["sha256:".len()..])
    }

    /// What was sealed, unless no key opens it any more.
    fn open(&self, value: &[u8]) -> Option<Kept> {
        let sealed = str::from_utf8(value).ok()?;
        let plain = self.sealer.open(sealed, CONTEXT, SystemTime::now()).ok()?;
        serde_json::from_slice(&plain).ok()
    }

    fn lease_name(&self, name: &str) -> String {
        self.key(name)
    }
}

fn failed(error: trunkline_store::StoreError) -> VaultError {
    VaultError(format!("The logins in the shared store cannot be used. {error}"))
}

impl Vault for FleetVault {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        Box::pin(async move {
            let entry = self.store.get(&self.key(name)).await.map_err(failed)?;
            let kept = entry.and_then(|it| self.open(&it.value));
            Ok(kept.filter(|it| it.name == name).map(|it| it.text))
        })
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move {
            let kept = Kept { name: name.to_owned(), text: text.to_owned() };
            let plain = serde_json::to_vec(&kept).expect("texts can be written");
            let sealed = self.sealer.seal(&plain, CONTEXT, SystemTime::now() + LIFE);
            let put = self.store.put(&self.key(name), sealed.as_bytes(), Some(LIFE)).await;
            put.map(drop).map_err(failed)
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move { self.store.delete(&self.key(name)).await.map(drop).map_err(failed) })
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        Box::pin(async move {
            let (mut names, mut after) = (Vec::new(), None::<String>);
            loop {
                let page = self.store.scan(PREFIX, after.as_deref(), PAGE).await.map_err(failed)?;
                names.extend(
                    page.items.iter().filter_map(|it| self.open(&it.value)).map(|it| it.name),
                );
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            names.sort_unstable();
            Ok(names)
        })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        Box::pin(async move {
            let name = self.lease_name(name);
            let waiting = async {
                loop {
                    if let Some(lease) = self.store.lease(&name, LEASE).await.map_err(failed)? {
                        return Ok(lease);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            };
            let lease = tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| {
                VaultError("Another replica has held a login for too long; try again.".to_owned())
            })??;
            let (guard, dropped) = oneshot::channel::<()>();
            tokio::spawn(hold(Arc::clone(&self.store), lease, dropped));
            Ok(Box::new(guard) as Box<dyn Send>)
        })
    }
}

/// Renews a lease until its guard is dropped, and releases it then.
async fn hold(store: Arc<dyn Store>, lease: Lease, mut dropped: oneshot::Receiver<()>) {
    while tokio::time::timeout(LEASE / 3, &mut dropped).await.is_err() {
        // A renewal that fails is tried again; without any the lease ends by itself.
        let _ = store.renew(&lease, LEASE).await;
    }
    let _ = store.release(&lease).await;
}

const PREFIX: &str = "vault/";
const CONTEXT: &[u8] = b"trunkline gateway\0vault";
/// A login that nobody used for so long has ended at any server.
const LIFE: Duration = Duration::from_secs(400 * 24 * 3600);
const PAGE: usize = 256;
/// How long a lock outlives a replica that was killed.
const LEASE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use trunkline_store::Memory;

    use super::*;

    fn vaults() -> (Arc<dyn Store>, [FleetVault; 2]) {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let vault = |keys: &[[u8; 32]]| {
            FleetVault::new(&Fleet::new(Arc::clone(&store), keys.to_vec(), "a"))
        };
        // The second replica has a newer key already.
        let vaults = [vault(&[[1; 32]]), vault(&[[2; 32], [1; 32]])];
        (store, vaults)
    }

    #[tokio::test]
    async fn a_login_is_known_at_every_replica_and_unreadable_in_the_store() {
        let (store, [a, b]) = vaults();
        a.put("account ann git token", "hunter2").await.unwrap();
        assert_eq!(b.get("account ann git token").await.unwrap().as_deref(), Some("hunter2"));
        assert_eq!(b.names().await.unwrap(), ["account ann git token"]);
        for item in store.scan("", None, 99).await.unwrap().items {
            let shown = format!("{} {}", item.key, String::from_utf8_lossy(&item.value));
            assert!(!shown.contains("hunter2") && !shown.contains("ann"), "{shown}");
        }
        b.remove("account ann git token").await.unwrap();
        assert_eq!(a.get("account ann git token").await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_is_held_by_one_replica_at_a_time() {
        let (_, [a, b]) = vaults();
        let held = a.lock("token").await.unwrap();
        let waits = tokio::time::timeout(LEASE * 2, b.lock("token")).await;
        assert!(waits.is_err(), "it is renewed for as long as it is held");
        drop(held);
        b.lock("token").await.unwrap();
    }
}
