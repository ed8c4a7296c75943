//! This gateway as one of several: the store they share, the listener for the others, joining and leaving.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use trunkline_gateway::catalog::plan::{GatewayPlan, WhenAway};
use trunkline_gateway::{Fleet, Front, LocalSessions, ReplicaView, Settings};
use trunkline_replicas::{PeerStatus, Replica};
use trunkline_store::{Redis, RedisAddress, RedisSettings, Store};
use trunkline_transport::Limits;
use trunkline_transport::http::forward::{Forward, Internal};
use trunkline_transport::http::replicas::Replicas;
use trunkline_transport::http::{Answers, SharedSessions};

use super::entrance::Door;
use crate::failure::Failure;

/// A gateway that has joined the others.
pub(super) struct Joined {
    store: Arc<dyn Store>,
    keys: Vec<[u8; 32]>,
    replica: Arc<Replica>,
    sessions: Arc<SharedSessions>,
    door: Door,
    /// How long calls in flight may take once it leaves.
    patience: Duration,
}

impl Joined {
    /// Joins the replicas of the plan, if it has any.
    pub(super) async fn open(plan: &GatewayPlan, limits: &Limits) -> Result<Option<Self>> {
        let (Some(address), Some(replicas)) = (&plan.store, &plan.replicas) else {
            return Ok(None);
        };
        let store = open_store(address, &plan.store_roots).await?;
        let store: Arc<dyn Store> = Arc::new(store);
        let door = Door::open(&replicas.listen, plan.tls.clone()).await?;
        let url = replicas.advertise.clone().unwrap_or_else(|| door.url(&[]));
        let roots = read_all(&replicas.roots)?;
        let mut settings =
            trunkline_replicas::Settings::new(Arc::clone(&store), &replicas.keys, url);
        settings.session_ttl = limits.session_idle;
        settings.roots.clone_from(&roots);
        let replica = Replica::start(settings).map_err(Failure::usage)?;
        let ready = tokio::time::timeout(PATIENCE, replica.until_ready()).await;
        ready.map_err(|_| {
            let why = format!("The store at `{address}` did not take this replica's heartbeat.");
            Failure::store(why).advice("See that it is not full and may be written.")
        })?;
        let forward = Forward::new(&replicas.keys, &roots, limits).map_err(Failure::usage)?;
        let owners: Arc<dyn Replicas> = match replicas.when_away {
            WhenAway::Refuse => Arc::clone(&replica) as Arc<dyn Replicas>,
            WhenAway::Local => Arc::new(LocalSessions::new(
                Arc::clone(&replica) as Arc<dyn Replicas>,
                &replicas.keys,
            )),
        };
        let sessions = SharedSessions::new(owners, &replicas.keys, forward);
        if replicas.insecure && plan.tls.is_none() {
            let _ = writeln!(
                std::io::stderr(),
                "Replicas talk to each other at {} without TLS, because the catalog says `insecure`.",
                replica.url()
            );
        }
        let (keys, patience) = (replicas.keys.clone(), limits.shutdown);
        Ok(Some(Self { store, keys, replica, sessions, door, patience }))
    }

    /// The settings of a gateway that shares what can be shared.
    pub(super) fn shared(&self, settings: Settings) -> Settings {
        let me = self.replica.me();
        let replica = Arc::clone(&self.replica);
        Settings {
            store: Arc::clone(&self.store),
            fleet: Some(
                Fleet::new(Arc::clone(&self.store), self.keys.clone(), me)
                    .seen_by(move || view(&replica)),
            ),
            sessions: Some(Arc::clone(&self.sessions)),
            lasting: None,
            ..settings
        }
    }

    /// Serves the other replicas until [`Served::leave`].
    pub(super) fn serve(self, front: &Arc<Front>) -> Served {
        let (end, mut ended) = watch::channel(false);
        let internal =
            Internal::new(Arc::clone(front), Arc::clone(&self.sessions), self.replica.ping());
        let until = async move {
            let _ = ended.wait_for(|it| *it).await;
        };
        let serving = tokio::spawn(self.door.serve(internal, until));
        let (replica, patience) = (self.replica, self.patience);
        Served { replica, front: Arc::clone(front), serving, end, patience }
    }
}

/// The listener for other replicas.
pub(super) struct Served {
    replica: Arc<Replica>,
    front: Arc<Front>,
    serving: JoinHandle<Result<()>>,
    end: watch::Sender<bool>,
    patience: Duration,
}

