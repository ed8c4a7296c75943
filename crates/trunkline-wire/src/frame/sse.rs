//! Server-sent events ⇄ bytes, in the event stream format of the HTML standard.
//!
//! ```
//! use trunkline_wire::frame::sse::{Decoder, Event, Received};
//!
//! let mut stream = Vec::new();
//! Event { id: Some("7"), data: b"{}", ..Event::default() }.write(&mut stream);
//! let mut decoder = Decoder::new(1024);
//! decoder.push(&stream);
//! let Some(Received::Event(event)) = decoder.next() else { panic!("the event is complete") };
//! assert_eq!((event.id, event.data), (Some("7"), &b"{}"[..]));
//! ```

use crate::jsonrpc::Malformed;

use super::buffer::Buffer;
use super::scan::Scanner;

/// An event, for writing and reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its type; `None` means `message`.
    pub event: Option<&'a str>,
    /// Its id. An empty one resets the reader's last id.
    pub id: Option<&'a str>,
    /// The reconnection delay in milliseconds.
    pub retry: Option<u64>,
    /// Its text. A reader cannot tell an event without `data` from one with empty data.
    pub data: &'a [u8],
}

/// The next item of the stream.
#[derive(Debug, PartialEq)]
pub enum Received<'a> {
    /// An event with data, an id or a delay.
    Event(Event<'a>),
    /// An event over the limit. It was discarded; the stream continues.
    TooLong(Malformed),
}

impl Event<'_> {
    /// Appends the event. Line breaks in `data` become several `data` lines; in `event` and `id`, which
    /// cannot contain them, they become spaces.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_fields(out);
        let mut rest = Some(self.data);
        while let Some(data) = rest {
            let end = super::find(b'\n', data).into_iter().chain(super::find(b'\r', data)).min();
            let (line, tail) = data.split_at(end.unwrap_or(data.len()));
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(line);
            out.push(b'\n');
            rest = end.map(|_| tail.strip_prefix(b"\r\n").unwrap_or(&tail[1..]));
        }
        out.push(b'\n');
    }

    /// Appends the event with one `data` line: line breaks in it become spaces, which JSON takes for the same.
    ///
    /// ```
    /// # use trunkline_wire::frame::sse::*;
    /// let mut out = Vec::new();
    /// Event { data: b"[1,\n2]", ..Event::default() }.write_in_one_line(&mut out);
    /// assert_eq!(out, b"data: [1, 2]\n\n");
    /// ```
    pub fn write_in_one_line(&self, out: &mut Vec<u8>) {
        self.write_fields(out);
        field("data", self.data, out);
        out.push(b'\n');
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        if let Some(event) = self.event {
            field("event", event.as_bytes(), out);
        }
        if let Some(id) = self.id {
            field("id", id.as_bytes(), out);
        }
        if let Some(retry) = self.retry {
            field("retry", retry.to_string().as_bytes(), out);
        }
        out.reserve(self.data.len() + 8);
    }
}

/// Appends a comment (keep-alive).
///
/// ```
/// # use trunkline_wire::frame::sse::*;
/// let mut out = Vec::new();
/// write_comment("still here", &mut out);
/// assert_eq!(out, b": still here\n\n");
/// ```
pub fn write_comment(text: &str, out: &mut Vec<u8>) {
    field("", text.as_bytes(), out);
    out.push(b'\n');
}

fn field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let start = out.len();
    out.extend_from_slice(value);
    super::flatten(&mut out[start..]);
    out.push(b'\n');
}

/// Cuts events out of a stream. Holds one unfinished event and one chunk.
#[derive(Debug)]
pub struct Decoder {
    buffer: Buffer,
    limit: usize,
    at_start: bool,
    /// How many bytes of the unfinished line were searched already.
    searched: usize,
    /// The last line ended with `\r`: a following `\n` belongs to it.
    after_return: bool,
    /// Inside a line over the limit; whether it is a `data` line.
    long_line: Option<bool>,
    /// Inside an event over the limit.
    dropping: Option<Scanner>,
    /// The event so far.
    draft: Draft,
    /// The draft was lent out: start a new one.
    lent: bool,
}

