//! Several processes that serve as one: what they share, and how one of them joins and leaves.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use trunkline_auth::setters;
use trunkline_auth::tag::random_name;
use trunkline_replicas::{Replica, Settings};
#[cfg(feature = "auth")]
use trunkline_store::{Expect, Swap};
use trunkline_store::{Listener, Store};
use trunkline_transport::Limits;
use trunkline_transport::handler::Handler;
use trunkline_transport::http::forward::{AnswersForwarded, Forward, Internal};
use trunkline_transport::http::replicas::Replicas as _;
use trunkline_transport::http::{Endpoint, SharedSessions, bind, serve};

use super::Inner;

/// What the replicas of a server share; [`ServerBuilder::replicas`](super::ServerBuilder::replicas) takes it.
///
/// A load balancer may send any request to any replica. Sessions (up to 2025-11-25) have an owner, to which
/// the others forward; if it dies, the next replica that is asked takes the session over, with the log level,
/// the subscriptions and the events of its streams. A call that was in flight there is answered with
/// `outcome_unknown`, never made twice. Calls from 2026-07-28 on belong to no replica: what they leave with
/// the client is sealed with the key, and tasks are in the store.
///
/// ```no_run
/// use std::sync::{Arc, OnceLock};
/// use trunkline::server::{Replicas, bind};
/// use trunkline::{Server, store::Memory};
///
/// # async fn run(key: [u8; 32]) -> std::io::Result<()> {
/// let store = Arc::new(Memory::default()); // In production `store::Redis`, which processes share.
/// let replicas = Replicas::new(store, key, "10.0.0.7:7474");
/// let server = Server::builder("hotel", "1.0.0").replicas(replicas).build();
/// server.http().serve(bind("0.0.0.0:8000").await?, std::future::pending()).await
/// # }
/// ```
///
/// # What does not cross
///
/// - The stream of HTTP+SSE (2024-11-05) *is* its session: it ends with its owner. Until then its messages
///   may reach any replica.
/// - Of what layers in front of the server put into a request's extensions, the
///   [`Principal`](crate::Principal) alone travels to the owner.
/// - [`Server::put_tool`](super::Server::put_tool) and its kin change one process: call them in each. What
///   [`Server::changed`](super::Server::changed) says reaches the clients of all.
///
/// # The internal listener
///
/// Replicas reach each other at an address of its own, which must not be reachable for anybody else. What
/// they send is authenticated by the key, but only `https` hides it: see [`Self::reached_at`].
#[derive(Clone)]
#[must_use = "it does nothing until a server has it"]
pub struct Replicas {
    pub(super) store: Arc<dyn Store>,
    pub(super) keys: Vec<[u8; 32]>,
    listen: String,
    url: Option<String>,
    roots: Vec<Vec<u8>>,
    /// Who tells others of changes, so that it does not hear itself.
    pub(super) teller: String,
    /// The id of this replica, once it has joined the others.
    pub(super) me: OnceLock<String>,
}

impl Replicas {
    /// Replicas that share a store and a key. This one listens to the others at the address `listen`.
    ///
    /// ```
    /// # use std::sync::{Arc, OnceLock};
    /// # use trunkline::{server::Replicas, store::Memory};
    /// let replicas = Replicas::new(Arc::new(Memory::default()), [7; 32], "127.0.0.1:0");
    /// assert!(format!("{replicas:?}").contains("127.0.0.1:0"));
    /// ```
    pub fn new(store: Arc<dyn Store>, key: [u8; 32], listen: impl Into<String>) -> Self {
        let (keys, listen) = (vec![key], listen.into());
        let (url, roots, me) = Default::default();
        Self { store, keys, listen, url, roots, teller: random_name(), me }
    }

    /// The same for one server: several may be made with one of these.
    pub(super) fn of_a_server(self) -> Self {
        Self { teller: random_name(), me: OnceLock::new(), ..self }
    }

