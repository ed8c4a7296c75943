//! The event streams of one session: which message goes to which stream, what each reader has had, and
//! what can be replayed.
//!
//! A message goes to exactly one stream: that of its POST, or the general stream that GET opens. Events
//! keep their position, so a reader that reconnects gets what it missed, once and in order.

mod kept;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use trunkline_wire::frame::sse::Event as Line;

use super::event::{EventId, Owed};
use crate::RequestStream;
use kept::KeptEvents;
pub use kept::{Kept, RequestIds};

/// The bounds on a session's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Events of one stream.
    pub events: usize,
    /// Bytes of one stream, and of all finished ones.
    pub bytes: usize,
    /// How long a finished stream can be resumed.
    pub keep: Duration,
    /// High-water mark: unread bytes of all readers before senders wait (back-pressure).
    pub unread: usize,
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With ids; `primed` if each stream begins with an event that has only an id.
    Resumable {
        /// Whether it does.
        primed: bool,
    },
    /// One stream for everything, without ids (2024-11-05).
    Single,
}

/// The streams of one session.
#[derive(Debug)]
pub struct Streams {
    bounds: Bounds,
    style: Style,
    /// The general stream that GET opens; it exists from the start and never finishes.
    general: Stream,
    /// Streams of POSTs that are unfinished or still being read.
    open: Vec<Stream>,
    /// Finished streams without a reader, oldest first.
    over: VecDeque<Stream>,
    finished_bytes: usize,
    next: u64,
    readers: u64,
    /// Room for the events of the next POST, left by one that was answered with one text or is forgotten.
    spare: VecDeque<Vec<u8>>,
    /// Events that another process may have to send again, if there is one. Boxed: few sessions have them.
    kept: Option<Box<KeptEvents>>,
}

/// The reader of a stream. A newer reader replaces it (takeover).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The stream.
    pub via: RequestStream,
    number: u64,
}

/// How the response to a POST begins.
#[derive(Debug, PartialEq)]
pub enum Beginning {
    /// Nothing is known yet.
    Unknown,
    /// With one JSON text.
    Whole(StatusCode, Vec<u8>),
    /// With a stream of events.
    Events,
    /// With no answer.
    Silence,
}

/// The state of a stream after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// More may follow.
    Open,
    /// The stream is finished.
    End,
}

#[derive(Debug, Default)]
struct Stream {
    id: u64,
    events: VecDeque<Vec<u8>>,
    /// The position of the oldest event kept. Positions begin with 1; 0 is the empty first event.
    oldest: u64,
    bytes: usize,
    /// The next position to read.
    taken: u64,
    reader: Option<u64>,
    /// Whether the next read starts a new response.
    is_fresh: bool,
    /// Whether it was sent as events, so that a client may know an id of it.
    is_events: bool,
    /// When it finished, if it did.
    over: Option<Instant>,
    /// The status of its answer, once it is known.
    status: Option<StatusCode>,
    /// Set if the reader must disconnect and reconnect after this time.
    pause: Option<Duration>,
    /// The requests of its POST, if its events are kept once it has any.
    requests: Option<Arc<RequestIds>>,
    /// What it owes, if its events are kept. Boxed: every session has a stream, and few are kept.
    debts: Option<Box<Debts>>,
}

/// The answers that a stream owes.
#[derive(Debug, Default)]
struct Debts {
    /// The ids of its requests, as JSON.
    ids: Vec<String>,
    /// From which place on it owes how many of the last of them, if it was adopted and answers one by one.
    fewer: Vec<(u64, usize)>,
}

impl Streams {
    /// The streams of a new session.
    pub fn new(style: Style, bounds: Bounds) -> Self {
        Self {
            bounds,
            style,
            general: Stream { is_events: true, oldest: 1, ..Stream::default() },
            open: Vec::new(),
            over: VecDeque::new(),
            finished_bytes: 0,
            next: 0,
            readers: 0,
            spare: VecDeque::new(),
            kept: None,
        }
    }

    /// Sets the style of later events.
    pub fn set_style(&mut self, style: Style) {
        self.style = style;
    }

