//! One line of a recording ⇄ its text. The format is documented in `docs/recordings.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trunkline_wire::json::Json;

/// The version of the format that is written here, and the newest that is read.
pub const VERSION: u32 = 1;

/// One line. Readers ignore members that they do not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// The version of the format.
    pub v: u32,
    /// When it was seen, in milliseconds since 1970.
    pub t: u64,
    /// Which link it was seen on: the one to the client, or the one to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// Whether the recorder received it or sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<Direction>,
    /// Which conversation of the run it belongs to, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u32>,
    /// Which HTTP request it came with, or which response it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// The revision of the message, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The call that it belongs to, if a gateway recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Who made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The server of the gateway that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The instance of that server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<u64>,
    /// What was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Json>,
    /// The head of an HTTP request or response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpHead>,
    /// A run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Begin>,
    /// Something that is not a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// A link of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Side {
    Client,
    Server,
}

/// The direction on a link, as the recorder sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Direction {
    In,
    Out,
}

/// One of the two ends of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Party {
    Client,
    Server,
}

impl Party {
    /// Who spoke, on this link in this direction.
    pub fn of(side: Side, direction: Direction) -> Self {
        match (side, direction) {
            (Side::Client, Direction::In) | (Side::Server, Direction::Out) => Self::Client,
            (Side::Client, Direction::Out) | (Side::Server, Direction::In) => Self::Server,
        }
    }

    /// The direction of its messages on the link to the client.
    pub fn direction(self) -> Direction {
        match self {
            Self::Client => Direction::In,
            Self::Server => Direction::Out,
        }
    }
}

/// The first line of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// When, as RFC 3339 writes it.
    #[serde(default)]
    pub at: String,
    /// What wrote it.
    #[serde(default)]
    pub by: String,
    /// `stdio` or `http`.
    #[serde(default)]
    pub transport: String,
    /// The program, or the URL without its query.
    #[serde(default)]
    pub server: String,
}

/// The head of an HTTP request or response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpHead {
    /// The method of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The status of a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The fields; the values of those that may be secret are masked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// Something that is not a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "what")]
#[non_exhaustive]
pub enum Note {
    /// The recording has reached its bound: these messages are not in it.
    Dropped {
        /// How many messages, up to here.
        messages: u64,
        /// How many bytes their lines would have taken.
        bytes: u64,
    },
    /// Bytes that are no message. They may hold anything, so they are not written.
    Unreadable {
        /// How many bytes.
        bytes: u64,
    },
    /// This party says nothing more; with a `stream`, the client has closed that response before its end.
    Ended,
    /// The server's process has exited.
    Exited {
        /// With this code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// By this signal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
}

impl Line {
    /// A line without content.
    pub fn at(now: u64) -> Self {
        Self { v: VERSION, t: now, ..Self::default() }
    }

    /// The same line, said by `party` on the link to the client.
    #[must_use]
    pub fn from(mut self, party: Party) -> Self {
        self.side = Some(Side::Client);
        self.dir = Some(party.direction());
        self
    }

    /// Who said it.
    pub fn party(&self) -> Option<Party> {
        Some(Party::of(self.side?, self.dir?))
    }

    /// Appends the line and its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        serde_json::to_writer(&mut *out, self).expect("a line is writable as JSON");
        // A message that was carried unparsed may contain line breaks, but only between tokens.
        trunkline_wire::frame::flatten(&mut out[start..]);
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let message = Json::parse("{\"jsonrpc\":\"2.0\",\n\"id\":1.0e0}").unwrap();
        let line = Line { message: Some(message), session: Some(1), ..Line::at(7) };
        let mut out = Vec::new();
        line.from(Party::Client).write(&mut out);
        let text = String::from_utf8(out).unwrap();
        let expected = r#"{"v":1,"t":7,"side":"client","dir":"in","session":1,"message":{"jsonrpc":"2.0", "id":1.0e0}}"#;
        assert_eq!(text, format!("{expected}\n"));
        let read: Line = serde_json::from_str(&text).unwrap();
        assert_eq!(read.party(), Some(Party::Client));
        assert_eq!(read.message.unwrap().get(), r#"{"jsonrpc":"2.0", "id":1.0e0}"#);
    }

    #[test]
    fn members_of_later_versions_are_ignored_and_notes_are_read() {
        let text = r#"{"v":1,"t":1,"call":"c7","principal":"ada","later":{},"note":{"what":"dropped","messages":2,"bytes":9}}"#;
        let line: Line = serde_json::from_str(text).unwrap();
        assert_eq!(line.note, Some(Note::Dropped { messages: 2, bytes: 9 }));
        assert_eq!((line.call.as_deref(), line.principal.as_deref()), (Some("c7"), Some("ada")));
        assert_eq!(line.party(), None);
    }
}
