//! What passes between a client and a server → the lines of a recording.
//!
//! ```
//! use trunkline_recording::line::Party;
//! use trunkline_recording::recorder::Recorder;
//! use trunkline_recording::redact::Redactor;
//!
//! let mut recorder = Recorder::new(Redactor::new(["key".to_owned()], []), None);
//! let mut out = Vec::new();
//! let said = br#"{"jsonrpc":"2.0","method":"x","params":{"key":"k"}}"#;
//! recorder.bytes(Party::Client, said, 5, &mut out);
//! recorder.bytes(Party::Client, b"\n", 6, &mut out);
//! let line = r#"{"v":1,"t":6,"side":"client","dir":"in","message":{"jsonrpc":"2.0","method":"x","params":{"key":"***"}}}"#;
//! assert_eq!(String::from_utf8(out).unwrap(), format!("{line}\n"));
//! ```

use std::collections::HashMap;

use trunkline_wire::frame::{Decoder, Frame};
use trunkline_wire::json::Json;
use trunkline_wire::model::meta;

use crate::line::{Begin, HttpHead, Line, Note, Party};
use crate::redact::Redactor;
use crate::tree::Tree;

/// Writes a recording. What it appends to `out` goes to the file before the bytes go on, so that a request always
/// stands before its answer.
#[derive(Debug)]
pub struct Recorder {
    redactor: Redactor,
    /// How many bytes the file may still take.
    room: Option<u64>,
    dropped: (u64, u64),
    from_client: Decoder,
    from_server: Decoder,
    sessions: Sessions,
    revisions: HashMap<u32, String>,
}

/// Where a message was seen over HTTP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The conversation.
    pub session: Option<u32>,
    /// The request or response.
    pub stream: Option<u32>,
}

/// Which conversation an HTTP request belongs to. Session ids are secrets, so a recording counts sessions.
#[derive(Debug)]
struct Sessions {
    known: HashMap<String, u32>,
    /// The conversation of requests without a session id, once there is one.
    unnamed: Option<u32>,
    last: u32,
}

impl Sessions {
    /// Whether there is room for this id.
    fn may_know(&self, id: &str) -> bool {
        self.known.len() < MOST_SESSIONS || self.known.contains_key(id)
    }
}

impl Recorder {
    /// A recorder whose file may take `max` more bytes.
    pub fn new(redactor: Redactor, max: Option<u64>) -> Self {
        Self {
            redactor,
            room: max,
            dropped: (0, 0),
            from_client: Decoder::detect(LONGEST),
            from_server: Decoder::detect(LONGEST),
            sessions: Sessions { known: HashMap::new(), unnamed: None, last: 0 },
            revisions: HashMap::new(),
        }
    }

    /// A run begins.
    pub fn begin(&mut self, mut begin: Begin, now: u64, out: &mut Vec<u8>) {
        begin.server = self.redactor.text(&begin.server).into_owned();
        self.put(&Line { recording: Some(begin), ..Line::at(now) }, out);
    }

    /// Bytes of a stdio conversation, in whatever pieces they come.
    pub fn bytes(&mut self, by: Party, chunk: &[u8], now: u64, out: &mut Vec<u8>) {
        self.decoder(by).push(chunk);
        while let Some(text) = self.decoder(by).next().map(owned) {
            self.text(by, text, now, out);
        }
    }

    /// One end of a stdio conversation has closed its stream.
    pub fn ended(&mut self, by: Party, now: u64, out: &mut Vec<u8>) {
        if let Some(text) = self.decoder(by).finish().map(owned) {
            self.text(by, text, now, out);
        }
        self.put(&Line { note: Some(Note::Ended), ..Line::at(now).from(by) }, out);
    }

    /// The conversation that an HTTP request belongs to: that of its session id, or a new one if it opens one.
    pub fn session(&mut self, id: Option<&str>, body: &[u8]) -> u32 {
        let sessions = &mut self.sessions;
        if let Some(id) = id.filter(|it| sessions.may_know(it)) {
            let next = sessions.last + 1;
            let session = *sessions.known.entry(id.to_owned()).or_insert(next);
            sessions.last = sessions.last.max(session);
            return session;
        }
        let opens = std::str::from_utf8(body).ok().and_then(|it| Tree::parse(it).ok());
        let opens =
            opens.is_some_and(|it| it.get("method").and_then(Tree::as_text) == Some("initialize"));
        let next = sessions.last + 1;
        let session = if opens { next } else { *sessions.unnamed.get_or_insert(next) };
        sessions.last = sessions.last.max(session);
        session
    }