    /// A stream for a POST, and its reader.
    pub fn open(&mut self, via: RequestStream) -> Reader {
        self.readers += 1;
        let (id, reader) = (via.0, Some(self.readers));
        let events = std::mem::take(&mut self.spare);
        let stream = Stream { id, reader, events, oldest: 1, is_fresh: true, ..Stream::default() };
        if self.open.capacity() == 0 {
            // Most sessions have one request at a time, and keep the room for it.
            self.open.reserve_exact(1);
        }
        self.open.push(stream);
        Reader { via, number: self.readers }
    }

    /// The number of the next POST.
    pub fn next_via(&mut self) -> RequestStream {
        self.next += 1;
        RequestStream(self.next)
    }

    /// Adds a message to its stream; `last` is the status if it is the answer. Returns the stream whose
    /// reader to wake, if any.
    pub fn say(
        &mut self,
        via: Option<RequestStream>,
        text: Vec<u8>,
        last: Option<StatusCode>,
        now: Instant,
    ) -> Option<RequestStream> {
        let via = self.place_of(via);
        let bounds = self.bounds;
        let stream = self.live(via)?;
        // Without a reader, a duplicate (such as a second `list_changed`) is dropped.
        if stream.reader.is_none() && stream.id == 0 && stream.unread().any(|it| *it == text) {
            return None;
        }
        stream.bytes += text.len();
        stream.events.push_back(text);
        stream.trim(bounds);
        if let Some(status) = last
            && via.0 != 0
        {
            stream.over = Some(now);
            stream.status = Some(status);
        }
        if self.kept.is_some() {
            self.keep_last(via);
        }
        self.retire(via, now);
        Some(via)
    }

    /// A POST gets no answer.
    pub fn no_reply(&mut self, via: RequestStream, now: Instant) -> Option<RequestStream> {
        let via = self.place_of(Some(via));
        if via.0 == 0 {
            return None;
        }
        self.live(via)?.over = Some(now);
        if self.kept.is_some() {
            self.keep_end(via);
        }
        self.retire(via, now);
        Some(via)
    }

    /// Makes the reader of a POST's stream disconnect until later.
    pub fn pause(&mut self, via: RequestStream, retry: Duration) -> Option<RequestStream> {
        let stream = self.open.iter_mut().find(|it| it.id == via.0)?;
        stream.pause = Some(retry);
        let is_new = !std::mem::replace(&mut stream.is_events, true);
        if is_new && self.kept.is_some() {
            self.keep_whole(via);
        }
        Some(via)
    }

    /// How the response to a POST begins, if known.
    pub fn beginning(&mut self, reader: Reader) -> Beginning {
        let Some(at) = self.open.iter().position(|it| reader.holds(it)) else {
            return Beginning::Silence;
        };
        let stream = &mut self.open[at];
        if stream.is_events {
            return Beginning::Events;
        }
        match (stream.events.len(), stream.over, stream.status) {
            (0, None, _) => Beginning::Unknown,
            (0, Some(_), _) => {
                self.open.swap_remove(at);
                Beginning::Silence
            }
            (1, _, Some(status)) => {
                let mut stream = self.open.swap_remove(at);
                let text = stream.events.pop_front().unwrap_or_default();
                // A session that rests keeps room for one event, and no more.
                stream.events.shrink_to(1);
                self.spare = stream.events;
                Beginning::Whole(status, text)
            }
            _ => {
                stream.is_events = true;
                if self.kept.is_some() {
                    self.keep_whole(reader.via);
                }
                Beginning::Events
            }
        }
    }

    /// A reader of the general stream, with everything unread.
    pub fn attach(&mut self) -> Reader {
        self.readers += 1;
        self.general.reader = Some(self.readers);
        self.general.is_fresh = true;
        Reader { via: RequestStream(0), number: self.readers }
    }

