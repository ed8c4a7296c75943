//! Keeps the subscriptions at one server: holds an instance while there are any, and makes its subscriptions
//! follow what clients want.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use trunkline_proto::PeerNotification;
use trunkline_transport::conversation_handle::Request;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::SubscriptionFilter;
use trunkline_wire::revision::Era;

use super::{Host, SETTLED};
use crate::caller::Caller;
use crate::client_profile::ClientProfile;
use crate::pool::{Cause, Profile, Want};
use crate::server::{Hop, Server, Who, key_of};
use crate::upstream::Instance;

/// Where subscriptions are held, and for whom.
pub(crate) struct Post {
    pub(crate) server: Weak<Server>,
    /// A subscriber. The subscriptions are held in the instance that serves its calls.
    pub(crate) subscriber: Subscriber,
    pub(crate) group: InstanceGroup,
    /// The current instance; 0 for none.
    pub(crate) instance: Arc<AtomicU64>,
}

/// A client that subscribes.
#[derive(Clone)]
pub(crate) struct Subscriber {
    pub(crate) caller: Arc<Caller>,
    pub(crate) era: Era,
}

impl Subscriber {
    /// The want for the instance that serves the subscriber's calls.
    pub(crate) fn want(&self, server: &Server) -> Want {
        let plan = server.plan();
        let key = key_of(&plan, &self.caller, None);
        let profile = ClientProfile::of(&self.caller.peer, self.era);
        server.want(&plan, key, Who::Caller(&self.caller), profile, Cause::Subscription)
    }
}

/// Identifies the instances of a server that serve a subscriber's calls.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct InstanceGroup {
    pub(crate) server: Arc<str>,
    /// The principal that owns them; `None` if they are shared.
    pub(crate) owner: Option<Arc<str>>,
    profile: Profile,
    pub(crate) key: Option<Box<str>>,
}

impl InstanceGroup {
    pub(crate) fn of(server: &Server, who: &Subscriber) -> Self {
        let want = who.want(server);
        let server = Arc::clone(&server.name);
        Self { server, owner: want.owner, profile: want.profile, key: want.key }
    }
}

/// The URIs that are wanted.
type Wanted = watch::Receiver<HashSet<Arc<str>>>;
type InPlace = watch::Sender<HashSet<Arc<str>>>;

