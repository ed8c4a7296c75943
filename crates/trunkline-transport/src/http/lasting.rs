//! Sessions that outlive the process: the session id carries the sealed `initialize` parameters, so any
//! process with the key can restore the session.
//!
//! Later state (subscriptions, the log level) is not part of it, and calls in flight are lost.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::Extensions;
use trunkline_auth::seal::Sealer;
use trunkline_proto::http::Refusal;
use trunkline_proto::http::streams::Style;
use trunkline_wire::jsonrpc::{Incoming, Message, Params};

use super::budgets::principal;
use super::endpoint::{Endpoint, attached};
use super::session::Session;
use crate::handler::Handler;

/// Seals session ids, for all endpoints that share sessions.
pub struct Lasting {
    sealer: Sealer,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Hashes of the ids of ended sessions (tombstones), the oldest evicted first.
    ended: VecDeque<u64>,
}

impl Lasting {
    /// Endpoints with the same key share sessions.
    pub fn new(key: [u8; 32]) -> Self {
        Self { sealer: Sealer::new(&[key]), state: Mutex::default() }
    }

    /// Adds a tombstone for a session.
    pub(super) fn ended(&self, id: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.ended.len() >= MAX_TOMBSTONES {
            state.ended.pop_front();
        }
        state.ended.push_back(hash(id));
    }
}

impl std::fmt::Debug for Lasting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lasting").finish_non_exhaustive()
    }
}

impl<H: Handler> Endpoint<H> {
    /// The sealed id for a session that `incoming` opens, if it can be restored.
    pub(super) fn lasting_id(&self, incoming: &Incoming, caller: &Extensions) -> Option<String> {
        let lasting = self.settings.lasting.as_ref()?;
        let Incoming::One(Message::Request { params: Params::Object(params), .. }) = incoming
        else {
            return None;
        };
        let mut hello = params.clone();
        hello.take("_meta");
        let hello = hello.to_json();
        let fits = hello.get().len() <= MAX_HELLO;
        let until = SystemTime::now() + TTL;
        fits.then(|| lasting.sealer.seal(hello.get().as_bytes(), &self.context(caller), until))
    }

    /// Restores a session that another process opened.
    pub(super) fn restore(
        &self,
        id: &str,
        caller: &Extensions,
    ) -> Result<Option<Arc<Session<H>>>, Refusal> {
        let Some(lasting) = &self.settings.lasting else { return Ok(None) };
        let hello = lasting.sealer.open(id, &self.context(caller), SystemTime::now()).ok();
        let hello = hello.and_then(|it| String::from_utf8(it).ok());
        let Some(hello) = hello else { return Ok(None) };
        // Single-flight: of two concurrent requests, one restores the session and both use it.
        let state = lasting.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.ended.contains(&hash(id)) {
            return Ok(None);
        }
        if let Some(session) = self.sessions.get(id) {
            return Ok(Some(session));
        }
        let place = self.budgets.session(caller)?;
        let style = Style::Resumable { primed: false };
        let session = self.session_of(id.to_owned(), style, attached(caller));
        session.replay_handshake(&hello);
        if !session.is_open() {
            return Ok(None);
        }
        self.sessions.add(place, &session);
        session.begin();
        Ok(Some(session))
    }

    /// Binds a sealed id to its principal and endpoint.
    fn context(&self, caller: &Extensions) -> Vec<u8> {
        format!("trunkline session\0{}\0{}", self.settings.path, principal(caller)).into_bytes()
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// The handshake of a session, as its client sent it.
pub(super) fn handshake(hello: &str) -> [Incoming; 2] {
    let hello = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{hello}}}"#);
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    [Incoming::parse(hello.as_bytes()), Incoming::parse(ready.as_bytes())]
}

/// The longest `initialize` parameters that an id carries.
const MAX_HELLO: usize = 1536;
/// The TTL of a sealed id.
const TTL: Duration = Duration::from_secs(7 * 24 * 3600);
const MAX_TOMBSTONES: usize = 4096;
