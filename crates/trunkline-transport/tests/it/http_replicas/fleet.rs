//! Several endpoints in one process that share their sessions through a map.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::ready;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Extensions, Request, Response};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};
use trunkline_auth::Principal;
use trunkline_proto::server::Config;
use trunkline_proto::{Attached, Call, Change, HandlerEvent, PeerNotification};
use trunkline_testkit::http::{Head, Line, request};
use trunkline_transport::Limits;
use trunkline_transport::conversation_handle::{ConversationHandle, Request as Asking};
use trunkline_transport::handler::{Answer, Handler, Listening};
use trunkline_transport::http::forward::{Forward, Internal};
use trunkline_transport::http::replicas::{
    KeptEvent, KeptEvents, Lookup, Peer, Place, Replicas, SessionRecord, Unavailable,
};
use trunkline_transport::http::{Endpoint, HttpBody, Settings, SharedSessions, bind, serve};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Params;
use trunkline_wire::model::{Implementation, Progress};

use crate::http_trusting::Trusting;

pub(super) const KEY: [u8; 32] = [7; 32];

/// What all replicas can see.
#[derive(Default)]
pub(super) struct World {
    pub(super) records: HashMap<String, (String, SessionRecord)>,
    pub(super) events: BTreeMap<(String, u64, u64), KeptEvent>,
    alive: HashMap<String, Peer>,
    /// Sessions that were handed over, until their new owners have heard of it.
    inherited: HashSet<String>,
    /// Those that left after they had answered everything.
    pub(super) farewells: HashSet<String>,
    opened: usize,
    pub(super) is_away: bool,
}

impl World {
    pub(super) fn set_url(&mut self, replica: &str, url: &str) {
        self.alive.get_mut(replica).expect("it is there").url = url.to_owned();
    }
}

pub(super) type Shared = Arc<Mutex<World>>;

/// One replica's view of the world.
pub(super) struct Fake {
    pub(super) me: String,
    world: Shared,
    /// Owners that it believes in without a look at the record.
    pub(super) hints: Mutex<HashMap<String, String>>,
    pub(super) has_lease: AtomicBool,
    /// How often it was asked for an owner.
    pub(super) located: AtomicUsize,
}

impl Fake {
    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    fn place(&self, id: &str) -> Result<Place, Unavailable> {
        let mut world = self.world();
        if let Some(peer) = lock(&self.hints).get(id).and_then(|it| world.alive.get(it)) {
            return Ok(Place::At(peer.clone()));
        }
        if world.is_away {
            return Err(Unavailable);
        }
        let World { records, alive, inherited, .. } = &mut *world;
        let Some((owner, record)) = records.get_mut(id) else { return Ok(Place::Gone) };
        if *owner == self.me {
            return match self.has_lease.load(SeqCst) {
                true if inherited.remove(id) => Ok(Place::TakenOver(record.clone())),
                true => Ok(Place::Here),
                false => Err(Unavailable),
            };
        }
        if let Some(peer) = alive.get(owner) {
            return Ok(Place::At(peer.clone()));
        }
        owner.clone_from(&self.me);
        Ok(Place::TakenOver(record.clone()))
    }
}

impl Replicas for Fake {
    fn me(&self) -> &str {
        &self.me
    }

    fn may_answer(&self, id: &str) -> bool {
        let is_mine = self.world().records.get(id).is_some_and(|(owner, _)| *owner == self.me);
        is_mine && self.has_lease.load(SeqCst)
    }