    /// The server has answered a request that opens a session, with or without an id for it.
    pub fn opened(&mut self, session: u32, id: Option<&str>) {
        match id {
            Some(id) if self.sessions.may_know(id) => {
                self.sessions.known.insert(id.to_owned(), session);
            }
            Some(_) => {}
            None => self.sessions.unnamed = Some(session),
        }
    }

    /// The head of an HTTP request or response.
    pub fn head<'h>(
        &mut self,
        by: Party,
        place: Place,
        mut head: HttpHead,
        fields: impl IntoIterator<Item = (&'h str, &'h str)>,
        now: u64,
        out: &mut Vec<u8>,
    ) {
        for (name, value) in fields {
            let value = self.redactor.header(name, value).into_owned();
            head.headers.insert(name.to_ascii_lowercase(), value);
        }
        let Place { session, stream } = place;
        self.put(&Line { session, stream, http: Some(head), ..Line::at(now).from(by) }, out);
    }

    /// One text of an HTTP body: a message or a batch.
    pub fn message(&mut self, by: Party, place: Place, text: &[u8], now: u64, out: &mut Vec<u8>) {
        let Place { session, stream } = place;
        let key = session.unwrap_or(1);
        let parsed = std::str::from_utf8(text).ok().and_then(|it| Json::parse(it).ok());
        let parsed = parsed.filter(|it| it.get().starts_with(['{', '[']));
        let Some(mut message) = parsed else {
            let note = Note::Unreadable { bytes: text.len() as u64 };
            let line = Line { session, stream, note: Some(note), ..Line::at(now).from(by) };
            return self.put(&line, out);
        };
        let mut tree = Tree::of(&message);
        self.notice_revision(key, &tree);
        if self.redactor.redact(by, key, &mut tree) {
            message = tree.to_json();
        }
        let revision = self.revisions.get(&key).cloned();
        let message = Some(message);
        self.put(&Line { session, stream, revision, message, ..Line::at(now).from(by) }, out);
    }

    /// The client has closed a response before its end.
    pub fn left(&mut self, place: Place, now: u64, out: &mut Vec<u8>) {
        let Place { session, stream } = place;
        let note = Some(Note::Ended);
        self.put(&Line { session, stream, note, ..Line::at(now).from(Party::Client) }, out);
    }

    /// The recording ends: what was dropped, and how the server's process ended.
    pub fn finish(&mut self, exited: Option<Note>, now: u64, out: &mut Vec<u8>) {
        let (messages, bytes) = self.dropped;
        if messages > 0 {
            // There is always room for it; see `RESERVE`.
            let note = Some(Note::Dropped { messages, bytes });
            Line { note, ..Line::at(now) }.write(out);
        }
        if let Some(note) = exited {
            self.put(&Line { note: Some(note), ..Line::at(now) }, out);
        }
    }

    /// How many messages did not fit.
    pub fn dropped(&self) -> u64 {
        self.dropped.0
    }

    fn text(&mut self, by: Party, text: Result<Vec<u8>, u64>, now: u64, out: &mut Vec<u8>) {
        match text {
            Ok(text) => self.message(by, Place::default(), &text, now, out),
            Err(bytes) => {
                let note = Some(Note::Unreadable { bytes });
                self.put(&Line { note, ..Line::at(now).from(by) }, out);
            }
        }
    }

    fn decoder(&mut self, by: Party) -> &mut Decoder {
        match by {
            Party::Client => &mut self.from_client,
            Party::Server => &mut self.from_server,
        }
    }

    /// The revision that a request of 2026-07-28 names, or that `initialize` agreed on.
    fn notice_revision(&mut self, session: u32, message: &Tree) {
        let named = message.at(&["params", "_meta", meta::PROTOCOL_VERSION]);
        let agreed = message.at(&["result", "protocolVersion"]);
        if let Some(revision) = named.or(agreed).and_then(Tree::as_text)
            && revision.len() <= LONGEST_REVISION
        {
            self.revisions.insert(session, revision.to_owned());
        }
    }

    /// Appends a line if there is room. From the first that does not fit on nothing more is written: a recording with
    /// holes would mislead.
    fn put(&mut self, line: &Line, out: &mut Vec<u8>) {
        let start = out.len();
        line.write(out);
        let size = (out.len() - start) as u64;
        let Some(room) = &mut self.room else { return };
        if self.dropped.0 == 0 && size + RESERVE <= *room {
            *room -= size;
            return;
        }
        out.truncate(start);
        if line.message.is_some() {
            let is_first = self.dropped.0 == 0;
            self.dropped = (self.dropped.0 + 1, self.dropped.1 + size);
            if is_first && *room >= RESERVE {
                let note = Some(Note::Dropped { messages: 1, bytes: size });
                Line { note, ..Line::at(line.t) }.write(out);
            }
        }
    }
}

