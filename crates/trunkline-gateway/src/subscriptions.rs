//! Who wants to hear of which resource ⇄ what is subscribed to at the servers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::AbortHandle;
use trunkline_proto::{Change, Heard};
use trunkline_transport::voice::Voice;
use trunkline_wire::model::SubscriptionFilter;

use crate::face::View;
use crate::gateway::Shared;
use crate::hold;

/// All subscriptions.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    /// What each conversation wants: the URI as it was shown, and where that is.
    wanted: HashMap<u64, HashMap<String, Place>>,
    /// What is subscribed to at each server, and the task that sees to it.
    held: BTreeMap<Arc<str>, Held>,
}

/// A resource at a server.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    server: Arc<str>,
    uri: Arc<str>,
}

struct Held {
    uris: tokio::sync::watch::Sender<HashSet<Arc<str>>>,
    task: AbortHandle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Subscriptions {
    /// A client told us what it wants to hear of.
    pub(crate) fn heard(&self, shared: &Arc<Shared>, view: &View, heard: Heard, voice: &Voice) {
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

    /// A client is gone.
    pub(crate) fn left(&self, shared: &Shared, conversation: u64) {
        let has_any = self.lock().wanted.contains_key(&conversation);
        if has_any {
            self.change(shared, |state| drop(state.wanted.remove(&conversation)));
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

    fn want(&self, shared: &Arc<Shared>, view: &View, conversation: u64, uri: String) {
        let index = view.index(shared);
        let target = index.resource(&uri);
        let place = match target {
            Some(target) => Place { server: target.server, uri: target.name },
            None => {
                let Some(server) = index.candidates(&uri).into_iter().next() else { return };
                Place { server, uri: Arc::from(uri.as_str()) }
            }
        };
        self.change(shared, |state| {
            state.wanted.entry(conversation).or_default().insert(uri, place);
        });
    }

    /// Changes what is wanted, and has the servers follow.
    fn change(&self, shared: &Shared, change: impl FnOnce(&mut State)) {
        let world = shared.world();
        let mut state = self.lock();
        change(&mut state);
        state.wanted.retain(|_, wanted| !wanted.is_empty());
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
                    let (tell, told) = tokio::sync::watch::channel(uris);
                    let holding = hold::hold(shared.weak(), Arc::downgrade(server), told);
                    let task = tokio::spawn(holding).abort_handle();
                    state.held.insert(name, Held { uris: tell, task });
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
