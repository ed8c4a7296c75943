//! One process of the fake server: what it remembers, and what it tells on its own account.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::Options;
use crate::journal::Journal;
use crate::out;

/// One process of the fake server.
pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) journal: Journal,
    state: Mutex<State>,
    counter: AtomicU64,
    /// Whether a client sent `initialize` that could do without.
    has_session: AtomicBool,
}

/// What is remembered between messages.
#[derive(Default)]
pub(crate) struct State {
    /// What the client of the handshake can be asked.
    pub(crate) capabilities: Value,
    /// The cancelled requests, by their ids as JSON.
    pub(crate) cancelled: HashSet<String>,
    /// The open `subscriptions/listen`: id and filter.
    pub(crate) listens: Vec<(Value, Value)>,
    /// The resources subscribed to.
    pub(crate) subscribed: HashSet<String>,
    /// Our own requests that the client has not answered.
    pub(crate) asked: HashMap<u64, Sender<Value>>,
    pub(crate) next_ask: u64,
    /// What calls of `gossip` have left to be said with the next call.
    pub(crate) left: Vec<Left>,
    /// The roots that were last told, where it asked for them by itself; and the question for others.
    pub(crate) roots: Option<Value>,
    pub(crate) keeps: Option<u64>,
}

/// What a call of `gossip` left to be said with the next one.
pub(crate) struct Left {
    pub(crate) text: String,
    pub(crate) token: Value,
    pub(crate) what: Vec<String>,
}

impl Server {
    /// A server that has heard nothing yet.
    pub(crate) fn new(options: Options, journal: Journal) -> Server {
        let (counter, has_session) = (AtomicU64::new(0), AtomicBool::new(false));
        Server { options, journal, state: Mutex::default(), counter, has_session }
    }

    /// Whether each request carries its own envelope.
    pub(crate) fn is_stateless(&self) -> bool {
        self.options.is_stateless() && !self.has_session.load(Ordering::Relaxed)
    }

    /// The revision that is spoken.
    pub(crate) fn revision(&self) -> &str {
        let also = self.options.also.as_ref().filter(|_| self.has_session.load(Ordering::Relaxed));
        also.unwrap_or(&self.options.revision)
    }

    /// Records that a client sent `initialize` that could do without.
    pub(crate) fn opens_session(&self) {
        self.has_session.store(true, Ordering::Relaxed);
    }

    /// The next value of the counter, the first being 1.
    pub(crate) fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What is remembered; held for lines only.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Answers a request, unless it was cancelled.
    pub(crate) fn finish(&self, id: &Value, outcome: Result<Value, Value>) {
        if self.state().cancelled.remove(&id.to_string()) {
            return self.journal.write("abandoned", json!({ "id": id }));
        }
        self.journal.write("answer", json!({ "id": id, "ok": outcome.is_ok() }));
        out::answer(id, outcome.map(|result| self.dressed(result)));
    }

    /// Notifies listeners that the list of tools has changed.
    pub(crate) fn tools_changed(&self) {
        self.tell("notifications/tools/list_changed", json!({}), |filter| {
            filter["toolsListChanged"] == true
        });
    }

    /// Notifies subscribers that a resource has changed.
    pub(crate) fn resource_updated(&self, uri: &str) {
        if !self.is_stateless() && !self.state().subscribed.contains(uri) {
            return;
        }
        self.tell("notifications/resources/updated", json!({ "uri": uri }), |filter| {
            let uris = filter["resourceSubscriptions"].as_array();
            uris.is_some_and(|uris| uris.iter().any(|it| it == uri))
        });
    }

    fn tell(&self, method: &str, params: Value, wants: impl Fn(&Value) -> bool) {
        if !self.is_stateless() {
            return out::notify(method, params);
        }
        for (id, _) in self.state().listens.iter().filter(|(_, filter)| wants(filter)) {
            let mut params = params.clone();
            params["_meta"] = json!({ SUBSCRIPTION: id });
            out::notify(method, params);
        }
    }

    /// What the server is called.
    pub(crate) fn info(&self) -> Value {
        json!({ "name": self.options.name, "version": "1.0.0" })
    }

    /// A result with what 2026-07-28 wants on every one of them.
    fn dressed(&self, mut result: Value) -> Value {
        if self.is_stateless() {
            if result["resultType"].is_null() {
                result["resultType"] = "complete".into();
            }
            result["_meta"]["io.modelcontextprotocol/serverInfo"] = self.info();
        }
        result
    }
}

pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