#[derive(Debug, Default)]
struct Draft {
    event: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    data: Vec<u8>,
    has_data: bool,
}

impl Decoder {
    /// A decoder with a limit of `limit` bytes per event.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Buffer::new(limit),
            limit,
            at_start: true,
            searched: 0,
            after_return: false,
            long_line: None,
            dropping: None,
            draft: Draft::default(),
            lent: false,
        }
    }

    /// Appends a chunk. Call [`Decoder::next`] until it returns `None` before pushing more.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.space(chunk.len()).extend_from_slice(chunk);
    }

    /// The next event, or `None` if more bytes are needed. An event that the end of the stream
    /// truncates is never returned.
    #[allow(clippy::should_implement_trait, reason = "it lends from the buffer")]
    pub fn next(&mut self) -> Option<Received<'_>> {
        self.at_start = self.at_start && !self.buffer.skip_mark();
        if self.at_start {
            return None;
        }
        if std::mem::take(&mut self.lent) {
            self.draft.clear();
        }
        let too_long = self.complete()?;
        if let Some(scanner) = too_long {
            return Some(Received::TooLong(scanner.finish()));
        }
        self.lent = true;
        Some(Received::Event(self.draft.lend()))
    }

    /// Reads to the end of an event that is not empty; returns the scanner of one that was too long.
    fn complete(&mut self) -> Option<Option<Scanner>> {
        while let Some((start, length)) = self.line() {
            if length > 0 || self.long_line.take().is_some() {
                self.check_size(length);
                let line = self.buffer.lend(start..start + length);
                self.draft.take_line(line, self.dropping.as_mut());
                // A byte that is not UTF-8 becomes three.
                self.check_size(0);
            } else if let Some(scanner) = self.dropping.take() {
                self.draft.clear();
                return Some(Some(scanner));
            } else if self.draft.is_worth_telling() {
                return Some(None);
            } else {
                self.draft.clear();
            }
        }
        None
    }

    /// The next complete line, without its end. A line over the limit is reported as an empty one with
    /// `long_line` set: the scanner has read it.
    fn line(&mut self) -> Option<(usize, usize)> {
        if self.after_return && !self.buffer.rest().is_empty() {
            self.after_return = false;
            if self.buffer.rest()[0] == b'\n' {
                self.buffer.consume(1);
            }
        }
        let rest = self.buffer.rest();
        let unseen = rest.get(self.searched..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.searched = rest.len();
            self.check_size(rest.len());
            self.drop_long_line();
            return None;
        };
        let length = self.searched + end;
        self.searched = 0;
        self.after_return = rest[length] == b'\r';
        if let Some(is_data) = self.long_line {
            if let Some(scanner) = self.dropping.as_mut().filter(|_| is_data) {
                scanner.feed(&rest[..length]);
            }
            let range = self.buffer.consume(length + 1);
            return Some((range.start, 0));
        }
        let range = self.buffer.consume(length + 1);
        Some((range.start, length))
    }

    /// Starts to discard the event if it exceeds the limit with a line of `more` bytes.
    fn check_size(&mut self, more: usize) {
        if self.dropping.is_none() && self.draft.size() + more > self.limit.saturating_add(NAME) {
            let mut scanner = Scanner::default();
            scanner.feed(&self.draft.data);
            self.draft.clear();
            self.dropping = Some(scanner);
        }
    }

    /// Discards the unfinished line if it exceeds the limit.
    fn drop_long_line(&mut self) {
        let rest = self.buffer.rest();
        if self.long_line.is_none() && rest.len() <= self.limit.saturating_add(NAME) {
            return;
        }
        let is_data = self.long_line.unwrap_or_else(|| rest.starts_with(b"data:"));
        let part = match self.long_line {
            // The space after the colon is not part of the value.
            None if is_data => rest.strip_prefix(b"data: ").unwrap_or(&rest[NAME - 1..]),
            _ => rest,
        };
        if let Some(scanner) = self.dropping.as_mut().filter(|_| is_data) {
            scanner.feed(part);
        }
        self.long_line = Some(is_data);
        self.searched = 0;
        self.buffer.clear();
    }
}