    fn open(&self, record: SessionRecord) -> Lookup<'_, Result<String, Unavailable>> {
        let mut world = self.world();
        if world.is_away {
            return Box::pin(ready(Err(Unavailable)));
        }
        world.opened += 1;
        let id = format!("session-{}-of-{}", world.opened, self.me);
        world.records.insert(id.clone(), (self.me.clone(), record));
        Box::pin(ready(Ok(id)))
    }

    fn locate<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        Box::pin(async move {
            // Others may ask before this one knows, and before it is told.
            yield_now().await;
            let place = self.place(id);
            self.located.fetch_add(1, SeqCst);
            yield_now().await;
            place
        })
    }

    fn forget(&self, id: &str) {
        lock(&self.hints).remove(id);
    }

    fn is_lost(&self, id: &str) -> bool {
        self.world().records.get(id).is_none_or(|(owner, _)| *owner != self.me)
    }

    fn locate_replica<'a>(&'a self, replica: &'a str) -> Lookup<'a, Result<Place, Unavailable>> {
        let peer = self.world().alive.get(replica).cloned();
        Box::pin(ready(Ok(peer.map_or(Place::Gone, Place::At))))
    }

    fn has_answered_all<'a>(&'a self, replica: &'a str) -> Lookup<'a, bool> {
        let has_left = self.world().farewells.contains(replica);
        Box::pin(ready(has_left))
    }

    fn update(&self, id: &str, record: SessionRecord) {
        self.world().records.insert(id.to_owned(), (self.me.clone(), record));
    }

    fn close<'a>(&'a self, id: &'a str) -> Lookup<'a, Result<(), Unavailable>> {
        self.world().records.retain(|it, (owner, _)| it != id || *owner != self.me);
        Box::pin(ready(Ok(())))
    }

    fn keep(&self, id: &str, event: KeptEvent) {
        self.world().events.insert((id.to_owned(), event.stream, event.place), event);
    }

    fn kept<'a>(&'a self, id: &'a str, stream: u64, after: u64) -> KeptEvents<'a> {
        let world = self.world();
        let range = (id.to_owned(), stream, after + 1)..=(id.to_owned(), stream, u64::MAX);
        let kept = world.events.range(range).map(|(_, event)| event.clone()).collect();
        Box::pin(ready(Ok(kept)))
    }
}

/// Says which replica it is.
pub(super) struct Tools {
    name: String,
    /// How far a `slow` call goes on.
    pub(super) go: Arc<Semaphore>,
    pub(super) heard: Mutex<Vec<String>>,
    listeners: Mutex<Vec<ConversationHandle>>,
    is_busy: AtomicBool,
}

impl Tools {
    /// Tells all sessions of this replica that a resource has changed.
    pub(super) async fn changed(&self, uri: &str) {
        let all: Vec<_> = lock(&self.listeners).clone();
        for handle in all {
            handle.changed(Change::Resource(uri.to_owned())).await;
        }
    }
}

impl Handler for Tools {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        let name = call.params.get("name").and_then(|it| it.as_text()).unwrap_or_default();
        let caller = call.attached.get::<Extensions>().and_then(|it| it.get::<Principal>());
        let caller = caller.map(|it| it.subject.clone()).unwrap_or_default();
        let result = Json::of(&json!({
            "content": [{ "type": "text", "text": format!("{} for {caller}", self.name) }],
        }));
        let (handle, key, go) = (handle.clone(), call.key, Arc::clone(&self.go));
        match &*name {
            "slow" => Answer::later(async move {
                for step in 1.. {
                    handle.say(key, HandlerEvent::Progress(Progress::new(f64::from(step)))).await;
                    if step == 3 {
                        break;
                    }
                    go.acquire().await.expect("nobody closes it").forget();
                }
                go.acquire().await.expect("nobody closes it").forget();
                Ok(result)
            }),
            "wait" => {
                self.is_busy.store(true, SeqCst);
                Answer::later(async move {
                    go.acquire().await.expect("nobody closes it").forget();
                    Ok(result)
                })
            }
            "ask" => Answer::later(async move {
                let mut asking = Asking::new("roots/list", Default::default());
                asking.during = Some(key);
                let roots = handle.ask(asking).await;
                let roots = roots.map(|it| it.get().to_owned()).map_err(|it| it.to_string());
                let text = format!("{roots:?}");
                Ok(Json::of(&json!({ "content": [{ "type": "text", "text": text }] })))
            }),
            "big" => Answer::Now(Ok(Json::of(&json!({ "text": "x".repeat(3 << 20) })))),
            _ => Answer::Now(Ok(result)),
        }
    }

    fn heard(&self, heard: PeerNotification, _: &ConversationHandle) {
        let uri = heard.params.get("uri").map(|it| format!(" {it}")).unwrap_or_default();
        lock(&self.heard).push(format!("{}{uri}", heard.method));
    }

    fn listen(&self, handle: &ConversationHandle, _: &Attached) -> Listening {
        lock(&self.listeners).push(handle.clone());
        None
    }

    fn held_by(&self, _: &str, params: &Params, _: &Attached) -> Option<String> {
        params.get("requestState").and_then(|it| it.as_text()).map(|it| it.into_owned())
    }

    fn is_same_caller(&self, one: &Attached, other: &Attached) -> bool {
        let name = |it: &Attached| {
            it.get::<Extensions>().and_then(|it| it.get::<Principal>()).map(|it| it.id())
        };
        name(one) == name(other)
    }
}