    setters! {
        /// Adds an older key, which opens what it sealed and seals nothing more. To replace a key: add the
        /// new one as an older one everywhere, then make it the first everywhere, then drop the old one.
        older_key(key: [u8; 32]) { keys.push(key) }

        /// The URL at which the others reach this replica, if it is not `http://` and the address it listens
        /// at: behind a proxy that adds TLS, or with the name of a container.
        reached_at(url: impl Into<String>) { url = Some(url.into()) }

        /// Also trusts certificates issued by these roots, one or more in PEM, for `https` between replicas.
        root_certificate(pem: impl Into<Vec<u8>>) { roots.push(pem.into()) }
    }

    /// Lets a DPoP proof be used once at all replicas together.
    #[cfg(feature = "auth")]
    pub(super) fn share_proofs(
        &self,
        protect: trunkline_auth::resource::Protect,
    ) -> trunkline_auth::resource::Protect {
        let nonces = [&self.keys[0][..], b"trunkline DPoP nonces"].concat();
        let proofs = SharedProofs(Arc::clone(&self.store));
        protect.shared(Arc::new(proofs), trunkline_auth::digest::sha256_bytes(&nonces))
    }

    /// Joins the others.
    pub(super) async fn join(&self, limits: &Limits) -> io::Result<Joined> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let internal = bind(&*self.listen).await?;
        let address = internal.local_addr()?;
        let url = match &self.url {
            Some(url) => url.clone(),
            None if address.ip().is_unspecified() => {
                let why = format!(
                    "Other replicas cannot reach `{address}`; say with `reached_at` where they can."
                );
                return Err(wrong(why));
            }
            None => format!("http://{address}"),
        };
        let mut settings = Settings::new(Arc::clone(&self.store), &self.keys, url);
        settings.session_ttl = limits.session_idle;
        settings.events = limits.replay_events;
        settings.event_bytes = limits.replay_bytes;
        settings.roots.clone_from(&self.roots);
        let replica = Replica::start(settings).map_err(wrong)?;
        // One that joined before is another replica of the same process.
        self.me.get_or_init(|| replica.me().to_owned());
        // Without the store no session begins, but what needs none is served.
        let _ = timeout(FIRST_HEARTBEAT, replica.until_ready()).await;
        let forward = Forward::new(&self.keys, &self.roots, limits).map_err(wrong)?;
        let replicas = Arc::clone(&replica) as _;
        let shared = SharedSessions::new(replicas, &self.keys, forward);
        let listener = timeout(FIRST_HEARTBEAT, self.listen()).await.ok().flatten();
        Ok(Joined { replica, shared, internal, listener })
    }
}

/// The DPoP proofs that were used at any replica.
#[cfg(feature = "auth")]
struct SharedProofs(Arc<dyn Store>);

#[cfg(feature = "auth")]
impl trunkline_auth::resource::Replays for SharedProofs {
    fn is_first<'a>(
        &'a self,
        name: &'a str,
        life: Duration,
    ) -> trunkline_auth::fetch::Pending<'a, Option<bool>> {
        Box::pin(async move {
            let key = format!("proof/{name}");
            let used = self.0.swap(&key, Expect::Absent, b"", Some(life)).await;
            used.ok().map(|it| matches!(it, Swap::Done(_)))
        })
    }
}

