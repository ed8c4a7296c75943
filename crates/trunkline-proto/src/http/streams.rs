//! The event streams of one session: which message goes where, what each reader has had, and what
//! can be asked for again.
//!
//! A message goes to exactly one stream: that of the POST it is about, or the one that GET opened.
//! Events keep their place, so a reader that comes back gets what it missed, once and in order.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use http::StatusCode;
use trunkline_wire::frame::sse::Event as Line;

use super::event::EventId;
use crate::RequestStream;

/// What may be kept of a session's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Events of one stream.
    pub events: usize,
    /// Bytes of one stream, and of all that are over.
    pub bytes: usize,
    /// How long a stream that is over can be asked for.
    pub keep: Duration,
    /// Bytes that readers may leave unread, all together, before those who speak are made to wait.
    pub unread: usize,
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With ids; `primed` if each stream begins with an event that has an id and nothing else.
    Resumable {
        /// Whether it does.
        primed: bool,
    },
    /// One stream for everything, without ids: 2024-11-05.
    Single,
}

/// The streams of one session.
#[derive(Debug)]
pub struct Streams {
    bounds: Bounds,
    style: Style,
    /// What GET opens; it is there from the start and never over.
    general: Stream,
    /// Those of POSTs that are not over, or still being read.
    open: Vec<Stream>,
    /// Those that are over and read, oldest first.
    over: VecDeque<Stream>,
    over_bytes: usize,
    next: u64,
    readers: u64,
    /// Room for the events of the next POST, left by one that was answered with one text.
    spare: VecDeque<Vec<u8>>,
}

/// Whoever reads a stream. A newer reader of the same stream takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Which stream.
    pub via: RequestStream,
    number: u64,
}

/// How the answer to a POST begins.
#[derive(Debug, PartialEq)]
pub enum Beginning {
    /// Nothing is known yet.
    Unknown,
    /// It is one text and nothing else.
    Whole(StatusCode, Vec<u8>),
    /// It is a stream of events.
    Events,
    /// Nothing will come.
    Silence,
}

/// What a reader got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// There may be more later.
    Open,
    /// That was all.
    End,
}

