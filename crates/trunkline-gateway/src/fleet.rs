//! What the replicas of a gateway share to be as one: rates, single use, pins, and news of changes. A gateway
//! that is alone has none of it.
//!
//! Nothing is decided by guessing: while the store is away, what needs it is refused and may be tried again.

mod local_sessions;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trunkline_auth::digest::sha256;
use trunkline_auth::seal::Sealer;
use trunkline_store::{Bucket, Expect, Heard, Listener, Store, StoreError, Swap};
use trunkline_transport::http::replicas::Peer;

use crate::failure::{Failure, Reason, Stage};

pub use local_sessions::LocalSessions;

/// One replica's access to what all share. Cheap to clone.
#[derive(Clone)]
pub struct Fleet(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    keys: Vec<[u8; 32]>,
    me: String,
    view: Option<Box<dyn Fn() -> ReplicaView + Send + Sync>>,
    /// Whether the store did not answer the last time, so that the log says it once.
    is_away: AtomicBool,
}

/// The replicas, as one of them sees them.
#[derive(Clone, Debug)]
pub struct ReplicaView {
    /// This replica.
    pub me: ReplicaInfo,
    /// The others that are alive.
    pub others: Vec<ReplicaInfo>,
    /// Whether this replica may answer for its sessions now.
    pub is_leased: bool,
    /// Whether the store did not answer the last time.
    pub is_store_away: bool,
}

/// A replica.
#[derive(Clone, Debug, Serialize)]
pub struct ReplicaInfo {
    /// Its id.
    pub id: String,
    /// The URL of its internal listener.
    pub url: String,
    /// How many sessions it owns.
    pub sessions: u64,
    /// How long it has been running.
    #[serde(rename = "runningMs", serialize_with = "millis")]
    pub running: Duration,
}

/// What one replica tells the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    /// A definition was pinned or approved.
    #[serde(rename = "pins")]
    Pins,
    /// The lists of the servers with this fingerprint were stored anew.
    #[serde(rename = "lists")]
    Lists(String),
    /// A principal logged in or out.
    #[serde(rename = "account")]
    Account {
        /// The principal's id.
        id: String,
        server: String,
        is_logged_in: bool,
    },
    /// Anything may have changed: messages were lost.
    #[serde(skip)]
    Everything,
}

#[derive(Serialize, Deserialize)]
struct Told {
    from: String,
    news: News,
}

/// Hears the news of other replicas.
pub(crate) struct Hearing {
    me: String,
    listener: Listener,
}

impl Fleet {
    /// The replica `me` of a gateway. All its replicas share `store` and `keys`, of which the first seals and
    /// all open; there is at least one.
    pub fn new(store: Arc<dyn Store>, keys: Vec<[u8; 32]>, me: impl Into<String>) -> Self {
        let is_away = AtomicBool::new(false);
        Self(Arc::new(Shared { store, keys, me: me.into(), view: None, is_away }))
    }

    /// The same, with a way to see all replicas. For a new fleet: clones are not changed.
    #[must_use]
    pub fn seen_by(self, view: impl Fn() -> ReplicaView + Send + Sync + 'static) -> Self {
        let Shared { store, keys, me, .. } = &*self.0;
        let (store, keys, me) = (Arc::clone(store), keys.clone(), me.clone());
        let is_away = AtomicBool::new(false);
        Self(Arc::new(Shared { store, keys, me, view: Some(Box::new(view)), is_away }))
    }

    /// The replicas for operators, as JSON.
    pub(crate) fn status(&self) -> serde_json::Value {
        let Some(view) = self.0.view.as_ref().map(|it| it()) else {
            return serde_json::json!({ "me": self.0.me });
        };
        let mut all = vec![&view.me];
        all.extend(&view.others);
        all.sort_by(|a, b| a.id.cmp(&b.id));
        serde_json::json!({
            "me": self.0.me,
            "leased": view.is_leased,
            "storeAway": view.is_store_away,
            "all": all,
        })
    }

    /// The ids of all replicas that are alive, this one included, in an order that all agree on.
    pub(crate) fn all(&self) -> Vec<String> {
        let others = self.0.view.as_ref().map(|it| it().others).unwrap_or_default();
        let mut all: Vec<_> = others.into_iter().map(|it| it.id).collect();
        all.push(self.0.me.clone());
        all.sort_unstable();
        all
    }

    /// Another replica that is alive, if there is one.
    pub(crate) fn another(&self) -> Option<Peer> {
        let other = self.0.view.as_ref()?().others.into_iter().next()?;
        Some(Peer { id: other.id, url: other.url })
    }