impl Served {
    /// It is time to stop: says so at `/readyz`, and serves on until balancers have noticed.
    pub(super) async fn linger(&self) {
        self.front.leaves();
        tokio::time::sleep(LINGER).await;
    }

    /// Gives each session away as soon as nothing is in flight in it. Ends once nothing is in flight at all and
    /// clients are gone, or when what is left has taken too long. Returns whether everything was answered.
    pub(super) async fn hand_over(&self, clients_are_gone: impl Fn() -> bool) -> bool {
        self.replica.drain().await;
        let handing_over = async {
            loop {
                // In this order: what came in before the last client was gone is seen.
                let is_over = clients_are_gone() && !self.front.is_busy();
                let has_let_go = self.front.let_go_of_instances(false).await;
                let quiet = self.front.release_quiet_sessions(|id| self.replica.may_answer(id));
                if is_over && has_let_go && quiet.is_empty() {
                    return;
                }
                self.give(&quiet).await;
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(self.patience, handing_over).await.is_ok()
    }

    async fn give(&self, sessions: &[String]) {
        for some in sessions.chunks(AT_ONCE) {
            let mut giving = JoinSet::new();
            for id in some {
                let (replica, front) = (Arc::clone(&self.replica), Arc::clone(&self.front));
                let id = id.clone();
                giving.spawn(async move {
                    if !replica.hand_over(&id).await {
                        front.take_back(&id);
                    }
                });
            }
            giving.join_all().await;
        }
    }

    /// Gives all other sessions away, and ends; with a farewell if everything was answered.
    pub(super) async fn leave(self, is_all_answered: bool) {
        let stopping = async {
            while !self.front.let_go_of_instances(true).await {
                tokio::time::sleep(PAUSE).await;
            }
        };
        // An instance of which there is one ends before another replica may start it.
        let _ = tokio::time::timeout(STOPPED_WITHIN, stopping).await;
        self.replica.leave().await;
        // Stops what took too long, and the streams that others read.
        self.front.end();
        self.end.send_replace(true);
        // Answers that are on their way arrive; calls that took too long are cut off.
        let abort = self.serving.abort_handle();
        match tokio::time::timeout(LAST_ANSWERS, self.serving).await {
            Ok(Ok(Ok(()))) if is_all_answered => self.replica.say_farewell().await,
            _ => abort.abort(),
        }
    }
}

/// A store that answers.
async fn open_store(address: &RedisAddress, roots: &[PathBuf]) -> Result<Redis> {
    let store = Redis::open(store_settings(address, roots)?);
    let cannot = |why: &dyn std::fmt::Display| {
        let why = format!("The store of the catalog, `{address}`, cannot be used. {why}");
        Failure::store(why).advice("Start it, or correct `gateway.store`.")
    };
    let store = store.map_err(|error| cannot(&error))?;
    store.ping().await.map_err(|error| cannot(&error))?;
    Ok(store)
}

/// How the store of the catalog is reached.
pub(crate) fn store_settings(address: &RedisAddress, roots: &[PathBuf]) -> Result<RedisSettings> {
    let settings = RedisSettings::new(address.clone());
    Ok(match roots {
        [] => settings,
        roots => settings.ca(read_all(roots)?.join(&b'\n')),
    })
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    let read = |path: &PathBuf| {
        std::fs::read(path).with_context(|| format!("`{}` cannot be read", path.display()))
    };
    files.iter().map(read).collect()
}

/// What the admin API says of the replicas.
fn view(replica: &Replica) -> ReplicaView {
    let status = replica.status();
    let one = |it: &PeerStatus| trunkline_gateway::ReplicaInfo {
        id: it.id.clone(),
        url: it.url.clone(),
        sessions: it.sessions,
        running: it.running,
    };
    ReplicaView {
        me: one(&status.me),
        others: status.peers.iter().map(one).collect(),
        is_leased: status.is_leased,
        is_store_away: status.is_store_away,
    }
}

/// How long the first heartbeat may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it serves on after it has said that it leaves: balancers ask every second or two.
const LINGER: Duration = Duration::from_secs(5);
/// How long the last answers to other replicas may take.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How long instances may take to end whose calls took too long.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);
/// How many sessions are given away concurrently.
const AT_ONCE: usize = 64;
/// The pause between two looks for quiet sessions.
const PAUSE: Duration = Duration::from_millis(50);
