//! What the state machine wants done → operations of the store and pings, and back. One task.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use trunkline_auth::seal::Sealer;
use trunkline_store::{Entry, Store, StoreError, Swap, Version};
use trunkline_transport::http::replicas::{ClaimName, Peer};

use crate::events::EventWriter;
use crate::ping::{self, Pinger};
use crate::shared::Shared;
use crate::state::message::{
    Answer, Input, Member, Name, Output, Owner, Ownership, Question, Record, Roster, Verdict,
};
use crate::timing::Timing;
use crate::{codec, ids};

/// What the runner is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// Somebody wants to know, and waits.
    Ask { request: Request, reply: oneshot::Sender<Verdict> },
    /// No session may begin here any more.
    Drain,
}

#[derive(Debug)]
pub(crate) enum Request {
    Open { id: Name, body: Name },
    Locate { id: Name, opened_by: Name },
    Claim { name: Name },
    Release { name: Name },
    LocateReplica { replica: Name },
    Close { id: Name },
    HandOver { id: Name },
    Leave,
}

/// What the operations need.
pub(crate) struct Means {
    pub(crate) me: Name,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) pinger: Arc<dyn Pinger>,
    pub(crate) timing: Timing,
    pub(crate) session_ttl: Duration,
}

pub(crate) struct Runner {
    shared: Arc<Shared>,
    means: Arc<Means>,
    events: Arc<EventWriter>,
    commands: mpsc::Receiver<Command>,
    waiting: HashMap<u64, oneshot::Sender<Verdict>>,
    last_request: u64,
    operations: JoinSet<(u64, Answer)>,
}

impl Runner {
    pub(crate) fn new(
        shared: Arc<Shared>,
        means: Arc<Means>,
        events: Arc<EventWriter>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let (waiting, operations) = (HashMap::new(), JoinSet::new());
        Self { shared, means, events, commands, waiting, last_request: 0, operations }
    }

    /// Runs until nobody can ask any more.
    pub(crate) async fn run(mut self) {
        self.handle(Input::Tick);
        let shared = Arc::clone(&self.shared);
        let mut sweep = shared.clock.now() + SWEEP;
        loop {
            let deadline = shared.state().deadline().unwrap_or(sweep).min(sweep);
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => return,
                },
                Some(done) = self.operations.join_next() => {
                    // An operation neither panics nor is aborted.
                    if let Ok((op, answer)) = done {
                        self.handle(Input::Done { op, answer });
                    }
                }
                () = shared.updated.notified() => {
                    for (session, body) in shared.take_updates() {
                        self.handle(Input::Update { session, body });
                    }
                }
                () = sleep_until(shared.clock.at(deadline)) => self.handle(Input::Tick),
            }
            if shared.clock.now() >= sweep {
                sweep = shared.clock.now() + SWEEP;
                for session in shared.take_used() {
                    self.handle(Input::Used { session });
                }
            }
        }
    }

    fn command(&mut self, command: Command) {
        let (request, reply) = match command {
            Command::Ask { request, reply } => (request, reply),
            Command::Drain => return self.handle(Input::Drain),
        };
        self.last_request += 1;
        let number = self.last_request;
        self.waiting.insert(number, reply);
        self.handle(match request {
            Request::Open { id, body } => Input::Open { request: number, session: id, body },
            Request::Locate { id, opened_by } => {
                Input::Locate { request: number, session: id, hint: opened_by }
            }
            Request::Claim { name } => Input::Claim { request: number, name },
            Request::Release { name } => Input::Release { request: number, name },
            Request::LocateReplica { replica } => Input::LocateReplica { request: number, replica },
            Request::Close { id } => Input::Close { request: number, session: id },
            Request::HandOver { id } => Input::HandOver { request: number, session: id },
            Request::Leave => Input::Leave { request: number },
        });
    }

    fn handle(&mut self, input: Input) {
        let outputs: Vec<_> = {
            let mut state = self.shared.state();
            state.handle(input, self.shared.clock.now());
            std::iter::from_fn(|| state.poll()).collect()
        };
        for output in outputs {
            self.act(output);
        }
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Lease { until, generation } => self.shared.set_lease(until, generation),
            Output::Own { session, generation, .. } => self.shared.own(session, generation),
            Output::Disown { session } => {
                self.shared.disown(&session);
                if let Some(id) = ids::open(&self.means.sealer, &session) {
                    self.events.forget(id.nonce);
                }
            }
            Output::Tell { request, verdict } => {
                if let Some(reply) = self.waiting.remove(&request) {
                    // Whoever asked may have given up.
                    drop(reply.send(verdict));
                }
            }
            Output::Ping { op, to, question } => {
                let means = Arc::clone(&self.means);
                self.operations.spawn(async move { (op, means.ping(&to, &question).await) });
            }
            stored => {
                let means = Arc::clone(&self.means);
                self.operations.spawn(async move {
                    let op = stored.op().unwrap_or(0);
                    let answer = timeout(means.timing.patience, means.store(stored)).await;
                    (op, answer.ok().and_then(Result::ok).unwrap_or(Answer::Away))
                });
            }
        }
    }
}