impl fmt::Debug for Replicas {
    /// Omits the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// A replica that others know, before it serves them.
pub(super) struct Joined {
    replica: Arc<Replica>,
    pub(super) shared: Arc<SharedSessions>,
    internal: TcpListener,
    /// Hears of changes at the others.
    listener: Option<Listener>,
}

impl Joined {
    /// Serves the other replicas from now on, and tells the clients of `server` what they tell.
    pub(super) fn serve(
        self,
        answers: Arc<impl AnswersForwarded>,
        server: &Arc<Inner>,
        limits: &Limits,
    ) -> Membership {
        let Self { replica, shared, internal, listener } = self;
        let answers = Internal::new(answers, shared, replica.ping());
        let (end, mut ended) = watch::channel(false);
        let until = async move {
            let _ = ended.wait_for(|it| *it).await;
        };
        let mut serving = JoinSet::new();
        serving.spawn(serve(internal, answers, limits.clone(), until));
        let mut hearing = JoinSet::new();
        if let Some(replicas) = server.replicas.clone() {
            let server = Arc::downgrade(server);
            hearing.spawn(async move { replicas.pass_on(listener, server).await });
        }
        let (patience, serving) = (limits.shutdown, Mutex::new(serving));
        Membership { replica, patience, end, serving, _hearing: hearing }
    }
}

/// A replica among others. Dropping it ends it like a crash: others take its sessions over.
pub(super) struct Membership {
    replica: Arc<Replica>,
    /// How long calls in flight may take once it leaves.
    patience: Duration,
    /// Ends the listener for the others.
    end: watch::Sender<bool>,
    serving: Mutex<JoinSet<io::Result<()>>>,
    /// What the others tell.
    _hearing: JoinSet<()>,
}

impl Membership {
    /// Opens and takes over no more sessions once `shutdown` has come.
    pub(super) async fn drain_at(&self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        self.replica.drain().await;
    }

    /// Gives each session to another as soon as nothing is in flight in it, whoever sent that; what takes too long
    /// is cut off.
    pub(super) async fn leave<H: Handler>(&self, endpoint: &Arc<Endpoint<H>>) {
        self.replica.drain().await;
        let handing_over = async {
            // While the store is away nothing can be handed over: others take the sessions over later.
            while !self.replica.status().is_store_away {
                // In this order: what came in before is seen.
                let is_busy = endpoint.is_busy();
                let quiet = endpoint.release_quiet_sessions(|id| self.replica.may_answer(id));
                if !is_busy && quiet.is_empty() {
                    return true;
                }
                self.give(endpoint, &quiet).await;
                sleep(PAUSE).await;
            }
            false
        };
        let is_all_answered = timeout(self.patience, handing_over).await.unwrap_or(false);
        self.replica.leave().await;
        self.end.send_replace(true);
        let mut serving = self.serving.lock().await;
        match timeout(LAST_ANSWERS, serving.join_next()).await {
            Ok(Some(Ok(Ok(())))) if is_all_answered => self.replica.say_farewell().await,
            _ => serving.abort_all(),
        }
    }

    async fn give<H: Handler>(&self, endpoint: &Arc<Endpoint<H>>, sessions: &[String]) {
        for some in sessions.chunks(AT_ONCE) {
            let mut giving = JoinSet::new();
            for id in some {
                let (replica, endpoint) = (Arc::clone(&self.replica), Arc::clone(endpoint));
                let id = id.clone();
                giving.spawn(async move {
                    if !replica.hand_over(&id).await {
                        endpoint.take_back(&id);
                    }
                });
            }
            giving.join_all().await;
        }
    }
}

/// How long the first heartbeat is waited for.
const FIRST_HEARTBEAT: Duration = Duration::from_secs(5);
/// How long the last answers to other replicas may take.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How many sessions are given away concurrently.
const AT_ONCE: usize = 64;
/// The pause between two looks for quiet sessions.
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(all(test, feature = "auth"))]
mod tests {
    use trunkline_auth::resource::Replays;
    use trunkline_store::Memory;

    use super::*;

    #[tokio::test]
    async fn a_proof_that_one_replica_saw_is_known_to_the_other() {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let [a, b] = [(); 2].map(|()| SharedProofs(Arc::clone(&store)));
        let life = Duration::from_secs(60);
        assert_eq!(a.is_first("one", life).await, Some(true));
        assert_eq!(b.is_first("one", life).await, Some(false));
        assert_eq!(b.is_first("two", life).await, Some(true));
    }
}
