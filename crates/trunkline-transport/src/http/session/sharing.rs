//! A session that another replica may take over: what it keeps for that one, and what it had from the last.

use std::sync::Arc;

use trunkline_proto::http::event::EventId;
use trunkline_proto::http::streams::{Kept, Reader};
use trunkline_proto::server::MessageEra;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Incoming;

use super::{Session, State};
use crate::clock::now;
use crate::handler::Handler;
use crate::http::replicas::{Replicas, SessionRecord};
use crate::http::shared_sessions::to_store;

/// What a session needs to be shared.
pub(in crate::http) struct Sharing {
    id: Arc<str>,
    replicas: Arc<dyn Replicas>,
    record: SessionRecord,
    /// The number after which POSTs are counted here, and where the general stream began here.
    began: (u64, u64),
}

impl Sharing {
    pub(in crate::http) fn new(replicas: Arc<dyn Replicas>, record: SessionRecord) -> Self {
        Self { id: "".into(), replicas, record, began: (0, 0) }
    }

    /// Goes on after another replica: POSTs are counted after `posts`, and the general stream begins at
    /// `general`.
    pub(in crate::http) fn after(mut self, posts: u64, general: u64) -> Self {
        self.began = (posts, general);
        self
    }
}

impl<H: Handler> Session<H> {
    /// From now on another replica can take the session over.
    pub(in crate::http) fn share(&self, sharing: Sharing) {
        let mut state = self.lock();
        let (posts, general) = sharing.began;
        if general > 0 {
            state.streams.go_on_after(posts, general);
        }
        state.streams.keep_events();
        state.sharing = Some(Box::new(Sharing { id: Arc::clone(&self.id), ..sharing }));
    }

    /// Writes the record, if the client has chosen another level or other subscriptions.
    pub(in crate::http) fn update_record(&self) {
        let mut state = self.lock();
        let (level, subscriptions) = state.core.conversation.session_choices();
        let level = level.and_then(|it| Json::of(&it).as_text().map(|it| it.into_owned()));
        let Some(sharing) = &mut state.sharing else { return };
        let record = SessionRecord { level, subscriptions, ..sharing.record.clone() };
        if record != sharing.record {
            sharing.record = record;
            sharing.replicas.update(&self.id, sharing.record.clone());
        }
    }

    /// Replays what the client has chosen at another replica. The handler hears of subscriptions as it did
    /// there.
    pub(in crate::http) fn replay_choices(&self, level: Option<&str>, subscriptions: &[String]) {
        let level = level.map(|it| ("logging/setLevel", "level", it));
        let uris = subscriptions.iter().map(|it| ("resources/subscribe", "uri", it.as_str()));
        for (method, name, value) in level.into_iter().chain(uris) {
            let value = Json::string(value);
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":{{"{name}":{value}}}}}"#
            );
            let todo = {
                let mut state = self.lock();
                // Nobody reads this stream: the client has had the answer.
                let (via, incoming) = (state.streams.next_via(), Incoming::parse(text.as_bytes()));
                state.core.conversation.receive(incoming, via, MessageEra::Stateful, now());
                state.act(true, now());
                state.core.handlers.take_todo()
            };
            self.perform(todo);
        }
    }

    /// Whether an earlier owner sent this event.
    pub(in crate::http) fn began_after(&self, id: EventId) -> bool {
        let state = self.lock();
        let Some((posts, general)) = state.sharing.as_ref().map(|it| it.began) else {
            return false;
        };
        match id.stream {
            _ if general == 0 => false,
            0 => id.place < general,
            stream => stream <= posts || stream > state.streams.newest_via().0,
        }
    }

    /// A reader of the general stream from where it began here.
    pub(in crate::http) fn attach_at_beginning(&self) -> Reader {
        let began = self.lock().sharing.as_ref().map_or(0, |it| it.began.1);
        let before = EventId { stream: 0, place: began.saturating_sub(1), tag: 0 };
        self.resume_verified(before).unwrap_or_else(|| self.attach())
    }

    /// Takes over the events of a stream that ended with its owner. Those after the first `known` are new.
    pub(in crate::http) fn adopt(&self, stream: u64, events: Vec<Kept>, known: usize) {
        let mut state = self.lock();
        let new = events[known..].to_vec();
        if state.streams.adopt(stream, events, now())
            && let Some(sharing) = &state.sharing
        {
            new.into_iter().for_each(|it| sharing.replicas.keep(&self.id, to_store(it)));
        }
    }

    /// Whether somebody waits for what it says. To ask whether it may be answered counts as use.
    pub(in crate::http) fn has_readers(&self) -> bool {
        !self.lock().readers.is_empty()
    }

    /// Makes every reader look again whether this replica may answer.
    pub(in crate::http) fn wake_readers(&self) {
        let readers = std::mem::take(&mut self.lock().readers);
        readers.into_iter().for_each(|(_, reader)| reader.wake());
    }
}

impl State {
    /// Hands on the events that a client can resume after.
    pub(super) fn keep_events(&mut self) {
        let Some(sharing) = &self.sharing else { return };
        let kept = self.streams.take_kept();
        // What another owner has written is not overwritten.
        if !kept.is_empty() && sharing.replicas.may_answer(&sharing.id) {
            kept.into_iter().for_each(|it| sharing.replicas.keep(&sharing.id, to_store(it)));
        }
    }
}
