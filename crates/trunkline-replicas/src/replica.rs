//! The handle of a replica.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use trunkline_auth::seal::Sealer;
use trunkline_store::Store;
use trunkline_transport::Limits;
use trunkline_transport::http::forward::{Forward, Ping};
use trunkline_transport::http::replicas::{
    ClaimName, KeptEvent, KeptEvents, Lookup, Peer, Place, Replicas, SessionRecord, Unavailable,
};

use crate::events::{self, Bounds, EventWriter};
use crate::ping::{self, Pinger};
use crate::runner::{Command, Means, Request, Runner};
use crate::shared::Shared;
use crate::state::State;
use crate::state::message::{Member, Name, Owner, Verdict};
use crate::timing::Timing;
use crate::{codec, ids};

/// What a replica needs to start.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// What all replicas share.
    pub store: Arc<dyn Store>,
    /// The keys that all replicas share: the first seals, all open.
    pub keys: Vec<[u8; 32]>,
    /// The URL at which the others reach this replica's internal listener, without a path.
    pub url: String,
    /// How long a session lasts that nobody uses.
    pub session_ttl: Duration,
    /// How long an event of a resumable stream is kept.
    pub event_ttl: Duration,
    /// How many events are kept of a session.
    pub events: usize,
    /// How many bytes of events are kept of a session.
    pub event_bytes: usize,
    /// Root certificates for `https` between replicas, each one or more in PEM.
    pub roots: Vec<Vec<u8>>,
    /// Carries questions to other replicas; none: over HTTP.
    pub pinger: Option<Arc<dyn Pinger>>,
    /// How long everything lasts. The defaults keep the promises; see [`Timing`] before changing one.
    pub timing: Timing,
}

impl Settings {
    /// A replica that others reach at `url`, and what it shares with them.
    pub fn new(store: Arc<dyn Store>, keys: &[[u8; 32]], url: impl Into<String>) -> Self {
        Self {
            store,
            keys: keys.to_vec(),
            url: url.into(),
            session_ttl: Duration::from_secs(30 * 60),
            event_ttl: Duration::from_secs(5 * 60),
            events: 256,
            event_bytes: 1 << 20,
            roots: Vec::new(),
            pinger: None,
            timing: Timing::default(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys are secrets.
        f.debug_struct("Settings").field("url", &self.url).finish_non_exhaustive()
    }
}

/// One replica among those that share a store. Dropping it ends it like a crash: its sessions are taken over when
/// its heartbeat is gone. [`Self::leave`] hands them over.
pub struct Replica {
    id: Name,
    url: Name,
    shared: Arc<Shared>,
    means: Arc<Means>,
    events: Arc<EventWriter>,
    commands: mpsc::Sender<Command>,
    task: AbortHandle,
}

/// A replica as its heartbeat describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// Its id.
    pub id: String,
    /// The URL of its internal listener.
    pub url: String,
    /// The protocol it speaks with other replicas.
    pub protocol: u32,
    /// How many sessions it owns.
    pub sessions: u64,
    /// How long it has been running.
    pub running: Duration,
}

/// How a replica is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// This replica.
    pub me: PeerStatus,
    /// Whether it may answer for its sessions.
    pub is_leased: bool,
    /// Whether the store did not answer the last time.
    pub is_store_away: bool,
    /// The others that were alive when the store last said so.
    pub peers: Vec<PeerStatus>,
}