    /// A reader for the events after `id`, whose tag is verified. `None` if the stream was evicted, or
    /// has finished with nothing more. Evicted events are skipped.
    pub fn resume(&mut self, id: EventId) -> Option<Reader> {
        let had = |it: &Stream| {
            let more = it.over.is_none() || id.place.saturating_add(1) < it.end();
            it.is_events && more && (id.place < it.end() || id.place == 0)
        };
        if let Some(at) = self.over.iter().position(|it| it.id == id.stream && had(it)) {
            let stream = self.over.remove(at)?;
            self.finished_bytes -= stream.bytes;
            self.open.push(stream);
        }
        self.readers += 1;
        let number = self.readers;
        let stream = self.live(RequestStream(id.stream)).filter(|it| had(it))?;
        stream.taken = id.place + 1;
        stream.reader = Some(number);
        stream.pause = None;
        Some(Reader { via: RequestStream(id.stream), number })
    }

    /// Writes the events that the reader has not had yet. `mac` computes the tags of their ids.
    pub fn read(
        &mut self,
        reader: Reader,
        now: Instant,
        mac: impl Fn(&[u8]) -> u64,
        out: &mut Vec<u8>,
    ) -> Read {
        let style = self.style;
        let Some(stream) = self.live(reader.via).filter(|it| reader.holds(it)) else {
            return Read::End;
        };
        stream.taken = stream.taken.max(1);
        let is_fresh = std::mem::take(&mut stream.is_fresh);
        let primed = is_fresh && style == Style::Resumable { primed: true };
        let begins = primed || stream.pause.is_some();
        let around = if begins { AROUND } else { 0 };
        out.reserve(around + stream.unread().map(|it| it.len() + AROUND).sum::<usize>());
        if begins {
            // A client that is cut off before the first event can still resume.
            stream.write_id(stream.taken - 1, &mac, out);
            Line { retry: stream.pause.map(millis), ..Line::default() }.write_in_one_line(out);
        }
        for place in stream.taken.max(stream.oldest)..stream.end() {
            let data = &stream.events[(place - stream.oldest) as usize];
            if matches!(style, Style::Resumable { .. }) {
                stream.write_id(place, &mac, out);
            }
            let event = (style == Style::Single).then_some("message");
            Line { event, data, ..Line::default() }.write_in_one_line(out);
        }
        stream.taken = stream.end();
        let (is_over, paused) = (stream.over.is_some(), stream.pause.is_some());
        let bounds = self.bounds;
        if let Some(stream) = self.live(reader.via) {
            stream.trim(bounds);
        }
        if is_over || paused {
            self.detach(reader, now);
            return Read::End;
        }
        Read::Open
    }

    /// Everything that the stream of a POST carries, if that is complete and was not read from yet. Nobody has
    /// to read it then.
    pub fn read_whole(
        &mut self,
        reader: Reader,
        now: Instant,
        mac: impl Fn(&[u8]) -> u64,
    ) -> Option<Vec<u8>> {
        let stream = self.live(reader.via).filter(|it| reader.holds(it))?;
        let is_whole = stream.over.is_some() && stream.is_fresh && stream.pause.is_none();
        is_whole.then(|| {
            let mut out = Vec::new();
            self.read(reader, now, mac, &mut out);
            out
        })
    }

    /// The reader has disconnected. Returns whether it was the current one.
    pub fn detach(&mut self, reader: Reader, now: Instant) -> bool {
        let held = self.live(reader.via).filter(|it| reader.holds(it));
        let Some(stream) = held else { return false };
        stream.reader = None;
        stream.pause = None;
        if !stream.is_events {
            // The client has no id to resume with.
            self.open.retain(|it| it.id != reader.via.0);
            return true;
        }
        self.retire(reader.via, now);
        true
    }

    /// Evicts streams that finished too long ago.
    pub fn sweep(&mut self, now: Instant) {
        let keep = self.bounds.keep;
        while let Some(stream) = self.over.front()
            && stream.over.is_none_or(|it| it + keep <= now)
        {
            self.forget_oldest();
        }
    }

    /// Finishes the general stream.
    pub fn end_general(&mut self, now: Instant) {
        self.general.over.get_or_insert(now);
    }

    /// Finishes every stream.
    pub fn end(&mut self, now: Instant) {
        for stream in self.open.iter_mut().chain([&mut self.general]) {
            stream.over.get_or_insert(now);
        }
    }

