//! The readers of a session's streams: GET requests, resumed streams, and POSTs that are answered with events.

use std::task::Context;

use trunkline_proto::http::event::{EventId, Owed};
use trunkline_proto::http::streams::{Read, Reader};

use super::{GENERAL, Session};
use crate::clock::now;
use crate::handler::Handler;

impl<H: Handler> Session<H> {
    /// A reader of the general stream, for messages that belong to no request.
    pub(in crate::http) fn attach(&self) -> Reader {
        let mut state = self.lock();
        state.used = now();
        let reader = state.streams.attach();
        // The previous reader notices that it was replaced.
        state.wake(reader.via);
        reader
    }

    /// Whether this reader reads the general stream.
    pub(in crate::http) fn is_general(&self, reader: Reader) -> bool {
        reader.via == GENERAL
    }

    /// A reader for the events after `last_event`, if this session issued that id.
    pub(in crate::http) fn resume(&self, last_event: &str) -> Option<Reader> {
        let id = EventId::parse(last_event)?;
        let issued = EventId::issue(id.stream, id.place, &Owed::default(), |it| self.tags.tag(it));
        if issued != id {
            return None;
        }
        self.resume_verified(id)
    }

    /// The same for an id whose tag is verified.
    pub(in crate::http) fn resume_verified(&self, id: EventId) -> Option<Reader> {
        let mut state = self.lock();
        state.used = now();
        let reader = state.streams.resume(id)?;
        state.wake(reader.via);
        Some(reader)
    }

    /// Appends the events that the reader has not had. If there are none, registers its waker.
    pub(in crate::http) fn read(
        &self,
        reader: Reader,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Read {
        let mut state = self.lock();
        let was_congested = state.streams.is_congested();
        let read = state.streams.read(reader, now(), |it| self.tags.tag(it), out);
        if read == Read::Open && out.is_empty() {
            state.wake_later(reader.via, cx.waker());
        }
        drop(state);
        if was_congested {
            self.handle_commands();
        }
        read
    }

    pub(in crate::http) fn detach(&self, reader: Reader) {
        let mut state = self.lock();
        let was_congested = state.streams.is_congested();
        let now = now();
        state.used = now;
        if state.streams.detach(reader, now) {
            state.readers.retain(|(via, _)| *via != reader.via);
        }
        drop(state);
        // Senders that waited for this reader may continue.
        if was_congested {
            self.handle_commands();
        }
    }
}
