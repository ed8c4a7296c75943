//! What an endpoint asks of those who share its sessions between replicas.
//!
//! An endpoint knows requests and sessions, and nothing of other processes. [`Replicas`] knows which process
//! owns a session, and nothing of MCP.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::Pin;

/// What a replica looks up or writes: it may need the store or a peer.
pub type Lookup<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The events of a stream that were kept.
pub type KeptEvents<'a> = Lookup<'a, Result<Vec<KeptEvent>, Unavailable>>;

/// Finds the owners of sessions, and keeps what another replica needs to go on with one.
pub trait Replicas: Send + Sync + 'static {
    /// The id of this replica. A restarted process is another replica.
    fn me(&self) -> &str;

    /// Whether this replica owns the session and may answer for it now. No IO: every request of an owned
    /// session asks this before it is served, and again before it is answered.
    fn may_answer(&self, id: &str) -> bool;

    /// Opens a session that this replica owns, and returns its id.
    fn open(&self, record: SessionRecord) -> Lookup<'_, Result<String, Unavailable>>;

    /// Where a request of the session `id` goes, whoever sent it. Takes the session over if its owner is gone.
    fn locate<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<Place, Unavailable>>;

    /// The other replica at which [`Self::locate`] has lately found the session, if it is alive as far as known. No IO:
    /// every forwarded request asks this.
    fn found_lately(&self, _id: &str) -> Option<Peer> {
        None
    }

    /// The replica that [`Self::locate`] named does not own the session or cannot be reached: the next
    /// `locate` asks the record.
    fn forget(&self, _id: &str) {}

    /// Whether a session that this replica owned is another's now, or over. What still works for it here
    /// stops. No IO.
    fn is_lost(&self, _id: &str) -> bool {
        false
    }

    /// Where a request goes that names a replica itself: it holds a parked call, a task or an instance.
    fn locate_replica<'a>(&'a self, replica: &'a str) -> Lookup<'a, Result<Place, Unavailable>>;

    /// Whether a replica left after it had answered every request that it got: what it did not answer, it did not
    /// get, and it can be sent to another. Waits for a moment if the replica is just leaving.
    fn has_answered_all<'a>(&'a self, _replica: &'a str) -> Lookup<'a, bool> {
        Box::pin(async { false })
    }

    /// Where the thing of this name is held, of which there is one over all replicas. If nobody holds it, or its
    /// holder is dead, this replica does from now on. [`Self::may_answer`] takes the name, too.
    fn claim<'a>(&'a self, _name: &'a ClaimName) -> Lookup<'a, Result<Place, Unavailable>> {
        Box::pin(async { Err(Unavailable) })
    }

    /// Lets go of what was claimed: whoever asks for it next holds it. What it names has ended before.
    fn release<'a>(&'a self, _name: &'a ClaimName) -> Lookup<'a, Result<(), Unavailable>> {
        Box::pin(async { Err(Unavailable) })
    }

    /// Replaces the record of an owned session. It is written later and in order; nobody waits for it.
    fn update(&self, id: &str, record: SessionRecord);

    /// Ends a session everywhere, if this replica owns it.
    fn close<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<(), Unavailable>>;

    /// Keeps an event of a stream that can be resumed. It is written later and in order; nobody waits for it.
    fn keep(&self, id: &str, event: KeptEvent);

    /// The kept events of a stream after `after`, in order.
    fn kept<'a>(&'a self, id: &'a str, stream: u64, after: u64) -> KeptEvents<'a>;
}

/// Where a request is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Here, from memory.
    Here,
    /// Here: this replica has just taken the session over and restores it from the record.
    TakenOver(SessionRecord),
    /// At another replica.
    At(Peer),
    /// Nowhere: the session has ended or never existed, or the replica is gone.
    Gone,
}

/// The name of something that one replica holds for all. No id of a session is such a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimName(String);

impl ClaimName {
    /// Every name of a claim, and no session id, begins with this.
    pub const PREFIX: &'static str = "claim/";

    /// The claim of this name: visible ASCII without spaces.
    pub fn new(name: &str) -> Self {
        Self(format!("{}{name}", Self::PREFIX))
    }

    /// The name as replicas and the store know it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Builds the hasher for maps whose keys are ids of sessions. Servers alone make the ids that are kept, so no peer can
/// choose them to collide.
pub type ById = BuildHasherDefault<IdHasher>;

/// Hashes ids of sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Longer ids are sealed, and the end of what is sealed depends on all of it.
        let bytes = &bytes[bytes.len().saturating_sub(64)..];
        let (words, rest) = bytes.as_chunks::<8>();
        let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        for word in words.iter().map(|it| u64::from_le_bytes(*it)).chain([rest]) {
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_u8(&mut self, _: u8) {
        // The end of a text, which tells nothing of an id.
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Another replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its id.
    pub id: String,
    /// The URL of its internal listener, without a path: `http://10.0.0.7:7474`.
    pub url: String,
}

/// What another replica needs to go on with a session. The endpoint alone reads its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRecord {
    /// The path of the endpoint, which selects servers.
    pub path: String,
    /// The principal that opened it ([`Principal::id`](trunkline_auth::Principal::id)); empty for an anonymous
    /// caller.
    pub principal: String,
    /// The parameters of `initialize`, as JSON.
    pub hello: String,
    /// The level of `logging/setLevel`, if the client chose one.
    pub level: Option<String>,
    /// The URIs that the client subscribed to.
    pub subscriptions: Vec<String>,
}

/// One event of a resumable stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEvent {
    /// The number of the stream in its session.
    pub stream: u64,
    /// Its place in the stream.
    pub place: u64,
    /// The message. The first event of a stream may have none and only say what the stream owes.
    pub text: Vec<u8>,
    /// The ids of the requests, as JSON, whose answers the stream still owes after this event. None: it is the
    /// last.
    pub owes: Vec<String>,
}

/// The owner cannot be told, or may not answer, for now: the store is away, or this replica lost its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The replicas cannot agree on the owner of this session right now; try again.")
    }
}

impl std::error::Error for Unavailable {}
