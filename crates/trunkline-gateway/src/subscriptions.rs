//! Resource subscriptions: maps what clients subscribed to onto subscriptions at servers.

mod keeper;

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_proto::{Change, PeerNotification};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::method::Method;
use trunkline_wire::model::SubscriptionFilter;
use trunkline_wire::revision::Era;

use crate::caller::Caller;
use crate::policy::audit::Audit;
use crate::selector::Selector;
use crate::server::Server;
use crate::upstream::Instance;
use keeper::{InstanceGroup, Subscriber};

/// What subscriptions need of the gateway.
pub(crate) trait Host: Send + Sync + 'static {
    fn this(&self) -> Weak<dyn Host>;

    fn subscriptions(&self) -> &Subscriptions;

    /// A server of the plan in force.
    fn server(&self, name: &str) -> Option<Arc<Server>>;

    fn audit(&self) -> Option<Arc<Audit>>;

    /// Where a resource is that a caller may hear of, if known.
    fn place(&self, selector: &Selector, caller: &Caller, uri: &str) -> Option<Place>;

    /// Whether a resource may still be where it was: its server was replaced and has not listed yet.
    fn is_still(&self, place: &Place, selector: &Selector, caller: &Caller) -> bool;

    /// Whether the lists of all servers of a selector are known.
    fn is_complete(&self, selector: &Selector) -> bool;

    /// Asks those servers for their lists, for a limited time.
    fn complete(self: Arc<Self>, selector: Selector) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Notifies the clients of these conversations of a change.
    fn tell(&self, change: &Change, conversations: &HashSet<u64>);

    /// An instance with a subscription sent a notification.
    fn heard(&self, server: &str, instance: u64, heard: PeerNotification);
}

/// All subscriptions.
#[derive(Default)]
pub(crate) struct Subscriptions {
    state: Mutex<State>,
    /// Whether there are any.
    any: AtomicBool,
    /// Notified whenever a subscription moves.
    moved: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// The listening clients, by conversation.
    clients: HashMap<u64, Client>,
    /// The subscriptions at each server, and the task that keeps them. Clients whose calls go to different
    /// instances have a task each.
    held: HashMap<InstanceGroup, Held>,
}

/// A listening client, and the URIs it subscribed to, as it knows them.
struct Client {
    caller: Arc<Caller>,
    era: Era,
    selector: Selector,
    wanted: HashMap<String, Subscription>,
    /// Whether servers are being asked for their lists, to find out which one is meant.
    is_listing: bool,
}

struct Subscription {
    /// Where the resource is; `None` while no server is known to have it.
    place: Option<Place>,
    /// Where it is subscribed to.
    group: Option<InstanceGroup>,
    /// Until when the client's calls wait for it.
    until: Instant,
    /// Whether it has been in place.
    has_been: bool,
    /// Whether it lives in a request of its own (`subscriptions/listen`), apart from the client's calls.
    is_apart: bool,
}

/// A resource at a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) server: Arc<str>,
    pub(crate) uri: Arc<str>,
}

struct Held {
    /// If another server takes this one's place, it is subscribed to again.
    server: Weak<Server>,
    uris: watch::Sender<HashSet<Arc<str>>>,
    /// The URIs that the server has acknowledged.
    in_place: watch::Receiver<HashSet<Arc<str>>>,
    /// The instance that is held for it; 0 for none.
    instance: Arc<AtomicU64>,
    task: AbortHandle,
    /// Further instances that serve the same callers, as long as they run.
    also: HashMap<u64, Also>,
}

/// The same subscriptions at one more instance.
struct Also {
    in_place: watch::Receiver<HashSet<Arc<str>>>,
    task: AbortHandle,
}

impl Held {
    fn is_kept(&self, instance: u64) -> bool {
        self.instance.load(Ordering::Relaxed) == instance
    }