impl Replica {
    /// Starts a replica on the current runtime. It can open sessions after its first heartbeat, a fraction of a
    /// second later.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no key or a root certificate is none.
    pub fn start(settings: Settings) -> Result<Arc<Self>, String> {
        if settings.keys.is_empty() {
            return Err("Replicas need a key that all of them have.".to_owned());
        }
        let Settings { store, keys, url, session_ttl, roots, pinger, timing, .. } = settings;
        let pinger = match pinger {
            Some(pinger) => pinger,
            None => Arc::new(Forward::new(&keys, &roots, &Limits::default())?),
        };
        let sealer = Arc::new(Sealer::new(&keys));
        let (id, url) = (Name::from(sealer.random_name()), Name::from(url));
        let owner = Owner { id: id.clone(), url: url.clone() };
        let shared = Arc::new(Shared::new(State::new(owner, PROTOCOL, timing)));
        let ttl = settings.event_ttl;
        let bounds = Bounds { ttl, events: settings.events, bytes: settings.event_bytes };
        let events = Arc::new(EventWriter::start(&store, bounds));
        let means = Arc::new(Means { me: id.clone(), store, sealer, pinger, timing, session_ttl });
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let (ours, needs, writer) = (Arc::clone(&shared), Arc::clone(&means), Arc::clone(&events));
        let runner = Runner::new(ours, needs, writer, receiver);
        let task = tokio::spawn(runner.run()).abort_handle();
        Ok(Arc::new(Self { id, url, shared, means, events, commands, task }))
    }

    /// Waits until this replica may open sessions: until its first heartbeat is in the store.
    pub async fn until_ready(&self) {
        while !self.shared.is_leased() {
            self.shared.leased.notified().await;
        }
    }

    /// The URL at which others reach this replica.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers the question of another replica; none if it is not from one. For the internal listener.
    pub fn answer_ping(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (question, nonce) = ping::open_question(&self.means.sealer, sealed)?;
        let reply = self.shared.state().asked(&question, self.shared.clock.now());
        Some(ping::seal_reply(&self.means.sealer, &reply, nonce))
    }

    /// [`Self::answer_ping`], as the internal listener takes it.
    pub fn ping(self: &Arc<Self>) -> Ping {
        let replica = Arc::downgrade(self);
        Arc::new(move |sealed| replica.upgrade()?.answer_ping(sealed))
    }

    /// From now on no session begins here and none is taken over. Those that are owned are served.
    pub async fn drain(&self) {
        // The runner is there as long as the handle.
        drop(self.commands.send(Command::Drain).await);
    }

    /// Gives one owned session to another replica. From now on it is not answered for here. Returns whether the
    /// store has confirmed it.
    pub async fn hand_over(&self, id: &str) -> bool {
        matches!(self.ask(Request::HandOver { id: id.into() }).await, Ok(Verdict::Done))
    }

    /// Gives all sessions to other replicas and says goodbye. Nothing is answered for here afterwards, so calls in
    /// flight should be finished first. Ends at once if the store is away: the sessions are taken over later.
    pub async fn leave(&self) {
        drop(self.ask(Request::Leave).await);
    }

    /// Tells the others that every request which arrived here was answered, so that they can send elsewhere what was
    /// not. The last word of a replica that has [left](Self::leave), after its listener has ended.
    pub async fn say_farewell(&self) {
        // Without it, the others cannot tell what was done, and say so.
        drop(timeout(self.means.timing.patience, self.means.say_farewell()).await);
    }