pub(super) struct Replica {
    pub(super) public: SocketAddr,
    pub(super) internal: SocketAddr,
    pub(super) fake: Arc<Fake>,
    pub(super) tools: Arc<Tools>,
    endpoint: Arc<Endpoint<Tools>>,
    serving: JoinSet<std::io::Result<()>>,
    world: Shared,
}

impl Replica {
    async fn start(name: &str, world: &Shared, limits: Limits) -> Self {
        let listeners = (bind("127.0.0.1:0").await.unwrap(), bind("127.0.0.1:0").await.unwrap());
        let addresses = (listeners.0.local_addr().unwrap(), listeners.1.local_addr().unwrap());
        let (name, url) = (name.to_owned(), format!("http://{}", addresses.1));
        lock(world).alive.insert(name.clone(), Peer { id: name.clone(), url });
        let fake = Arc::new(Fake {
            me: name.clone(),
            world: Arc::clone(world),
            hints: Mutex::default(),
            has_lease: AtomicBool::new(true),
            located: AtomicUsize::new(0),
        });
        let forward = Forward::new(&[KEY], &[], &limits).unwrap();
        let shared = SharedSessions::new(Arc::clone(&fake) as Arc<dyn Replicas>, &[KEY], forward);
        let mut core = Config::new(Implementation::new("travel", "1.0"));
        core.capabilities.tools.get_or_insert_default();
        core.capabilities.logging = true;
        core.capabilities.resources.get_or_insert_default().subscribe = true;
        let mut settings = Settings::new(limits.clone());
        settings.replicas = Some(Arc::clone(&shared));
        let tools = Arc::new(Tools {
            name,
            go: Arc::new(Semaphore::new(0)),
            heard: Mutex::default(),
            listeners: Mutex::default(),
            is_busy: AtomicBool::new(false),
        });
        let endpoint = Endpoint::new(Arc::new(core), Arc::clone(&tools), settings);
        let ping = Arc::new(|question: &[u8]| (question == b"you?").then(|| b"here".to_vec()));
        let internal = Internal::new(Arc::clone(&endpoint), shared, ping);
        let front = Arc::new(Trusting(Arc::clone(&endpoint)));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listeners.0, front, limits.clone(), std::future::pending()));
        serving.spawn(serve(listeners.1, internal, limits, std::future::pending()));
        let (public, internal, world) = (addresses.0, addresses.1, Arc::clone(world));
        Self { public, internal, fake, tools, endpoint, serving, world }
    }

    /// Ends it as a crash would: nothing is handed over, every connection breaks.
    pub(super) fn kill(&mut self) {
        lock(&self.world).alive.remove(&self.fake.me);
        self.fake.has_lease.store(false, SeqCst);
        self.serving.abort_all();
        self.endpoint.end();
    }

    /// Nobody can connect any more.
    pub(super) async fn close_listeners(&mut self) {
        self.serving.shutdown().await;
    }

    /// Releases its sessions in which nothing is in flight.
    pub(super) fn release(&self) -> Vec<String> {
        self.endpoint.release_quiet_sessions(|id| self.fake.may_answer(id))
    }

    /// Hands a session over that it has released.
    pub(super) fn hand_over(&self, session: &str, to: &Replica) {
        let mut world = lock(&self.world);
        world.inherited.insert(session.to_owned());
        world.records.get_mut(session).expect("it is there").0.clone_from(&to.fake.me);
    }

    /// Keeps a session that it has released.
    pub(super) fn take_back(&self, session: &str) {
        self.endpoint.take_back(session);
    }

    /// Whether it has anything in flight.
    pub(super) fn has_open_requests(&self) -> bool {
        self.endpoint.is_busy()
    }

    /// Ends what never ends by itself.
    pub(super) fn hang_up(&self) {
        self.endpoint.hang_up();
    }

    /// Whether a call is being answered.
    pub(super) fn is_busy(&self) -> bool {
        self.tools.is_busy.load(SeqCst)
    }

    /// Others see it as gone, while it still listens.
    pub(super) fn vanish(&self) {
        lock(&self.world).alive.remove(&self.fake.me);
    }

    /// The response to a POST, of which its client has read nothing yet.
    pub(super) async fn answer(&self, to: &Visitor, message: String) -> Response<HttpBody> {
        let mut request = Request::post(format!("http://{}/mcp", self.public));
        for (name, value) in to.headers() {
            request = request.header(name, value);
        }
        let name = Principal::new(to.name).issued_by("https://login.example");
        let request = request.extension(name).body(message).unwrap();
        self.endpoint.answer(request, &Mutex::default()).await
    }

    pub(super) async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Sent {
        let mut sent = Line::to(self.public).await;
        sent.send(request(self.public, line, headers, body)).await;
        let head = sent.head().await;
        Sent { line: sent, head }
    }
}