    /// Whether the unread bytes exceed the high-water mark, so that senders must wait.
    pub fn is_congested(&self) -> bool {
        let live = || self.open.iter().chain([&self.general]);
        // What all of them keep is seldom so much that what is unread of it must be counted.
        if live().map(|it| it.bytes).sum::<usize>() <= self.bounds.unread {
            return false;
        }
        // All readers together: many streams may leave no more unread than one.
        let read = live().filter(|it| it.reader.is_some());
        let unread = read.flat_map(Stream::unread).map(Vec::len).sum::<usize>();
        unread > self.bounds.unread
    }

    /// Whether a client reads, or waits for an answer.
    pub fn is_read(&self) -> bool {
        self.general.reader.is_some() || self.open.iter().any(|it| it.reader.is_some())
    }

    fn place_of(&self, via: Option<RequestStream>) -> RequestStream {
        match self.style {
            Style::Single => RequestStream(0),
            Style::Resumable { .. } => via.unwrap_or_default(),
        }
    }

    fn live(&mut self, via: RequestStream) -> Option<&mut Stream> {
        match via.0 {
            0 => Some(&mut self.general),
            id => self.open.iter_mut().find(|it| it.id == id),
        }
    }

    /// Moves a finished stream without a reader to those that can be resumed for a while.
    fn retire(&mut self, via: RequestStream, now: Instant) {
        let done = |it: &Stream| it.id == via.0 && it.over.is_some() && it.reader.is_none();
        let Some(at) = self.open.iter().position(done) else { return };
        let stream = self.open.swap_remove(at);
        if !stream.is_events || self.style == Style::Single {
            return;
        }
        self.finished_bytes += stream.bytes;
        self.over.push_back(stream);
        self.sweep(now);
        while self.over.len() > MAX_FINISHED || self.finished_bytes > self.bounds.bytes {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(mut stream) = self.over.pop_front() {
            self.finished_bytes -= stream.bytes;
            if stream.events.capacity() <= FEW {
                stream.events.clear();
                self.spare = stream.events;
            }
        }
    }
}

impl Stream {
    /// The position after the newest event.
    fn end(&self) -> u64 {
        self.oldest + self.events.len() as u64
    }

    /// The ids of the requests whose answers it owes after the event at `place`.
    fn owed_after(&self, place: u64) -> &[String] {
        // Only the newest event can be the answer to all.
        if self.over.is_some() && place + 1 >= self.end() {
            return &[];
        }
        let Some(debts) = &self.debts else { return &[] };
        let fewer = debts.fewer.iter().rfind(|(from, _)| *from <= place);
        &debts.ids[fewer.map_or(0, |(_, left)| debts.ids.len() - left)..]
    }

    fn write_id(&self, place: u64, mac: impl Fn(&[u8]) -> u64, out: &mut Vec<u8>) {
        let owed = Owed::of(self.owed_after(place));
        out.extend_from_slice(b"id: ");
        EventId::issue(self.id, place, &owed, mac).write_owing(&owed, out);
        out.push(b'\n');
    }

    fn unread(&self) -> impl Iterator<Item = &Vec<u8>> {
        let had = self.taken.saturating_sub(self.oldest) as usize;
        self.events.iter().skip(had)
    }

    /// Evicts the oldest events over the bounds, but none that a reader is about to get.
    fn trim(&mut self, bounds: Bounds) {
        while self.events.len() > bounds.events || self.bytes > bounds.bytes {
            if self.reader.is_some() && self.oldest >= self.taken {
                return;
            }
            let Some(gone) = self.events.pop_front() else { return };
            self.bytes -= gone.len();
            self.oldest += 1;
        }
    }
}

impl Reader {
    fn holds(self, stream: &Stream) -> bool {
        stream.id == self.via.0 && stream.reader == Some(self.number)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The bytes of an event besides its text, with an id of the usual length.
const AROUND: usize = 48;
/// Room for so many events is used again.
const FEW: usize = 4;
/// How many finished streams can be resumed.
const MAX_FINISHED: usize = 64;