/// A text of its own, or the size of one that was too long.
fn owned(frame: Frame<'_>) -> Result<Vec<u8>, u64> {
    match frame {
        Frame::Text(text) => Ok(text.to_vec()),
        _ => Err(LONGEST as u64),
    }
}

/// The longest message that is recorded.
const LONGEST: usize = 64 << 20;
const LONGEST_REVISION: usize = 32;
/// How many sessions are told apart; later ones are recorded as one.
const MOST_SESSIONS: usize = 10_000;
/// Room for two notes about what was dropped.
const RESERVE: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

    fn recorder(max: Option<u64>) -> Recorder {
        Recorder::new(Redactor::default(), max)
    }

    #[test]
    fn what_does_not_fit_is_counted_and_nothing_follows_it() {
        let (mut recorder, mut out) = (recorder(Some(500)), Vec::new());
        for _ in 0..10 {
            recorder.bytes(Party::Client, PING, 1, &mut out);
        }
        recorder.finish(None, 2, &mut out);
        assert!(out.len() <= 500, "{}", out.len());
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.iter().filter(|it| it.contains("ping")).count(), 2, "{text}");
        assert!(lines[2].contains(r#""note":{"what":"dropped","messages":1,"#), "{text}");
        assert!(lines[3].contains(r#""messages":8,"#), "{text}");
        let read = crate::recording::Recording::read(&text).unwrap();
        assert_eq!((read.dropped, read.conversations[0].said.len()), (8, 2));
    }

    #[test]
    fn what_is_no_message_is_noted_and_not_written() {
        let (mut recorder, mut out) = (recorder(None), Vec::new());
        recorder.bytes(Party::Server, b"Listening with key hunter2\n", 1, &mut out);
        recorder.bytes(Party::Server, b"3\n", 1, &mut out);
        recorder.bytes(Party::Server, &PING[..20], 1, &mut out);
        recorder.ended(Party::Server, 2, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("hunter2"));
        assert_eq!(text.matches("unreadable").count(), 3, "{text}");
        assert!(
            text.contains(r#""bytes":26"#) && text.ends_with("\"note\":{\"what\":\"ended\"}}\n")
        );
    }

    #[test]
    fn sessions_are_counted_and_their_ids_are_not_written() {
        let mut recorder = recorder(None);
        let open = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        assert_eq!(recorder.session(None, open), 1);
        assert_eq!(recorder.session(None, PING), 2, "2026-07-28 has no sessions");
        assert_eq!(recorder.session(None, open), 3);
        recorder.opened(3, Some("b"));
        recorder.opened(1, Some("a"));
        assert_eq!(recorder.session(None, PING), 2);
        assert_eq!(recorder.session(Some("a"), PING), 1);
        assert_eq!(recorder.session(Some("b"), PING), 3);
        assert_eq!(recorder.session(Some("older"), PING), 4);
        recorder.opened(4, None);
        assert_eq!(recorder.session(None, PING), 4, "the server gives no ids");
    }

    #[test]
    fn the_revision_is_told_once_it_is_known() {
        let (mut recorder, mut out) = (recorder(None), Vec::new());
        let agreed =
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}\n";
        recorder.bytes(Party::Client, PING, 1, &mut out);
        recorder.bytes(Party::Server, agreed, 1, &mut out);
        recorder.bytes(Party::Client, PING, 1, &mut out);
        let text = String::from_utf8(out).unwrap();
        let told: Vec<_> =
            text.lines().map(|it| it.contains(r#""revision":"2025-11-25""#)).collect();
        assert_eq!(told, [false, true, true]);
    }
}