    fn is_at(&self, instance: u64) -> bool {
        self.is_kept(instance) || self.also.contains_key(&instance)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.task.abort();
        self.also.values().for_each(|it| it.task.abort());
    }
}

impl Subscriptions {
    /// A client has connected and may subscribe.
    pub(crate) fn joined(&self, caller: Caller, selector: &Selector) {
        let conversation = caller.conversation;
        let (caller, selector) = (Arc::new(caller), selector.clone());
        let (era, wanted) = (Era::Stateless, HashMap::new());
        let client = Client { caller, era, selector, wanted, is_listing: false };
        self.lock().clients.insert(conversation, client);
    }

    /// A client subscribed or unsubscribed.
    pub(crate) fn heard(
        &self,
        host: &dyn Host,
        heard: &PeerNotification,
        handle: &ConversationHandle,
    ) {
        let uri = || heard.params.get("uri").and_then(|it| it.to::<String>().ok());
        match heard.method {
            Method::ResourcesSubscribe => {
                self.record_era(handle.number(), Era::Stateful, heard);
                self.want(host, handle.number(), uri().into_iter().collect(), false);
            }
            Method::ResourcesUnsubscribe => {
                if let Some(uri) = uri() {
                    let mut left = None;
                    self.change(host, |state| {
                        if let Some(client) = state.clients.get_mut(&handle.number()) {
                            let place = client.wanted.remove(&uri).and_then(|it| it.place);
                            left = place.map(|it| (Arc::clone(&client.caller), it));
                        }
                    });
                    if let Some((caller, place)) = left {
                        note(host, &caller, vec![(false, place)]);
                    }
                }
            }
            Method::SubscriptionsListen => {
                self.record_era(handle.number(), Era::Stateless, heard);
                let filter = heard.params.get("notifications");
                let filter = filter.and_then(|it| it.to::<SubscriptionFilter>().ok());
                let uris = filter.map(|it| it.resource_subscriptions).unwrap_or_default();
                self.want(host, handle.number(), uris, true);
            }
            _ => {}
        }
    }

    /// Records who subscribes, and in which era.
    fn record_era(&self, conversation: u64, era: Era, heard: &PeerNotification) {
        if let (Some(peer), Some(client)) =
            (&heard.peer, self.lock().clients.get_mut(&conversation))
        {
            let caller = Arc::make_mut(&mut client.caller);
            (caller.peer, caller.has_session) = (Arc::clone(peer), era == Era::Stateful);
            client.era = era;
        }
    }

