//! Tracks which revision every message we send speaks and which request it answers, and validates it
//! against that revision's schema.

use std::collections::HashMap;

use serde_json::Value;
use trunkline_testkit::oracle::{self, Side};
use trunkline_wire::model::meta;
use trunkline_wire::revision::{Era, Revision, Revisions};

/// One conversation's bookkeeping.
pub(crate) struct Audit {
    side: Side,
    ours: Revisions,
    /// Unanswered requests of the peer by id: the method, and whether the request named its own
    /// revision.
    owed: HashMap<String, Vec<(String, bool)>>,
    /// The revision each call was opened in.
    calls: HashMap<u64, Revision>,
}

impl Audit {
    pub(crate) fn new(side: Side, ours: Revisions) -> Self {
        Self { side, ours, owed: HashMap::new(), calls: HashMap::new() }
    }

    pub(crate) fn received(&mut self, text: &str) {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return };
        let one = [value.clone()];
        for message in value.as_array().map_or(&one[..], Vec::as_slice) {
            if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
                let claims = !self.ours.of_era(Era::Stateless).is_empty()
                    && message["params"]["_meta"].get(meta::PROTOCOL_VERSION).is_some();
                self.owed.entry(id.to_string()).or_default().push((method.to_owned(), claims));
            }
        }
    }

    pub(crate) fn called(&mut self, key: u64, revision: Revision) {
        self.calls.insert(key, revision);
    }

    /// Validates a message. `speaker` is the call during which it was sent, if any.
    #[track_caller]
    pub(crate) fn sent(&mut self, text: &str, in_force: Option<Revision>, speaker: Option<u64>) {
        let message: Value = serde_json::from_str(text).expect("we send JSON");
        let by_default = in_force.unwrap_or_else(|| self.presumed());
        let (revision, method) = match message["method"].as_str() {
            Some(method) => (self.spoken(method, &message["params"], speaker, by_default), None),
            None => {
                match message.get("id").and_then(|id| self.owed.get_mut(&id.to_string())?.pop()) {
                    Some((method, true)) => (Revision::LATEST, Some(method)),
                    Some((method, false)) => (by_default, Some(method)),
                    None => (by_default, None),
                }
            }
        };
        if let Err(why) = oracle::validate(text, revision, self.side, method.as_deref()) {
            panic!("{why}");
        }
    }

    /// Validates the responses to a batch, one by one and together.
    #[track_caller]
    pub(crate) fn sent_batch(&mut self, texts: &[String], in_force: Option<Revision>) {
        for text in texts {
            self.sent(text, in_force, None);
        }
        let revision = in_force.unwrap_or_else(|| self.presumed());
        let whole = format!("[{}]", texts.join(","));
        if let Err(why) = oracle::validate_batch(&whole, revision) {
            panic!("{why}");
        }
    }

    /// Before the handshake: the newest possible revision.
    fn presumed(&self) -> Revision {
        self.ours.of_era(Era::Stateful).newest().unwrap_or(Revision::LATEST)
    }

    fn spoken(
        &self,
        method: &str,
        params: &Value,
        speaker: Option<u64>,
        other: Revision,
    ) -> Revision {
        let meta = &params["_meta"];
        let named = |value: &Value| value.as_str().and_then(Revision::parse);
        let ends_stateless = || {
            let owed = self.owed.get(&params["requestId"].to_string());
            self.side == Side::Server
                && method == "notifications/cancelled"
                && owed.is_some_and(|it| it.iter().any(|(_, claims)| *claims))
        };
        if let Some(revision) = named(&meta[meta::PROTOCOL_VERSION]) {
            revision
        } else if meta.get(meta::SUBSCRIPTION_ID).is_some() || ends_stateless() {
            Revision::LATEST
        } else if method == "initialize" {
            named(&params["protocolVersion"]).expect("we name a revision we know")
        } else {
            speaker.and_then(|key| self.calls.get(&key).copied()).unwrap_or(other)
        }
    }
}