impl Means {
    async fn ping(&self, to: &Owner, question: &Question) -> Answer {
        let (sealed, nonce) = ping::seal_question(&self.sealer, question);
        let peer = Peer { id: to.id.to_string(), url: to.url.to_string() };
        let patience = self.timing.patience;
        let pinging = timeout(patience, self.pinger.ping(&peer, sealed, patience));
        let answer = pinging.await.ok().flatten();
        let reply = answer.and_then(|sealed| ping::open_reply(&self.sealer, &sealed, &nonce));
        reply.map_or(Answer::Away, Answer::Reply)
    }

    async fn store(&self, wanted: Output) -> Result<Answer, StoreError> {
        let store = &*self.store;
        Ok(match wanted {
            Output::WriteHeartbeat { member, .. } => {
                let ttl = Some(self.timing.heartbeat_ttl);
                let key = heartbeat_key(&self.me);
                Answer::Written(store.put(&key, &codec::member_bytes(&member), ttl).await?)
            }
            Output::ReadMembers { .. } => Answer::Members(self.members().await?),
            Output::ReadHeartbeat { replica, .. } => {
                let entry = store.get(&heartbeat_key(&replica)).await?;
                // One that is not understood is still a heartbeat.
                Answer::Heartbeat(entry.map(|it| self.member(&replica, &it)))
            }
            Output::SwapRoster { expect, roster, .. } => {
                let (key, bytes) = (roster_key(&self.me), codec::roster_bytes(&roster));
                let ttl = Some(self.timing.roster_ttl);
                match store.swap(&key, expect, &bytes, ttl).await? {
                    Swap::Done(version) => Answer::Swapped(version),
                    Swap::Conflict(entry) => Answer::Roster(entry.map(roster_found)),
                }
            }
            Output::ReadRoster { replica, .. } => {
                let entry = store.get(&roster_key(&replica)).await?;
                Answer::Roster(entry.map(roster_found))
            }
            Output::Read { session, .. } => match self.session_key(&session) {
                Some(key) => Answer::Record(store.get(&key).await?.map(found)),
                None => Answer::Record(None),
            },
            Output::Swap { session, expect, record, .. } => match self.session_key(&session) {
                Some(key) => {
                    let bytes = codec::record_bytes(&record);
                    let ttl = Some(self.ttl(&record));
                    match store.swap(&key, expect, &bytes, ttl).await? {
                        Swap::Done(version) => Answer::Swapped(version),
                        Swap::Conflict(entry) => Answer::Conflict(entry.map(found)),
                    }
                }
                None => Answer::Away,
            },
            Output::Withdraw { .. } => {
                store.delete(&roster_key(&self.me)).await?;
                store.delete(&heartbeat_key(&self.me)).await?;
                Answer::Away
            }
            _ => Answer::Away,
        })
    }

    async fn members(&self) -> Result<Vec<(Member, Version)>, StoreError> {
        let (mut members, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = self.store.scan(HEARTBEATS, cursor.as_deref(), PAGE).await?;
            for item in page.items {
                let Some(id) = item.key.strip_prefix(HEARTBEATS) else { continue };
                let entry = Entry { value: item.value, version: item.version };
                members.push((self.member(id, &entry), entry.version));
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(members);
            }
        }
    }

    fn member(&self, id: &str, entry: &Entry) -> Member {
        codec::member(id, &entry.value).unwrap_or_else(|| Member {
            owner: Owner { id: id.into(), url: Name::from("") },
            protocol: u32::MAX,
            sessions: 0,
            age: 0,
        })
    }

    fn session_key(&self, id: &str) -> Option<String> {
        if id.starts_with(ClaimName::PREFIX) {
            return Some(id.to_owned());
        }
        ids::open(&self.sealer, id).map(|id| format!("session/{}", id.nonce))
    }

    fn ttl(&self, record: &Record) -> Duration {
        match record.ownership {
            Ownership::Closed => CLOSED_TTL,
            // The record is written again only so often.
            _ => self.session_ttl + self.timing.touch + SWEEP,
        }
    }
}

fn found(entry: Entry) -> (Record, Version) {
    (codec::record(&entry.value), entry.version)
}

fn roster_found(entry: Entry) -> (Roster, Version) {
    (codec::roster(&entry.value), entry.version)
}

pub(crate) fn heartbeat_key(replica: &str) -> String {
    format!("{HEARTBEATS}{replica}")
}

fn roster_key(replica: &str) -> String {
    format!("roster/{replica}")
}

const HEARTBEATS: &str = "replica/";
const PAGE: usize = 1_000;
/// How often the sessions that were used are written down.
const SWEEP: Duration = Duration::from_secs(5);
/// How long the store remembers that a session has ended.
const CLOSED_TTL: Duration = Duration::from_secs(60);