    /// The other replicas that were alive when the store last said so.
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.shared.state().members().map(PeerStatus::of).collect()
    }

    /// How this replica is.
    pub fn status(&self) -> Status {
        let state = self.shared.state();
        let mut me = PeerStatus::of(&state.describe());
        me.running = self.shared.clock.now();
        me.sessions = self.shared.sessions() as u64;
        let peers = state.members().map(PeerStatus::of).collect();
        let is_store_away = state.is_store_away();
        Status { me, is_leased: self.shared.is_leased(), is_store_away, peers }
    }

    async fn ask(&self, request: Request) -> Result<Verdict, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Ask { request, reply }).await;
        sent.map_err(|_| Unavailable)?;
        answer.await.map_err(|_| Unavailable)
    }

    async fn place(&self, request: Request) -> Result<Place, Unavailable> {
        let is_claim = matches!(request, Request::Claim { .. });
        Ok(match self.ask(request).await? {
            Verdict::Here | Verdict::Done => Place::Here,
            Verdict::At(owner) => Place::At(peer(&owner)),
            // There is nothing to restore.
            Verdict::TakenOver(_) if is_claim => Place::Here,
            Verdict::TakenOver(body) => Place::TakenOver(codec::session(&body).ok_or(Unavailable)?),
            Verdict::Gone => Place::Gone,
            Verdict::Unavailable => return Err(Unavailable),
        })
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica")
            .field("id", &self.id)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl PeerStatus {
    fn of(member: &Member) -> Self {
        let Member { owner, protocol, sessions, age } = member;
        Self {
            id: owner.id.to_string(),
            url: owner.url.to_string(),
            protocol: *protocol,
            sessions: *sessions,
            running: Duration::from_secs(*age),
        }
    }
}

impl Replicas for Replica {
    fn me(&self) -> &str {
        &self.id
    }

    fn may_answer(&self, id: &str) -> bool {
        self.shared.may_answer(id)
    }

    fn open(&self, record: SessionRecord) -> Lookup<'_, Result<String, Unavailable>> {
        Box::pin(async move {
            let id = ids::issue(&self.means.sealer, &self.id);
            let body = codec::session_body(record);
            match self.ask(Request::Open { id: Name::from(&*id), body }).await? {
                Verdict::Done => Ok(id),
                _ => Err(Unavailable),
            }
        })
    }

    fn locate<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        Box::pin(async move {
            let Some(opened) = ids::open(&self.means.sealer, id) else { return Ok(Place::Gone) };
            let opened_by = Name::from(opened.opened_by);
            self.place(Request::Locate { id: Name::from(id), opened_by }).await
        })
    }

    fn found_lately(&self, id: &str) -> Option<Peer> {
        self.shared.state().found_lately(id).map(peer)
    }

    fn forget(&self, id: &str) {
        let opened_by = match ids::open(&self.means.sealer, id) {
            Some(opened) => Name::from(opened.opened_by),
            None if id.starts_with(ClaimName::PREFIX) => Name::from(""),
            None => return,
        };
        // At once: whoever asks next must not be sent there again.
        self.shared.state().moved(Name::from(id), opened_by);
    }

    fn is_lost(&self, id: &str) -> bool {
        self.shared.is_lost(id)
    }

    fn locate_replica<'a>(&'a self, replica: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        Box::pin(self.place(Request::LocateReplica { replica: Name::from(replica) }))
    }

    fn has_answered_all<'a>(&'a self, replica: &'a str) -> Lookup<'a, bool> {
        Box::pin(self.means.has_said_farewell(replica))
    }

    fn claim<'a>(&'a self, name: &'a ClaimName) -> Lookup<'a, Result<Place, Unavailable>> {
        Box::pin(self.place(Request::Claim { name: Name::from(name.as_str()) }))
    }

    fn release<'a>(&'a self, name: &'a ClaimName) -> Lookup<'a, Result<(), Unavailable>> {
        Box::pin(async move {
            match self.ask(Request::Release { name: Name::from(name.as_str()) }).await? {
                Verdict::Done => Ok(()),
                _ => Err(Unavailable),
            }
        })
    }

    fn update(&self, id: &str, record: SessionRecord) {
        self.shared.update(id, codec::session_body(record));
    }

    fn close<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<(), Unavailable>> {
        Box::pin(async move {
            match self.ask(Request::Close { id: Name::from(id) }).await? {
                Verdict::Done => Ok(()),
                _ => Err(Unavailable),
            }
        })
    }

    fn keep(&self, id: &str, event: KeptEvent) {
        if let Some(opened) = ids::open(&self.means.sealer, id) {
            self.events.keep(opened.nonce, event);
        }
    }

    fn kept<'a>(&'a self, id: &'a str, stream: u64, after: u64) -> KeptEvents<'a> {
        Box::pin(async move {
            let opened = ids::open(&self.means.sealer, id).ok_or(Unavailable)?;
            let events = events::read(&*self.means.store, &opened.nonce, stream, after);
            events.await.map_err(|_| Unavailable)
        })
    }
}

fn peer(owner: &Owner) -> Peer {
    Peer { id: owner.id.to_string(), url: owner.url.to_string() }
}

/// What this version speaks with other replicas and writes into records.
const PROTOCOL: u32 = 1;
/// How many requests may wait for the runner's attention. More wait for room.
const COMMANDS: usize = 1_024;