/// Holds subscriptions at a server until nobody wants them. `is_back` if it replaces an instance that was
/// subscribed to.
pub(crate) async fn hold(
    host: Weak<dyn Host>,
    post: Post,
    mut wanted: Wanted,
    in_place: InPlace,
    is_back: bool,
) {
    let mut pause = FIRST;
    let mut is_missing = is_back;
    loop {
        let Some(server) = post.server.upgrade() else { return };
        let leased = server.lease(Hop::May, &|| post.subscriber.want(&server)).await;
        let is_elsewhere = InstanceGroup::of(&server, &post.subscriber) != post.group;
        drop(server);
        if is_elsewhere && let Some(host) = host.upgrade() {
            // Another task holds them from now on, where the calls go.
            host.subscriptions().follow(&*host);
            return;
        }
        if let Ok(lease) = leased {
            let began = tokio::time::Instant::now();
            let instance = Arc::clone(lease.instance());
            post.instance.store(instance.id, Ordering::Relaxed);
            // It stays alive while it is held, and serves calls meanwhile.
            let _held = lease.stay();
            // Changes missed while no subscription was in place are reported once there is one again.
            let settled = |now: HashSet<Arc<str>>| {
                let Some(host) = host.upgrade() else { return };
                // First, since calls that wait go on as soon as it is in place.
                host.subscriptions().arrive(&*host, &post.group, &now);
                in_place.send_replace(now);
                if std::mem::replace(&mut is_missing, false) {
                    host.subscriptions().all_updated(&*host, &instance.server, instance.id);
                }
            };
            let ended = keep(&host, &instance, &mut wanted, settled).await;
            is_missing |= !in_place.borrow().is_empty();
            in_place.send_replace(HashSet::new());
            post.instance.store(0, Ordering::Relaxed);
            if ended.is_none() {
                return;
            }
            // An instance that ends right after its start must not be retried without a pause.
            if began.elapsed() >= LIFE {
                pause = FIRST;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Keeps the same subscriptions at one more instance that serves the same callers, while it runs: the instance
/// that is held does not notice changes made in this one.
pub(crate) async fn also(
    host: Weak<dyn Host>,
    instance: Arc<Instance>,
    mut wanted: Wanted,
    in_place: InPlace,
) {
    let began = tokio::time::Instant::now();
    let settled = |now: HashSet<Arc<str>>| {
        let was_waited_for = !in_place.borrow().is_empty() || began.elapsed() < SETTLED;
        in_place.send_replace(now.clone());
        if !was_waited_for && let Some(host) = host.upgrade() {
            for uri in &now {
                host.subscriptions().updated(&*host, &instance.server, instance.id, uri);
            }
        }
    };
    keep(&host, &instance, &mut wanted, settled).await;
}

/// Keeps the wanted subscriptions at an instance. `None`: nobody wants any more.
async fn keep(
    host: &Weak<dyn Host>,
    instance: &Arc<Instance>,
    wanted: &mut Wanted,
    settled: impl FnMut(HashSet<Arc<str>>),
) -> Option<()> {
    match instance.opened.revision.era() {
        Era::Stateful => subscribe(instance, wanted, settled).await,
        Era::Stateless if !can_tell(instance) => nothing(instance, wanted, settled).await,
        Era::Stateless => listen(host, instance, wanted, settled).await,
    }
}

/// Whether a server of the stateless era declares resource subscriptions. FastMCP does not.
fn can_tell(instance: &Instance) -> bool {
    instance.opened.capabilities.resources.is_some_and(|it| it.subscribe)
}

/// The server has no subscriptions: nobody waits for one. `None`: nobody wants any more.
async fn nothing(
    instance: &Instance,
    wanted: &mut Wanted,
    mut settled: impl FnMut(HashSet<Arc<str>>),
) -> Option<()> {
    loop {
        settled(wanted.borrow_and_update().clone());
        tokio::select! {
            changed = wanted.changed() => changed.ok()?,
            () = instance.ended() => return Some(()),
        }
    }
}

/// Subscribes to each URI (`resources/subscribe`). `None`: nobody wants any more.
async fn subscribe(
    instance: &Arc<Instance>,
    wanted: &mut Wanted,
    mut settled: impl FnMut(HashSet<Arc<str>>),
) -> Option<()> {
    let mut done: HashSet<Arc<str>> = HashSet::new();
    loop {
        let now = wanted.borrow_and_update().clone();
        for uri in now.difference(&done) {
            tell(instance, Method::ResourcesSubscribe, uri).await;
        }
        for uri in done.difference(&now) {
            tell(instance, Method::ResourcesUnsubscribe, uri).await;
        }
        settled(now.clone());
        done = now;
        tokio::select! {
            changed = wanted.changed() => changed.ok()?,
            () = instance.ended() => return Some(()),
        }
    }
}

async fn tell(instance: &Instance, method: Method, uri: &str) {
    let mut params = Object::default();
    params.set("uri", Json::string(uri));
    if let Err(error) = instance.call(Request::new(method, params)).await {
        tracing::warn!(server = &*instance.server, uri, %error, "`{method}` failed");
    }
}

/// Listens to all URIs at once (`subscriptions/listen`). A listener cannot be changed, so a new one replaces
/// the old one once it is acknowledged.
async fn listen(
    host: &Weak<dyn Host>,
    instance: &Arc<Instance>,
    wanted: &mut Wanted,
    mut settled: impl FnMut(HashSet<Arc<str>>),
) -> Option<()> {
    let now = wanted.borrow_and_update().clone();
    let (mut call, mut heard) = open(instance, &now);
    if !is_acknowledged(&mut call, &mut heard).await {
        return Some(());
    }
    settled(now);
    loop {
        tokio::select! {
            changed = wanted.changed() => {
                changed.ok()?;
                let now = wanted.borrow_and_update().clone();
                let (mut next, mut told) = open(instance, &now);
                if !is_acknowledged(&mut next, &mut told).await {
                    return Some(());
                }
                (call, heard) = (next, told);
                settled(now);
            }
            Some(said) = heard.recv() => {
                if let Some(host) = host.upgrade() {
                    host.heard(&instance.server, instance.id, said);
                }
            }
            _ = &mut call => return Some(()),
            () = instance.ended() => return Some(()),
        }
    }
}

/// Waits for the acknowledgement, the first notification of a listener; `false` if the listener ended.
async fn is_acknowledged(
    call: &mut Listening,
    heard: &mut mpsc::Receiver<PeerNotification>,
) -> bool {
    tokio::select! {
        () = call => false,
        // A refused listener's channel closes.
        told = heard.recv() => told.is_some(),
        () = tokio::time::sleep(ACKNOWLEDGED) => true,
    }
}

type Listening = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn open(
    instance: &Arc<Instance>,
    uris: &HashSet<Arc<str>>,
) -> (Listening, mpsc::Receiver<PeerNotification>) {
    let filter = SubscriptionFilter::new()
        .resource_subscriptions(uris.iter().map(|it| it.to_string()).collect::<Vec<_>>());
    let mut params = Object::default();
    params.set("notifications", Json::of(&filter));
    let mut request = Request::new(Method::SubscriptionsListen, params);
    let (tell, heard) = mpsc::channel(256);
    request.heard = Some(tell);
    let call = instance.call(request);
    (Box::pin(async move { drop(call.await) }), heard)
}

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);
/// A listener that lived this long was healthy: the backoff is reset.
const LIFE: Duration = Duration::from_secs(10);
const ACKNOWLEDGED: Duration = Duration::from_secs(5);