pub(super) struct Sent {
    pub(super) line: Line,
    pub(super) head: Head,
}

impl Sent {
    /// The text of a tool's result, or the reason of an error.
    pub(super) async fn said(mut self) -> String {
        let answer = self.line.json().await;
        said(&answer)
    }
}

pub(super) fn said(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    let reason = answer["error"]["data"]["reason"].as_str();
    text.or(reason).map_or_else(|| answer.to_string(), str::to_owned)
}

/// A client of 2025-11-25 that sends each message to another replica than the last.
pub(super) struct Visitor {
    pub(super) session: String,
    pub(super) name: &'static str,
}

impl Visitor {
    pub(super) async fn open(at: &Replica, name: &'static str) -> Self {
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"cli","version":"1"}}}"#;
        let mut visitor = Self { session: String::new(), name };
        let sent = at.send("POST /mcp", &visitor.headers()[1..], hello).await;
        assert_eq!(sent.head.status, 200);
        visitor.session = sent.head.get("mcp-session-id").expect("it is given an id").to_owned();
        visitor
    }

    pub(super) fn headers(&self) -> [(&str, &str); 6] {
        [
            ("mcp-session-id", &self.session),
            ("mcp-protocol-version", "2025-11-25"),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("x-name", self.name),
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ]
    }

    pub(super) async fn post(&self, at: &Replica, message: &str) -> Sent {
        at.send("POST /mcp", &self.headers(), message).await
    }

    pub(super) async fn call(&self, at: &Replica, id: u32, tool: &str) -> Sent {
        self.post(at, &call(id, tool)).await
    }

    pub(super) async fn request(&self, at: &Replica, id: u32, method: &str, params: &str) -> Sent {
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.post(at, &message).await
    }

    pub(super) async fn get(&self, at: &Replica, last: Option<&str>) -> Sent {
        let headers = self.headers();
        let last = last.map(|it| ("last-event-id", it));
        let headers: Vec<_> = headers.into_iter().chain(last).collect();
        at.send("GET /mcp", &headers, "").await
    }

    pub(super) async fn delete(&self, at: &Replica) -> u16 {
        at.send("DELETE /mcp", &self.headers(), "").await.head.status
    }
}

/// A call that wants to hear of progress.
pub(super) fn call(id: u32, tool: &str) -> String {
    let params = format!(r#"{{"name":"{tool}","_meta":{{"progressToken":{id}}}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

pub(super) async fn fleet<const N: usize>() -> (Shared, [Replica; N]) {
    fleet_within(Limits::default()).await
}

/// The same, with a session of alice at the first.
pub(super) async fn fleet_with_alice<const N: usize>() -> (Shared, [Replica; N], Visitor) {
    let (world, replicas) = fleet().await;
    let alice = Visitor::open(&replicas[0], "alice").await;
    (world, replicas, alice)
}

pub(super) async fn fleet_within<const N: usize>(limits: Limits) -> (Shared, [Replica; N]) {
    let world = Shared::default();
    let mut replicas = Vec::new();
    for at in 0..N {
        let name = char::from(b'a' + u8::try_from(at).unwrap()).to_string();
        replicas.push(Replica::start(&name, &world, limits.clone()).await);
    }
    (world, replicas.try_into().ok().expect("there are that many"))
}

/// Waits until something is so.
pub(super) async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it happens in time");
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names that are there once.
pub(super) fn distinct(names: &[String]) -> usize {
    names.iter().collect::<HashSet<_>>().len()
}