/// The bytes of `data: `.
const NAME: usize = 6;

impl Draft {
    /// Handles one line; with a scanner, only `data` matters and goes there.
    fn take_line(&mut self, line: &[u8], scanner: Option<&mut Scanner>) {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if let Some(scanner) = scanner {
            if name == b"data" {
                scanner.feed(value);
            }
            return;
        }
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.event = Some(text()).filter(|event| !event.is_empty()),
            b"id" if !value.contains(&0) => self.id = Some(text()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = text().parse().ok();
            }
            // Comments have an empty name; unknown names are ignored.
            _ => {}
        }
    }

    fn is_worth_telling(&self) -> bool {
        self.has_data || self.id.is_some() || self.retry.is_some()
    }

    fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.data.len() + length(&self.event) + length(&self.id)
    }

    fn lend(&self) -> Event<'_> {
        Event {
            event: self.event.as_deref(),
            id: self.id.as_deref(),
            retry: self.retry,
            data: &self.data,
        }
    }

    /// Clears the event but keeps some capacity.
    fn clear(&mut self) {
        let mut data = std::mem::take(&mut self.data);
        data.clear();
        data.shrink_to(KEEP);
        *self = Self { data, ..Self::default() };
    }
}

/// Capacity kept between events.
const KEEP: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::super::tests::Lcg;
    use super::*;
    use crate::jsonrpc::Id;

    fn read<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = Decoder::new(limit);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(received) = decoder.next() {
                events.push(match received {
                    Received::Event(it) => {
                        let part = |text: Option<&str>| {
                            text.map_or("-".to_owned(), |text| format!("{text:?}"))
                        };
                        let retry = it.retry.map_or("-".to_owned(), |it| it.to_string());
                        let data = std::str::from_utf8(it.data).unwrap();
                        format!("{} {} {retry} {data:?}", part(it.event), part(it.id))
                    }
                    Received::TooLong(it) => format!("too long {:?} {}", it.id, it.is_response),
                });
            }
        }
        events
    }

    #[track_caller]
    fn check(limit: usize, input: &str, expected: &[&str]) {
        let input = input.as_bytes();
        assert_eq!(read(limit, [input]), expected, "in one piece");
        assert_eq!(read(limit, input.chunks(1)), expected, "byte by byte");
        for at in 0..=input.len() {
            let (left, right) = input.split_at(at);
            assert_eq!(read(limit, [left, right]), expected, "cut at {at}");
        }
    }

    #[test]
    fn what_grows_on_reading_is_measured_wherever_the_chunks_end() {
        let input = b"id:\xff\xff\xff\xffdata ok\n\nid:\xff\n\n";
        let expected = ["too long None false", "- \"\u{fffd}\" - \"\""];
        assert_eq!(read(8, [&input[..]]), expected, "in one piece");
        for at in 0..=input.len() {
            let (left, right) = input.split_at(at);
            assert_eq!(read(8, [left, right]), expected, "cut at {at}");
        }
    }

    #[test]
    fn fields_are_read_as_html_says() {
        check(100, "\u{feff}data: a\n\n", &[r#"- - - "a""#]);
        check(
            100,
            "event: add\nid: 7\nretry: 250\ndata:x\ndata:  y\ndata\n\n",
            &[r#""add" "7" 250 "x\n y\n""#],
        );
        check(
            100,
            ": hello\n\ndata: a\nwhat: b\n: c\n\n\n\ndata: d\n\n",
            &[r#"- - - "a""#, r#"- - - "d""#],
        );
        check(100, "id: 1\0\nretry: 1x\nretry:\nevent: e\n\ndata: z\n\n", &[r#"- - - "z""#]);
        check(
            100,
            "id: 5\ndata:\n\nid\n\nretry: 9\n\ndata: cut",
            &[r#"- "5" - """#, r#"- "" - """#, r#"- - 9 """#],
        );
    }

    #[test]
    fn lines_end_with_either_or_both() {
        let text = "data: a|data: b||id: 1||";
        let expected: &[&str] = &[r#"- - - "a\nb""#, r#"- "1" - """#];
        for end in ["\n", "\r", "\r\n"] {
            check(100, &format!("{}\n", text.replace('|', end)), expected);
        }
        check(100, "data: a\rdata: b\n\r\nid: 1\n\r", expected);
    }

    #[test]
    fn an_event_over_the_limit_is_dropped_and_the_next_one_is_not() {
        let long = "x".repeat(30);
        let one_line = format!("id: 3\ndata: {{\"id\":4,\"result\":\"{long}\"}}\n\ndata: ok\n\n");
        check(20, &one_line, &["too long Some(Number(4)) true", r#"- - - "ok""#]);
        let lines = format!(
            "data: {{\"method\":\"m\",\r\n: {long}\r\ndata: \"id\":\"a\",\r\ndata: \"x\":\r\ndata: 1}}\r\n\r\ndata: ok\r\n\r\n"
        );
        check(20, &lines, &["too long Some(Text(\"a\")) false", r#"- - - "ok""#]);
        check(
            20,
            &format!("data: {}\n\n", "y".repeat(20)),
            &[&format!("- - - \"{}\"", "y".repeat(20))],
        );
    }

    #[test]
    fn the_id_of_an_event_over_the_limit_does_not_depend_on_the_cuts() {
        let rest = "x".repeat(30);
        let input = format!("data: {{\"id\":\"a\ndata: {rest}\ndata: b\"}}\n\n");
        let id = format!("too long Some(Text(\"a{rest}b\")) false");
        check(4, &input, &[&id]);
    }

    #[test]
    fn memory_stays_within_the_limit_and_a_chunk() {
        let (limit, chunk) = (1 << 20, vec![b'x'; 32 << 10]);
        let mut decoder = Decoder::new(limit);
        decoder.push(b"data: ");
        for _ in 0..200 {
            decoder.push(&chunk);
            assert_eq!(decoder.next(), None);
            assert!(decoder.buffer.space(0).capacity() <= limit + chunk.len() + (8 << 10));
        }
        decoder.push(b"\n\ndata: 1\n\n");
        assert!(matches!(decoder.next(), Some(Received::TooLong(_))));
        assert!(matches!(decoder.next(), Some(Received::Event(_))));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        Event { event: Some("a\nb"), id: Some("7"), retry: Some(10), data: b"{\r\n\"x\":\n1}\n" }
            .write(&mut out);
        write_comment("still\nhere", &mut out);
        Event { id: Some(""), ..Event::default() }.write(&mut out);
        let text = String::from_utf8(out).unwrap();
        check(100, &text, &[r#""a b" "7" 10 "{\n\"x\":\n1}\n""#, r#"- "" - """#]);
    }

    #[test]
    fn random_streams_do_not_depend_on_their_cuts() {
        let mut random = Lcg(3);
        let pieces = [
            "data: {\"id\":1",
            "\"result\":",
            "\n",
            "\r",
            "\n\n",
            ":",
            "id: 4",
            "x",
            "event:e",
            "retry:1",
        ];
        for _ in 0..300 {
            let input: String =
                (0..random.below(40)).map(|_| pieces[random.below(pieces.len())]).collect();
            let limit = random.below(40);
            let whole = read(limit, [input.as_bytes()]);
            assert_eq!(
                read(limit, input.as_bytes().chunks(1 + random.below(9))),
                whole,
                "{limit} {input:?}"
            );
        }
        let id = Id::Number(1);
        assert_eq!(
            read(4, ["data: {\"id\":1,\"error\":0}\n\n".as_bytes()]),
            [format!("too long Some({id:?}) true")]
        );
    }
}