    /// The id of this replica.
    pub fn me(&self) -> &str {
        &self.0.me
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub(crate) fn keys(&self) -> &[[u8; 32]] {
        &self.0.keys
    }

    /// Seals what every replica can open.
    pub(crate) fn sealer(&self) -> Sealer {
        Sealer::new(&self.0.keys)
    }

    /// Takes a token of each bucket of a principal, or says how long to wait.
    pub(crate) async fn take(
        &self,
        who: &str,
        buckets: &[Bucket],
    ) -> Result<Result<(), Duration>, Failure> {
        self.noted(self.0.store.take(&key("rate", who), buckets).await)
    }

    /// Whether a name of some kind is used for the first time, anywhere. It is remembered for `life`.
    pub(crate) async fn first_use(
        &self,
        kind: &str,
        name: &str,
        life: Duration,
    ) -> Result<bool, Failure> {
        let used = self.0.store.swap(&key(kind, name), Expect::Absent, b"", Some(life)).await;
        self.noted(used).map(|it| matches!(it, Swap::Done(_)))
    }

    /// Logs when the store goes away and when it is back. While it is away, nothing is done that counts.
    fn noted<T>(&self, answer: Result<T, StoreError>) -> Result<T, Failure> {
        let was_away = self.0.is_away.swap(answer.is_err(), Ordering::Relaxed);
        match &answer {
            Err(error) if !was_away => tracing::warn!(%error, "the shared store is away"),
            Ok(_) if was_away => tracing::info!("the shared store answers again"),
            _ => {}
        }
        answer.map_err(|_| unavailable())
    }

    /// Tells the other replicas. Nobody waits for it: who misses it learns that it missed something.
    pub(crate) fn tell(&self, news: News) {
        let told = Told { from: self.0.me.clone(), news };
        let told = serde_json::to_vec(&told).expect("our own types can be written");
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            if let Err(error) = shared.store.publish(CHANNEL, &told).await {
                tracing::debug!(%error, "news could not be told");
            }
        });
    }

    pub(crate) async fn listen(&self) -> Result<Hearing, StoreError> {
        Ok(Hearing { me: self.0.me.clone(), listener: self.0.store.listen(CHANNEL).await? })
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("me", &self.0.me).finish_non_exhaustive()
    }
}

impl Hearing {
    /// The next news of another replica; `None` once the store is gone. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<News> {
        loop {
            match self.listener.next().await? {
                Heard::Lost(_) => return Some(News::Everything),
                Heard::Message(message) => match serde_json::from_slice::<Told>(&message) {
                    Ok(told) if told.from == self.me => {}
                    Ok(told) => return Some(told.news),
                    // A newer version tells what this one does not know.
                    Err(_) => return Some(News::Everything),
                },
            }
        }
    }
}

fn unavailable() -> Failure {
    let message = "The store that the replicas of this gateway share does not answer.";
    let mut failure = Failure::new(Reason::StoreUnavailable, Stage::Policy, message);
    failure.retry_after = Some(SOON);
    failure.advice("Try again in a moment.")
}

fn millis<S: serde::Serializer>(it: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(it.as_millis()).unwrap_or(u64::MAX))
}

/// Hashed: a name has any length, and may tell who somebody is.
fn key(kind: &str, name: &str) -> String {
    format!("{kind}/{}", &sha256(name.as_bytes())["sha256:".len()..])
}

const CHANNEL: &str = "gateway";
const SOON: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use trunkline_store::Memory;

    use super::*;

    #[tokio::test]
    async fn what_is_used_at_one_replica_is_used_at_all() {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let [a, b] = ["a", "b"].map(|me| Fleet::new(Arc::clone(&store), vec![[7; 32]], me));
        let minute = Duration::from_secs(60);
        assert_eq!(a.first_use("ticket", "one", minute).await, Ok(true));
        assert_eq!(b.first_use("ticket", "one", minute).await, Ok(false));
        assert_eq!(b.first_use("proof", "one", minute).await, Ok(true), "of another kind");
        let sealed = a.sealer().seal(b"x", b"", std::time::SystemTime::now() + minute);
        assert!(b.sealer().open(&sealed, b"", std::time::SystemTime::now()).is_ok());
    }

    #[tokio::test]
    async fn a_replica_hears_the_others_and_not_itself() {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let [a, b] = ["a", "b"].map(|me| Fleet::new(Arc::clone(&store), vec![[7; 32]], me));
        let mut heard = a.listen().await.unwrap();
        a.tell(News::Pins);
        b.tell(News::Lists("f".to_owned()));
        assert_eq!(heard.next().await, Some(News::Lists("f".to_owned())));
        store.publish(CHANNEL, b"{\"from\":\"c\",\"news\":\"other\"}").await.unwrap();
        assert_eq!(heard.next().await, Some(News::Everything), "what is not understood");
    }
}
