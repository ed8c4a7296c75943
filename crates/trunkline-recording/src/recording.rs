//! The text of a recording → its conversations, or the line that cannot be read.

use std::collections::BTreeMap;
use std::fmt;

use trunkline_wire::jsonrpc::{Incoming, Message};

use crate::line::{Begin, Direction, Line, Note, Party, Side, VERSION};

/// A recording that has been read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The runs that it holds: more than one if it was appended to.
    pub runs: Vec<Begin>,
    /// The conversations, in the order in which they began.
    pub conversations: Vec<Conversation>,
    /// How many messages are missing because the recording had reached its bound.
    pub dropped: u64,
}

/// What one client and one server said to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The messages, in the order in which they were seen.
    pub said: Vec<Said>,
    /// The responses that the client closed before their end: from 2026-07-28 on that cancels a request.
    pub left: Vec<Left>,
    /// How many messages were said before the client closed its side, if it did.
    pub ended: Option<usize>,
}

/// A response that the client closed before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The request whose response it was.
    pub stream: u32,
    /// How many messages were said before.
    pub after: usize,
}

/// A message, and who said it.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Who said it.
    pub by: Party,
    /// When, in milliseconds since 1970.
    pub t: u64,
    /// The HTTP request that it came with, or whose response it came in.
    pub stream: Option<u32>,
    /// The status of that response.
    pub status: Option<u16>,
    /// The message.
    pub message: Message,
}

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, counted from 1.
    pub line: usize,
    /// A sentence about it.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Unreadable {}

impl Recording {
    /// Reads a whole file. A last line without an end is ignored if it cannot be read: the recorder was killed while
    /// it wrote.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let mut lines = Vec::new();
        let count = text.lines().count();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            match read_line(line) {
                Ok(line) => lines.push((number, line)),
                Err(_) if number == count && !text.ends_with('\n') && number > 1 => {}
                Err(why) => return Err(Unreadable { line: number, why }),
            }
        }
        // A gateway sees each message on two links; the conversation is what the client had.
        let is_of_client = |line: &Line| line.side == Some(Side::Client);
        let side = match lines.iter().any(|(_, it)| it.message.is_some() && is_of_client(it)) {
            true => Side::Client,
            false => Side::Server,
        };
        let mut reader = Reader { side, ..Reader::default() };
        for (number, line) in lines {
            reader.take(line).map_err(|why| Unreadable { line: number, why })?;
        }
        Ok(reader.recording)
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.conversations.iter().all(|it| it.said.is_empty())
    }
}

impl From<Conversation> for Recording {
    fn from(conversation: Conversation) -> Self {
        Self { conversations: vec![conversation], ..Self::default() }
    }
}

fn read_line(text: &str) -> Result<Line, String> {
    let line: Line = serde_json::from_str(text)
        .map_err(|error| format!("This is no line of a recording: {error}."))?;
    match line.v {
        0 => Err("This is no line of a recording: it has no version `v`.".to_owned()),
        1..=VERSION => Ok(line),
        newer => Err(format!("Version {newer} of the format is newer than this program.")),
    }
}

struct Reader {
    recording: Recording,
    side: Side,
    /// The conversation of each session of each run.
    places: BTreeMap<(usize, u32), usize>,
    statuses: BTreeMap<(usize, u32), u16>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            recording: Recording::default(),
            side: Side::Client,
            places: BTreeMap::new(),
            statuses: BTreeMap::new(),
        }
    }
}

