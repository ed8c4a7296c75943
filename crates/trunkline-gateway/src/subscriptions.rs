//! Who wants to hear of which resource ⇄ what is subscribed to at the servers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use trunkline_proto::{Change, Heard};
use trunkline_transport::voice::Voice;
use trunkline_wire::model::SubscriptionFilter;

use crate::face::{Selector, View};
use crate::gateway::Shared;
use crate::hold;

/// All subscriptions.
#[derive(Default)]
pub(crate) struct Subscriptions {
    state: Mutex<State>,
    /// Whether there are any.
    any: AtomicBool,
    /// How many clients want what has not been found yet.
    seeking: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    /// What each conversation wants: the URI as it was shown, and where that is.
    wanted: HashMap<u64, HashMap<String, Place>>,
    /// What is subscribed to at each server, and the task that sees to it.
    held: BTreeMap<Arc<str>, Held>,
    /// What each conversation wants of servers that have not said what they offer.
    sought: HashMap<u64, HashSet<String>>,
}

/// A resource at a server.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    server: Arc<str>,
    uri: Arc<str>,
}

struct Held {
    uris: watch::Sender<HashSet<Arc<str>>>,
    /// Those that the server has agreed to.
    in_place: watch::Receiver<HashSet<Arc<str>>>,
    task: AbortHandle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Subscriptions {
    /// A client told us what it wants to hear of.
    pub(crate) fn heard(
        &self,
        shared: &Arc<Shared>,
        view: &Arc<View>,
        heard: Heard,
        voice: &Voice,
    ) {
        let uri = || heard.params.get("uri").and_then(|it| it.to::<String>().ok());
        match heard.method {
            "resources/subscribe" => {
                if let Some(uri) = uri() {
                    self.want(shared, view, voice.number(), uri);
                }
            }
            "resources/unsubscribe" => {
                if let Some(uri) = uri() {
                    self.change(shared, |state| {
                        if let Some(wanted) = state.wanted.get_mut(&voice.number()) {
                            wanted.remove(&uri);
                        }
                        if let Some(sought) = state.sought.get_mut(&voice.number()) {
                            sought.remove(&uri);
                        }
                    });
                }
            }
            "subscriptions/listen" => {
                let filter = heard.params.get("notifications");
                let filter = filter.and_then(|it| it.to::<SubscriptionFilter>().ok());
                for uri in filter.map(|it| it.resource_subscriptions).unwrap_or_default() {
                    self.want(shared, view, voice.number(), uri);
                }
            }
            _ => {}
        }
    }

    /// Whether anybody wants to hear of anything.
    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Waits a while until what is wanted of a server is in place there: whoever has subscribed and
    /// then calls does not miss what the call changes.
    pub(crate) async fn settled(&self, server: &str) {
        let mut seeking = self.seeking.subscribe();
        let _ = tokio::time::timeout(SETTLED, seeking.wait_for(|it| *it == 0)).await;
        let pending = {
            let state = self.lock();
            state.held.get(server).and_then(|it| {
                let wanted = it.uris.borrow().clone();
                let is_there = wanted.is_subset(&it.in_place.borrow());
                (!is_there).then(|| (wanted, it.in_place.clone()))
            })
        };
        if let Some((wanted, mut in_place)) = pending {
            let there = in_place.wait_for(|it| wanted.is_subset(it));
            let _ = tokio::time::timeout(SETTLED, there).await;
        }
    }

    /// A client is gone.
    pub(crate) fn left(&self, shared: &Shared, conversation: u64) {
        let has_any = {
            let state = self.lock();
            state.wanted.contains_key(&conversation) || state.sought.contains_key(&conversation)
        };
        if has_any {
            self.change(shared, |state| {
                state.wanted.remove(&conversation);
                state.sought.remove(&conversation);
            });
        }
    }

    /// A server says that a resource of its changed.
    pub(crate) fn updated(&self, shared: &Shared, server: &str, uri: &str) {
        let shown: HashSet<String> = {
            let state = self.lock();
            let all = state.wanted.values().flatten();
            let here = all.filter(|(_, place)| *place.server == *server);
            let meant = here.filter(|(_, place)| {
                *place.uri == *uri || trunkline_proto::subscribe::covers(&place.uri, uri)
            });
            // A part of what was subscribed to is told under its own name, as the server would.
            meant
                .map(|(shown, place)| match *place.uri == *uri {
                    true => shown.clone(),
                    false => format!("{shown}{}", uri.strip_prefix(&*place.uri).unwrap_or("")),
                })
                .collect()
        };
        for shown in shown {
            shared.listeners.tell(&Change::Resource(shown), |_| true);
        }
    }

    /// A server was away: whatever was subscribed to there may have changed.
    pub(crate) fn all_updated(&self, shared: &Shared, server: &str) {
        let uris: HashSet<Arc<str>> = {
            let state = self.lock();
            let all = state.wanted.values().flat_map(HashMap::values);
            all.filter(|it| *it.server == *server).map(|it| Arc::clone(&it.uri)).collect()
        };
        for uri in uris {
            self.updated(shared, server, &uri);
        }
    }

    fn want(&self, shared: &Arc<Shared>, view: &Arc<View>, conversation: u64, uri: String) {
        match place(shared, view, &uri) {
            Some(place) => self.change(shared, |state| {
                state.wanted.entry(conversation).or_default().insert(uri, place);
            }),
            None if !shared.is_complete(&shared.world(), view) => {
                self.seek(shared, view, conversation, uri);
            }
            None => {}
        }
    }

    /// Has the servers say what they offer, to know which of them is meant.
    fn seek(&self, shared: &Arc<Shared>, view: &Arc<View>, conversation: u64, uri: String) {
        self.change(shared, |state| {
            state.sought.entry(conversation).or_default().insert(uri.clone());
        });
        let (shared, view) = (Arc::clone(shared), Arc::clone(view));
        tokio::spawn(async move {
            shared.complete(&shared.world(), &view).await;
            let place = place(&shared, &view, &uri);
            shared.subscriptions.change(&shared, |state| {
                let sought = state.sought.get_mut(&conversation);
                let is_wanted = sought.is_some_and(|it| it.remove(&uri));
                if let (true, Some(place)) = (is_wanted, place) {
                    state.wanted.entry(conversation).or_default().insert(uri, place);
                }
            });
        });
    }

    /// Changes what is wanted, and has the servers follow.
    fn change(&self, shared: &Shared, change: impl FnOnce(&mut State)) {
        let world = shared.world();
        let mut state = self.lock();
        change(&mut state);
        state.wanted.retain(|_, wanted| !wanted.is_empty());
        state.sought.retain(|_, sought| !sought.is_empty());
        let mut needed: BTreeMap<Arc<str>, HashSet<Arc<str>>> = BTreeMap::new();
        for place in state.wanted.values().flat_map(HashMap::values) {
            needed.entry(Arc::clone(&place.server)).or_default().insert(Arc::clone(&place.uri));
        }
        state.held.retain(|server, _| needed.contains_key(server));
        for (name, uris) in needed {
            match state.held.get(&name) {
                Some(held) => {
                    held.uris.send_if_modified(|now| {
                        let is_new = *now != uris;
                        *now = uris;
                        is_new
                    });
                }
                None => {
                    let Some(server) = world.servers.get(&*name) else { continue };
                    let (tell, told) = watch::channel(uris);
                    let (done, in_place) = watch::channel(HashSet::new());
                    let holding = hold::hold(shared.weak(), Arc::downgrade(server), told, done);
                    let task = tokio::spawn(holding).abort_handle();
                    state.held.insert(name, Held { uris: tell, in_place, task });
                }
            }
        }
        let is_any = !state.held.is_empty() || !state.sought.is_empty();
        self.any.store(is_any, Ordering::Release);
        self.seeking.send_replace(state.sought.len());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a resource is, as far as that is known.
fn place(shared: &Shared, view: &View, uri: &str) -> Option<Place> {
    let index = view.index(shared);
    if let Some(target) = index.resource(uri) {
        return Some(Place { server: target.server, uri: target.name });
    }
    let server = match &view.selector {
        Selector::Server(name) => Arc::from(name.as_str()),
        _ => index.candidates(uri).into_iter().next()?,
    };
    Some(Place { server, uri: Arc::from(uri) })
}

/// How long a call waits for a subscription.
const SETTLED: Duration = Duration::from_secs(2);