    /// Whether there is any subscription.
    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Waits a limited time until the caller's new subscriptions at a server are in place, so that a client
    /// that subscribes and then calls does not miss what its call changes. Nobody waits for other callers'
    /// subscriptions.
    pub(crate) async fn settled(&self, caller: &Caller, server: &str) {
        let mut moved = self.moved.subscribe();
        while let Some((until, in_place)) = self.pending(caller, server) {
            let in_place = async {
                match in_place {
                    Some((uri, mut there)) => drop(there.wait_for(|it| it.contains(&uri)).await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = in_place => {}
                _ = moved.changed() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Subscribes at this instance too, for the callers that it serves, and waits a limited time until that is
    /// in place: the instance that is held for them does not notice changes made in this one.
    pub(crate) async fn settled_at(
        &self,
        host: &dyn Host,
        owner: Option<&Arc<str>>,
        instance: &Arc<Instance>,
    ) {
        let mut waits = Vec::new();
        for (group, held) in &mut self.lock().held {
            let is_meant = group.server == instance.server && group.owner.as_ref() == owner;
            // A stateful server has one instance for each key.
            if !is_meant || group.key.is_some() || held.is_kept(instance.id) {
                continue;
            }
            if held.also.len() >= ALSO {
                held.also.retain(|_, it| !it.task.is_finished());
            }
            let also = held.also.entry(instance.id).or_insert_with(|| {
                let (done, in_place) = watch::channel(HashSet::new());
                let (this, wanted) = (host.this(), held.uris.subscribe());
                let task = tokio::spawn(keeper::also(this, Arc::clone(instance), wanted, done));
                Also { in_place, task: task.abort_handle() }
            });
            if also.in_place.borrow().is_empty() {
                waits.push(also.in_place.clone());
            }
        }
        for mut in_place in waits {
            // This fails when the instance ends or refuses the subscription.
            let settled = in_place.wait_for(|it| !it.is_empty());
            drop(tokio::time::timeout(SETTLED, settled).await);
        }
    }

    /// The subscription that a caller's call at a server has to wait for, and until when.
    fn pending(&self, caller: &Caller, server: &str) -> Option<(Instant, Option<InPlace>)> {
        let now = Instant::now();
        let mut state = self.lock();
        let State { clients, held } = &mut *state;
        for (conversation, client) in clients {
            let is_own = *conversation == caller.conversation;
            let is_same = client.caller.id == caller.id;
            for (_, subscription) in client.wanted.iter_mut().filter(|(_, it)| it.until > now) {
                if !(is_own || is_same && subscription.is_apart) {
                    continue;
                }
                match &subscription.place {
                    None if client.is_listing => return Some((subscription.until, None)),
                    // Where it is was not found out in time: the call may change what it is about.
                    None => subscription.until = now,
                    Some(place) if *place.server == *server => {
                        let held = subscription.group.as_ref().and_then(|it| held.get(it));
                        let Some(held) = held else { continue };
                        let there = held.in_place.clone();
                        if !there.borrow().contains(&place.uri) {
                            return Some((
                                subscription.until,
                                Some((Arc::clone(&place.uri), there)),
                            ));
                        }
                        // Waiting once is enough: it may have to be put in place again much later.
                        subscription.until = now;
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// A client has disconnected.
    pub(crate) fn left(&self, host: &dyn Host, conversation: u64) {
        let client = self.lock().clients.remove(&conversation);
        if let Some(client) = client.filter(|it| !it.wanted.is_empty()) {
            let places = client.wanted.into_values().filter_map(|it| it.place);
            note(host, &client.caller, places.map(|it| (false, it)).collect());
            self.change(host, |_| ());
        }
    }

    /// An instance reports that a resource changed. Where instances are not shared, only the instance's owner
    /// is notified.
    pub(crate) fn updated(&self, host: &dyn Host, server: &str, instance: u64, uri: &str) {
        let mut told: HashMap<String, HashSet<u64>> = HashMap::new();
        let state = self.lock();
        // A notification from one principal's instance is not passed to others.
        let shared_at = |id: u64| {
            let mut open = state.held.iter().filter(|(it, _)| it.owner.is_none());
            open.any(|(group, held)| *group.server == *server && held.is_at(id))
        };
        let is_at = |group: &InstanceGroup, id: u64| match group.owner {
            Some(_) => state.held.get(group).is_some_and(|it| it.is_at(id)),
            None => shared_at(id),
        };
        for (conversation, client) in &state.clients {
            for (shown, subscription) in &client.wanted {
                let Some(place) = subscription.place.as_ref().filter(|it| *it.server == *server)
                else {
                    continue;
                };
                if !subscription.group.as_ref().is_some_and(|it| is_at(it, instance)) {
                    continue;
                }
                // A sub-resource is reported under its own URI, as the server would do.
                let shown = match *place.uri == *uri {
                    true => shown.clone(),
                    false if trunkline_proto::subscribe::covers(&place.uri, uri) => {
                        format!("{shown}{}", uri.strip_prefix(&*place.uri).unwrap_or(""))
                    }
                    false => continue,
                };
                told.entry(shown).or_default().insert(*conversation);
            }
        }
        drop(state);
        for (shown, to) in told {
            host.tell(&Change::Resource(shown), &to);
        }
    }

    /// Subscriptions get into place at an instance. Whoever's calls did not wait so long may have missed
    /// changes, and is told of one.
    fn arrive(&self, host: &dyn Host, group: &InstanceGroup, uris: &HashSet<Arc<str>>) {
        let now = Instant::now();
        let mut late = Vec::new();
        for (conversation, client) in &mut self.lock().clients {
            for (shown, subscription) in &mut client.wanted {
                let place = subscription.place.as_ref();
                let is_there = place.is_some_and(|it| uris.contains(&it.uri));
                if subscription.has_been || !is_there || subscription.group.as_ref() != Some(group)
                {
                    continue;
                }
                subscription.has_been = true;
                if subscription.until <= now {
                    late.push((shown.clone(), *conversation));
                }
            }
        }
        for (shown, conversation) in late {
            host.tell(&Change::Resource(shown), &HashSet::from([conversation]));
        }
    }

    /// An instance replaces one that is gone: everything subscribed to there may have changed.
    pub(crate) fn all_updated(&self, host: &dyn Host, server: &str, instance: u64) {
        let uris: HashSet<Arc<str>> = {
            let state = self.lock();
            let all = state.places().map(|(_, it)| it);
            all.filter(|it| *it.server == *server).map(|it| Arc::clone(&it.uri)).collect()
        };
        for uri in uris {
            self.updated(host, server, instance, &uri);
        }
    }

    /// The plan or a list changed: moves every subscription to where its resource is now, if that is allowed.
    pub(crate) fn follow(&self, host: &dyn Host) {
        if !self.is_any() {
            return;
        }
        let all: Vec<_> = self.lock().clients.keys().copied().collect();
        all.into_iter().for_each(|it| self.locate(host, it));
        self.change(host, |_| ());
    }

    fn want(&self, host: &dyn Host, conversation: u64, uris: Vec<String>, is_apart: bool) {
        if uris.is_empty() {
            return;
        }
        let until = Instant::now() + SETTLED;
        if let Some(client) = self.lock().clients.get_mut(&conversation) {
            for uri in uris {
                client.wanted.entry(uri).or_insert(Subscription {
                    place: None,
                    group: None,
                    until,
                    has_been: false,
                    is_apart,
                });
            }
        }
        self.locate(host, conversation);
        self.change(host, |_| ());
        self.list_servers(host, conversation);
    }

    /// Resolves where a client's subscriptions are now.
    fn locate(&self, host: &dyn Host, conversation: u64) {
        let found = {
            let state = self.lock();
            let Some(client) = state.clients.get(&conversation) else { return };
            let wanted = client.wanted.iter().map(|(uri, it)| (uri.clone(), it.place.clone()));
            let wanted: Vec<_> = wanted.collect();
            (Arc::clone(&client.caller), client.selector.clone(), wanted)
        };
        // Outside the lock: an index may have to be built.
        let (caller, selector, wanted) = found;
        let places: Vec<_> = wanted
            .into_iter()
            .map(|(uri, before)| {
                let still = before.filter(|it| host.is_still(it, &selector, &caller));
                let place = still.or_else(|| host.place(&selector, &caller, &uri));
                (uri, place)
            })
            .collect();
        let mut moved = Vec::new();
        if let Some(client) = self.lock().clients.get_mut(&conversation) {
            for (uri, place) in places {
                if let Some(subscription) = client.wanted.get_mut(&uri) {
                    let before = std::mem::replace(&mut subscription.place, place.clone());
                    if before != place {
                        moved.extend(before.map(|it| (false, it)));
                        moved.extend(place.map(|it| (true, it)));
                    }
                }
            }
        }
        note(host, &caller, moved);
    }

    /// Asks the servers for their lists if it is unknown which one a client means; one search per client at a
    /// time.
    fn list_servers(&self, host: &dyn Host, conversation: u64) {
        let selector = {
            let mut state = self.lock();
            let Some(client) = state.clients.get_mut(&conversation) else { return };
            let is_lost = client.wanted.values().any(|it| it.place.is_none());
            if client.is_listing || !is_lost || host.is_complete(&client.selector) {
                return;
            }
            client.is_listing = true;
            client.selector.clone()
        };
        let Some(host) = host.this().upgrade() else { return };
        tokio::spawn(async move {
            Arc::clone(&host).complete(selector).await;
            let this = host.subscriptions();
            this.locate(&*host, conversation);
            this.change(&*host, |state| {
                if let Some(client) = state.clients.get_mut(&conversation) {
                    client.is_listing = false;
                }
            });
        });
    }

    /// Changes what is wanted, and updates the subscriptions at servers.
    fn change(&self, host: &dyn Host, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let mut needed: HashMap<InstanceGroup, (Subscriber, HashSet<Arc<str>>)> = HashMap::new();
        for client in state.clients.values_mut() {
            let who = Subscriber { caller: Arc::clone(&client.caller), era: client.era };
            for subscription in client.wanted.values_mut() {
                let place = subscription.place.as_ref();
                let server = place.and_then(|it| host.server(&it.server));
                subscription.group = server.map(|it| InstanceGroup::of(&it, &who));
                if let (Some(group), Some(place)) = (&subscription.group, place) {
                    let fresh = || (who.clone(), HashSet::new());
                    let (_, uris) = needed.entry(group.clone()).or_insert_with(fresh);
                    uris.insert(Arc::clone(&place.uri));
                }
            }
        }
        let mut replaced = HashSet::new();
        state.held.retain(|group, held| {
            let is_same = |it: &Arc<Server>| held.server.ptr_eq(&Arc::downgrade(it));
            let stays = host.server(&group.server).as_ref().is_some_and(is_same);
            if !stays {
                replaced.insert(group.clone());
            }
            needed.contains_key(group) && stays
        });
        for (group, (subscriber, uris)) in needed {
            match state.held.get(&group) {
                Some(held) => {
                    held.uris.send_if_modified(|now| {
                        let is_new = *now != uris;
                        *now = uris;
                        is_new
                    });
                }
                None => {
                    let Some(server) = host.server(&group.server) else { continue };
                    let (tell, told) = watch::channel(uris);
                    let (done, in_place) = watch::channel(HashSet::new());
                    let (server, is_back) = (Arc::downgrade(&server), replaced.contains(&group));
                    let instance = Arc::new(AtomicU64::new(0));
                    let place = keeper::Post {
                        server: Weak::clone(&server),
                        subscriber,
                        group: group.clone(),
                        instance: Arc::clone(&instance),
                    };
                    let holding = keeper::hold(host.this(), place, told, done, is_back);
                    let task = tokio::spawn(holding).abort_handle();
                    let also = HashMap::new();
                    let held = Held { server, uris: tell, in_place, instance, task, also };
                    state.held.insert(group, held);
                }
            }
        }
        let is_any = state.clients.values().any(|it| !it.wanted.is_empty());
        self.any.store(is_any, Ordering::Release);
        self.moved.send_replace(());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Where every wanted resource is, and who wants it.
    fn places(&self) -> impl Iterator<Item = (&Arc<Caller>, &Place)> {
        let wishes = self.clients.values().flat_map(|client| {
            client.wanted.values().map(|subscription| (&client.caller, subscription.place.as_ref()))
        });
        wishes.filter_map(|(caller, place)| Some((caller, place?)))
    }
}

/// Records in the audit which subscriptions began (`true`) or ended.
fn note(host: &dyn Host, caller: &Caller, moved: Vec<(bool, Place)>) {
    let Some(audit) = host.audit() else { return };
    for (is_on, place) in moved {
        audit.note_subscription(is_on, caller.name.as_deref(), &place.server, &place.uri);
    }
}

/// A resource, and what is in place at its server.
type InPlace = (Arc<str>, watch::Receiver<HashSet<Arc<str>>>);

/// The number of further instances after which ended ones are purged.
const ALSO: usize = 64;
/// How long a call waits for a subscription.
const SETTLED: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