impl Reader {
    fn take(&mut self, line: Line) -> Result<(), String> {
        if let Some(begin) = line.recording {
            self.recording.runs.push(begin);
            return Ok(());
        }
        if let Some(Note::Dropped { messages, .. }) = line.note {
            self.recording.dropped = self.recording.dropped.max(messages);
        }
        let run = self.recording.runs.len();
        if let (Some(stream), Some(status)) = (line.stream, line.http.and_then(|it| it.status)) {
            self.statuses.insert((run, stream), status);
        }
        let has_left = line.note == Some(Note::Ended) && line.stream.is_some();
        let place = self.places.get(&(run, line.session.unwrap_or(1)));
        if let (Some(place), Some(stream)) = (place.filter(|_| has_left), line.stream) {
            let conversation = &mut self.recording.conversations[*place];
            conversation.left.push(Left { stream, after: conversation.said.len() });
        }
        if let (Some(place), Some(Side::Client), Some(Direction::In)) = (place, line.side, line.dir)
            && line.note == Some(Note::Ended)
            && line.stream.is_none()
        {
            let conversation = &mut self.recording.conversations[*place];
            conversation.ended.get_or_insert(conversation.said.len());
        }
        let Some(message) = line.message else { return Ok(()) };
        let (Some(side), Some(dir)) = (line.side, line.dir) else {
            return Err("The message does not say who said it (`side` and `dir`).".to_owned());
        };
        if side != self.side {
            return Ok(());
        }
        let messages = match Incoming::parse(message.get().as_bytes()) {
            Incoming::One(message) => vec![message],
            Incoming::Batch(all) => all
                .into_iter()
                .collect::<Result<_, _>>()
                .map_err(|_| "A message of this batch is none of JSON-RPC.".to_owned())?,
            Incoming::Bad(bad) => return Err(bad.to_error().message),
        };
        let key = (run, line.session.unwrap_or(1));
        let next = self.recording.conversations.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.recording.conversations.push(Conversation::default());
        }
        let status = line.stream.and_then(|it| self.statuses.get(&(run, it)).copied());
        let by = Party::of(side, dir);
        let (t, stream) = (line.t, line.stream);
        let said = messages.into_iter().map(|message| Said { by, t, stream, status, message });
        self.recording.conversations[place].said.extend(said);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_sessions_are_conversations() {
        let line = |session: u32, id: u32| {
            format!(
                r#"{{"v":1,"t":1,"side":"client","dir":"in","session":{session},"message":{{"jsonrpc":"2.0","id":{id},"method":"ping"}}}}"#
            )
        };
        let begin = r#"{"v":1,"t":1,"recording":{"transport":"http","server":"x"}}"#;
        let text = [begin, &line(1, 1), &line(2, 1), &line(1, 2), begin, &line(1, 1)].join("\n");
        let recording = Recording::read(&text).unwrap();
        let counts: Vec<_> = recording.conversations.iter().map(|it| it.said.len()).collect();
        assert_eq!(counts, [2, 1, 1]);
        assert_eq!(recording.runs.len(), 2);
    }

    #[test]
    fn a_gateways_recording_is_what_the_client_had() {
        let line = |side: &str, dir: &str| {
            format!(
                r#"{{"v":1,"t":1,"side":"{side}","dir":"{dir}","message":{{"jsonrpc":"2.0","id":1,"method":"ping"}}}}"#
            )
        };
        let both = [line("client", "in"), line("server", "out")].join("\n");
        assert_eq!(Recording::read(&both).unwrap().conversations[0].said.len(), 1);
        let one = Recording::read(&line("server", "out")).unwrap();
        assert_eq!(one.conversations[0].said[0].by, Party::Client);
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_line() {
        let good = r#"{"v":1,"t":1}"#;
        for (bad, why) in [
            ("{", "Line 2: This is no line of a recording"),
            (r#"{"t":1}"#, "has no version"),
            (r#"{"v":2}"#, "Version 2 of the format is newer"),
            (r#"{"v":1,"message":{"jsonrpc":"2.0","id":1,"method":"a"}}"#, "who said it"),
            (r#"{"v":1,"side":"client","dir":"in","message":{}}"#, "not a JSON-RPC 2.0 message"),
        ] {
            let found = Recording::read(&format!("{good}\n{bad}\n")).unwrap_err().to_string();
            assert!(found.contains(why), "{found}");
        }
        assert!(Recording::read(&format!("{good}\n{{\"v\":1,\"me")).is_ok(), "it was cut off");
    }
}