#[derive(Debug, Default)]
struct Stream {
    id: u64,
    events: VecDeque<Vec<u8>>,
    /// The place of the oldest event kept. Places begin with 1; 0 is the event that says nothing.
    oldest: u64,
    bytes: usize,
    /// The next place to be read.
    taken: u64,
    reader: Option<u64>,
    /// Whether the next read begins a new stream of events.
    is_fresh: bool,
    /// Whether it went out as events, so that somebody may know an id of it.
    is_events: bool,
    /// Since when nothing will be added.
    over: Option<Instant>,
    /// The status of its answer, once that is there.
    status: Option<StatusCode>,
    /// The reader should go, and come back after this time.
    pause: Option<Duration>,
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
            over_bytes: 0,
            next: 0,
            readers: 0,
            spare: VecDeque::new(),
        }
    }

    /// Writes events as `style` from now on.
    pub fn set_style(&mut self, style: Style) {
        self.style = style;
    }

    /// A stream for a POST, and its reader.
    pub fn open(&mut self, via: RequestStream) -> Reader {
        self.readers += 1;
        let (id, reader) = (via.0, Some(self.readers));
        let events = std::mem::take(&mut self.spare);
        let stream = Stream { id, reader, events, oldest: 1, is_fresh: true, ..Stream::default() };
        self.open.push(stream);
        Reader { via, number: self.readers }
    }

    /// A name for the next POST.
    pub fn next_via(&mut self) -> RequestStream {
        self.next += 1;
        RequestStream(self.next)
    }

    /// Adds a message to the stream it belongs to; `last` is its status if it is the answer. Returns
    /// the stream whose reader should look, if there is one.
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
        // Without a reader nobody notices a repetition, such as that a list has changed once more.
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
        self.retire(via, now);
        Some(via)
    }

    /// Nothing more will come for a POST.
    pub fn quiet(&mut self, via: RequestStream, now: Instant) -> Option<RequestStream> {
        let via = self.place_of(Some(via));
        if via.0 == 0 {
            return None;
        }
        self.live(via)?.over = Some(now);
        self.retire(via, now);
        Some(via)
    }

    /// Sends the reader of a POST's stream away until later.
    pub fn pause(&mut self, via: RequestStream, retry: Duration) -> Option<RequestStream> {
        let stream = self.open.iter_mut().find(|it| it.id == via.0)?;
        stream.pause = Some(retry);
        stream.is_events = true;
        Some(via)
    }

    /// How the answer to a POST begins, as far as is known.
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
                // A session that rests keeps room for a few events, and no more.
                if stream.events.capacity() <= SPARE {
                    self.spare = stream.events;
                }
                Beginning::Whole(status, text)
            }
            _ => {
                stream.is_events = true;
                Beginning::Events
            }
        }
    }

    /// A reader for what GET opens: everything that nobody has read.
    pub fn attach(&mut self) -> Reader {
        self.readers += 1;
        self.general.reader = Some(self.readers);
        self.general.is_fresh = true;
        Reader { via: RequestStream(0), number: self.readers }
    }

    /// A reader for what came after `id`, whose tag has been checked. `None` if the stream
    /// is gone, or if nothing came and nothing will; what it forgot in between is left out.
    pub fn resume(&mut self, id: EventId) -> Option<Reader> {
        let had = |it: &Stream| {
            let more = it.over.is_none() || id.place.saturating_add(1) < it.end();
            it.is_events && more && (id.place < it.end() || id.place == 0)
        };
        if let Some(at) = self.over.iter().position(|it| it.id == id.stream && had(it)) {
            let stream = self.over.remove(at)?;
            self.over_bytes -= stream.bytes;
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

    /// Writes what the reader has not had yet.
    pub fn read(
        &mut self,
        reader: Reader,
        now: Instant,
        tag: impl Fn(u64, u64) -> u64,
        out: &mut Vec<u8>,
    ) -> Read {
        let style = self.style;
        let Some(stream) = self.live(reader.via).filter(|it| reader.holds(it)) else {
            return Read::End;
        };
        let id_of = |place| EventId { stream: stream.id, place, tag: tag(stream.id, place) };
        stream.taken = stream.taken.max(1);
        let is_fresh = std::mem::take(&mut stream.is_fresh);
        let primed = is_fresh && style == Style::Resumable { primed: true };
        if primed || stream.pause.is_some() {
            // Whoever breaks off before the first event has something to come back with.
            let id = id_of(stream.taken - 1).text();
            let retry = stream.pause.map(millis);
            Line { id: Some(&id), retry, ..Line::default() }.write(out);
        }
        out.reserve(stream.unread().map(|it| it.len() + AROUND).sum());
        for place in stream.taken.max(stream.oldest)..stream.end() {
            let data = &stream.events[(place - stream.oldest) as usize];
            let id = matches!(style, Style::Resumable { .. }).then(|| id_of(place).text());
            let event = (style == Style::Single).then_some("message");
            Line { event, id: id.as_deref(), retry: None, data }.write(out);
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

    /// The reader is gone. Says whether it was the one of its stream.
    pub fn detach(&mut self, reader: Reader, now: Instant) -> bool {
        let held = self.live(reader.via).filter(|it| reader.holds(it));
        let Some(stream) = held else { return false };
        stream.reader = None;
        stream.pause = None;
        if !stream.is_events {
            // Nobody has an id to come back with.
            self.open.retain(|it| it.id != reader.via.0);
            return true;
        }
        self.retire(reader.via, now);
        true
    }

    /// Forgets what is over for too long.
    pub fn sweep(&mut self, now: Instant) {
        let keep = self.bounds.keep;
        while let Some(stream) = self.over.front()
            && stream.over.is_none_or(|it| it + keep <= now)
        {
            self.forget_oldest();
        }
    }

    /// Ends what GET opens: nothing more will be said that is about no request.
    pub fn end_general(&mut self, now: Instant) {
        self.general.over.get_or_insert(now);
    }

    /// Ends every stream.
    pub fn end(&mut self, now: Instant) {
        for stream in self.open.iter_mut().chain([&mut self.general]) {
            stream.over.get_or_insert(now);
        }
    }

    /// Whether a reader leaves so much unread that those who speak should wait.
    pub fn is_stuffed(&self) -> bool {
        // All of them together: a session with many streams may leave no more than one with one.
        let read = self.open.iter().chain([&self.general]).filter(|it| it.reader.is_some());
        let unread = read.flat_map(Stream::unread).map(Vec::len).sum::<usize>();
        unread > self.bounds.unread
    }

    /// Whether somebody reads, or waits for an answer.
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

    /// Puts a stream that is over and has no reader where it can be asked for, for a while.
    fn retire(&mut self, via: RequestStream, now: Instant) {
        let done = |it: &Stream| it.id == via.0 && it.over.is_some() && it.reader.is_none();
        let Some(at) = self.open.iter().position(done) else { return };
        let stream = self.open.swap_remove(at);
        if !stream.is_events || self.style == Style::Single {
            return;
        }
        self.over_bytes += stream.bytes;
        self.over.push_back(stream);
        self.sweep(now);
        while self.over.len() > OVER || self.over_bytes > self.bounds.bytes {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(stream) = self.over.pop_front() {
            self.over_bytes -= stream.bytes;
        }
    }
}

impl Stream {
    /// The place after the newest event.
    fn end(&self) -> u64 {
        self.oldest + self.events.len() as u64
    }

    fn unread(&self) -> impl Iterator<Item = &Vec<u8>> {
        let had = self.taken.saturating_sub(self.oldest) as usize;
        self.events.iter().skip(had)
    }

    /// Forgets the oldest events over the bounds, but none that a reader is about to get.
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

/// What an event has beside its text, with an id of the usual length.
const AROUND: usize = 48;
/// Room for so many events is kept for the next POST.
const SPARE: usize = 4;
/// Streams that are over and can still be asked for.
const OVER: usize = 64;
