//! Keeps the subscriptions at one server: an instance is held while there are any, and what is
//! subscribed to follows what is wanted.

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

use super::Host;
use crate::caller::Caller;
use crate::client_profile::ClientProfile;
use crate::pool::{Cause, Profile, Want};
use crate::server::{Server, Who, key_of};
use crate::upstream::Instance;

/// Where subscriptions are held, and for whom.
pub(crate) struct Post {
    pub(crate) server: Weak<Server>,
    /// Somebody who wants them. They are held in the instance that serves the calls of those.
    pub(crate) subscriber: Subscriber,
    pub(crate) spot: Spot,
    /// The instance it is now; 0 for none.
    pub(crate) instance: Arc<AtomicU64>,
}

/// Somebody who wants to hear of something.
#[derive(Clone)]
pub(crate) struct Subscriber {
    pub(crate) caller: Arc<Caller>,
    pub(crate) era: Era,
}

impl Subscriber {
    /// What a server is asked for on their behalf: the instance that it serves their calls from.
    pub(crate) fn want(&self, server: &Server) -> Want {
        let key = key_of(&server.plan(), &self.caller, None);
        let able = ClientProfile::of(&self.caller.peer, self.era);
        server.want(key, Who::Caller(&self.caller), able, Cause::Subscription)
    }
}

/// By what the instances of a server are told apart that serve the calls of whoever subscribes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    pub(crate) server: Arc<str>,
    /// The principal whose they are; `None` if anybody's.
    pub(crate) owner: Option<Arc<str>>,
    profile: Profile,
    pub(crate) key: Option<Box<str>>,
}

impl Spot {
    pub(crate) fn of(server: &Server, who: &Subscriber) -> Self {
        let want = who.want(server);
        let server = Arc::clone(&server.name);
        Self { server, owner: want.owner, profile: want.profile, key: want.key }
    }
}

/// What is wanted, and what is told of where it is.
type Wanted = watch::Receiver<HashSet<Arc<str>>>;
type InPlace = watch::Sender<HashSet<Arc<str>>>;

/// Holds subscriptions at a server until nobody is left who wants them. `is_back` if it takes the place
/// of one that was subscribed to.
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
        let leased = server.lease(|| post.subscriber.want(&server)).await;
        let is_elsewhere = Spot::of(&server, &post.subscriber) != post.spot;
        drop(server);
        if is_elsewhere && let Some(host) = host.upgrade() {
            // Somebody else sees to it from now on, where the calls go.
            host.subscriptions().follow(&*host);
            return;
        }
        if let Ok(lease) = leased {
            let began = tokio::time::Instant::now();
            let instance = Arc::clone(lease.instance());
            post.instance.store(instance.id, Ordering::Relaxed);
            // It is kept for as long as it is held, and others may call it meanwhile.
            let _held = lease.stay();
            // What has changed while nobody listened is told once somebody does again.
            let settled = |now: HashSet<Arc<str>>| {
                in_place.send_replace(now);
                if std::mem::replace(&mut is_missing, false)
                    && let Some(host) = host.upgrade()
                {
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
            // One that ends as soon as it has begun is not to be asked for ever.
            if began.elapsed() >= LIFE {
                pause = FIRST;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Keeps the same subscriptions at one more instance that serves the same callers, for as long as that
/// runs: what a call changes there, the instance that is held does not know.
pub(crate) async fn also(
    host: Weak<dyn Host>,
    instance: Arc<Instance>,
    mut wanted: Wanted,
    in_place: InPlace,
) {
    let settled = |now| drop(in_place.send_replace(now));
    keep(&host, &instance, &mut wanted, settled).await;
}

/// Keeps at an instance what is wanted there. `None`: nobody wants anything any more.
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

/// Whether a server of the new era says that it tells of resources. FastMCP does not.
fn can_tell(instance: &Instance) -> bool {
    instance.opened.capabilities.resources.is_some_and(|it| it.subscribe)
}

/// There is nothing to subscribe to: nobody waits for it. `None`: nobody wants anything any more.
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

/// Subscribes one by one. `None`: nobody wants anything any more.
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

/// Listens to all at once. There is no way to change what is listened to, so a new listener takes
/// the place of the old one once it is acknowledged.
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

/// Waits for the acknowledgement, the first that is heard of a listener; false when it is over.
async fn is_acknowledged(
    call: &mut Listening,
    heard: &mut mpsc::Receiver<PeerNotification>,
) -> bool {
    tokio::select! {
        () = call => false,
        // It hears nothing more when it was refused.
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
/// How long one that is well lives at least.
const LIFE: Duration = Duration::from_secs(10);
const ACKNOWLEDGED: Duration = Duration::from_secs(5);
