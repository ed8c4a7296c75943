//! A byte stream → JSON texts, and texts → bytes. Pure: the owner of the pipe pushes what it reads.
//!
//! [`Decoder`] handles the two framings of stdio and detects which one the peer uses; [`sse`] is the
//! event stream of HTTP.
//!
//! ```
//! use trunkline_wire::frame::{DEFAULT_LIMIT, Decoder, Frame};
//!
//! let mut decoder = Decoder::detect(DEFAULT_LIMIT);
//! decoder.push(b"{\"a\":1}\n{\"b\"");
//! assert_eq!(decoder.next(), Some(Frame::Text(br#"{"a":1}"#)));
//! assert_eq!(decoder.next(), None);
//! decoder.push(b":2}\n");
//! assert_eq!(decoder.next(), Some(Frame::Text(br#"{"b":2}"#)));
//! ```

mod buffer;
mod content_length;
mod ndjson;
mod scan;
pub mod sse;

use std::ops::Range;

use crate::jsonrpc::{Incoming, LeftOut, Malformed};
use buffer::Buffer;

/// The default limit on the length of a text: 16 MiB.
pub const DEFAULT_LIMIT: usize = 16 << 20;

/// How a stream is divided into texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One text per line, as MCP has it.
    Newline,
    /// A `Content-Length` header before each text, as in the dialect of [`crate::dialect`].
    ContentLength,
}

/// The next item of the stream.
#[derive(Debug, PartialEq)]
pub enum Frame<'a> {
    /// One text; [`crate::jsonrpc::Incoming`] checks whether it is JSON.
    Text(&'a [u8]),
    /// A text over the limit. It was discarded except for its id; the stream continues.
    TooLong(Malformed),
    /// The framing is broken, and why. Nothing follows.
    Broken(&'static str),
}

/// Cuts texts out of a stream. Holds at most one unfinished text and one chunk.
#[derive(Debug)]
pub struct Decoder {
    buffer: Buffer,
    limit: usize,
    mode: Mode,
    at_start: bool,
}

#[derive(Debug)]
enum Mode {
    Detect,
    Newline(ndjson::Lines),
    ContentLength(content_length::Blocks),
    Broken,
}

/// The range of a frame in the buffer; [`Frame`] without the borrow.
enum Cut {
    Text(Range<usize>),
    TooLong(Malformed),
    Broken(&'static str),
}

impl Decoder {
    /// Detects the framing from the peer's first bytes.
    pub fn detect(limit: usize) -> Self {
        Self::new(limit, Mode::Detect)
    }

    /// Expects one text per line.
    pub fn ndjson(limit: usize) -> Self {
        Self::new(limit, Mode::Newline(ndjson::Lines::default()))
    }

    /// Expects `Content-Length` headers.
    pub fn content_length(limit: usize) -> Self {
        Self::new(limit, Mode::ContentLength(content_length::Blocks::default()))
    }

    /// Expects the given framing.
    pub fn with_framing(framing: Framing, limit: usize) -> Self {
        match framing {
            Framing::Newline => Self::ndjson(limit),
            Framing::ContentLength => Self::content_length(limit),
        }
    }

    fn new(limit: usize, mode: Mode) -> Self {
        Self { buffer: Buffer::new(limit), limit, mode, at_start: true }
    }

    /// The framing, once it is known.
    pub fn framing(&self) -> Option<Framing> {
        match self.mode {
            Mode::Newline(_) => Some(Framing::Newline),
            Mode::ContentLength(_) => Some(Framing::ContentLength),
            Mode::Detect | Mode::Broken => None,
        }
    }

    /// Appends a chunk. Call [`Decoder::next`] until it returns `None` before pushing more.
    pub fn push(&mut self, chunk: &[u8]) {
        self.space(chunk.len()).extend_from_slice(chunk);
    }

    /// The buffer itself, with room for `chunk` more bytes: a reader appends to it without a copy.
    pub fn space(&mut self, chunk: usize) -> &mut Vec<u8> {
        self.buffer.space(chunk)
    }

    /// The next frame, or `None` if more bytes are needed.
    #[allow(clippy::should_implement_trait, reason = "it lends from the buffer")]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        let cut = self.cut()?;
        Some(self.lend(cut))
    }

    /// The next message, or why the framing is broken; `None` if more bytes are needed. A long message takes the
    /// buffer's allocation over ([`Incoming::take`]).
    ///
    /// ```
    /// # use trunkline_wire::{frame::*, jsonrpc::{Incoming, Message}};
    /// let mut decoder = Decoder::ndjson(DEFAULT_LIMIT);
    /// decoder.push(b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n");
    /// let Some(Ok(Incoming::One(Message::Notification { method, .. }))) = decoder.next_message() else { panic!() };
    /// assert_eq!(&*method, "a");
    /// ```
    pub fn next_message(&mut self) -> Option<Result<Incoming, &'static str>> {
        let cut = self.cut()?;
        Some(self.message(cut))
    }

    /// The message that is left at the end of the stream, as [`Decoder::finish`] has it.
    pub fn finish_message(&mut self) -> Option<Result<Incoming, &'static str>> {
        let cut = self.last_cut()?;
        Some(self.message(cut))
    }

    fn cut(&mut self) -> Option<Cut> {
        self.at_start = self.at_start && !self.buffer.skip_mark();
        if self.at_start {
            return None;
        }
        if matches!(self.mode, Mode::Detect) {
            self.mode = match detect(&mut self.buffer)? {
                Framing::Newline => Mode::Newline(ndjson::Lines::default()),
                Framing::ContentLength => Mode::ContentLength(content_length::Blocks::default()),
            };
        }
        match &mut self.mode {
            Mode::Newline(lines) => lines.cut(&mut self.buffer, self.limit),
            Mode::ContentLength(blocks) => blocks.cut(&mut self.buffer, self.limit),
            Mode::Detect | Mode::Broken => {
                self.buffer.clear();
                None
            }
        }
    }

    /// What is left at the end of the stream: a last line without its line break, or the error that a
    /// text was truncated.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let cut = self.last_cut()?;
        Some(self.lend(cut))
    }

    fn last_cut(&mut self) -> Option<Cut> {
        match &mut self.mode {
            Mode::Newline(lines) => lines.finish(&mut self.buffer, self.limit),
            Mode::ContentLength(blocks) => blocks.finish(&mut self.buffer),
            Mode::Detect | Mode::Broken => None,
        }
    }

    fn message(&mut self, cut: Cut) -> Result<Incoming, &'static str> {
        if let Cut::Text(range) = &cut
            && let Some(text) = self.buffer.give(range.clone())
        {
            return Ok(Incoming::take(text));
        }
        match self.lend(cut) {
            Frame::Text(text) => Ok(Incoming::parse(text)),
            Frame::TooLong(malformed) => Ok(Incoming::Bad(malformed)),
            Frame::Broken(why) => Err(why),
        }
    }

    fn lend(&mut self, cut: Cut) -> Frame<'_> {
        match cut {
            Cut::Text(range) => Frame::Text(self.buffer.lend(range)),
            Cut::TooLong(malformed) => Frame::TooLong(malformed),
            Cut::Broken(why) => {
                self.mode = Mode::Broken;
                self.buffer.clear();
                Frame::Broken(why)
            }
        }
    }
}

/// A header starts with `Content-` in any case; everything else is taken for lines, where a line of
/// garbage costs one error and not the connection.
fn detect(buffer: &mut Buffer) -> Option<Framing> {
    const HEADER: &[u8] = b"content-";
    let rest = buffer.rest();
    let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    buffer.consume(blank);
    let rest = buffer.rest();
    let head = &rest[..rest.len().min(HEADER.len())];
    if !head.eq_ignore_ascii_case(&HEADER[..head.len()]) {
        return Some(Framing::Newline);
    }
    (head.len() == HEADER.len()).then_some(Framing::ContentLength)
}

/// Appends the text that `write` appends, framed.
///
/// ```
/// # use trunkline_wire::frame::*;
/// let mut out = Vec::new();
/// encode(Framing::Newline, |out| out.extend_from_slice(b"{\"a\":\n1}"), &mut out);
/// assert_eq!(out, b"{\"a\": 1}\n");
/// ```
pub fn encode(framing: Framing, write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    let write = |out: &mut Vec<u8>| {
        write(out);
        None
    };
    encode_around(framing, write, out);
}

/// The same of a text that lacks a long value, as [`Message::write_around`] writes it. Where one line must not have the
/// value as it is, it is copied after all.
///
/// ```
/// # use trunkline_wire::{frame::*, json::Json, jsonrpc::{Id, LeftOut, Message}};
/// let (answer, mut out) = (Message::result(Id::Number(1), Json::string(&"x".repeat(1 << 20))), Vec::new());
/// let LeftOut { at, value } =
///     encode_around(Framing::Newline, |out| answer.write_around(out), &mut out).expect("it has a long value");
/// assert_eq!((&out[at..], value.get().len()), (&b"}\n"[..], (1 << 20) + 2));
/// ```
///
/// [`Message::write_around`]: crate::jsonrpc::Message::write_around
pub fn encode_around(
    framing: Framing,
    write: impl FnOnce(&mut Vec<u8>) -> Option<LeftOut>,
    out: &mut Vec<u8>,
) -> Option<LeftOut> {
    let start = out.len();
    let mut left_out = write(out);
    match framing {
        Framing::Newline => {
            // JSON that is carried unparsed may contain line breaks, but only between tokens.
            if let Some(broken) = left_out.take_if(|it| has_breaks(it.value.get().as_bytes())) {
                put_back(&broken, out);
            }
            flatten(&mut out[start..]);
            out.push(b'\n');
        }
        Framing::ContentLength => {
            let long = left_out.as_ref().map_or(0, |it| it.value.get().len());
            let header = format!("Content-Length: {}\r\n\r\n", out.len() - start + long);
            if let Some(left_out) = &mut left_out {
                left_out.at += header.len();
            }
            out.splice(start..start, header.into_bytes());
        }
    }
    left_out
}

/// Copies a long value to where it belongs.
fn put_back(LeftOut { at, value }: &LeftOut, out: &mut Vec<u8>) {
    let after = out.split_off(*at);
    out.reserve(value.get().len() + after.len() + 1);
    out.extend_from_slice(value.get().as_bytes());
    out.extend_from_slice(&after);
}

/// Whether there is a line break, looked for in blocks that the compiler vectorises.
fn has_breaks(text: &[u8]) -> bool {
    let (blocks, tail) = text.as_chunks::<SEARCHED>();
    let is_break = |it: &u8| u8::from((*it == b'\n') | (*it == b'\r'));
    let has_any =
        |block: &[u8; SEARCHED]| block.iter().fold(0, |found, it| found | is_break(it)) != 0;
    blocks.iter().any(has_any) || tail.iter().any(|it| is_break(it) != 0)
}

/// Replaces line breaks with spaces.
///
/// ```
/// # use trunkline_wire::frame::*;
/// let mut text = *b"[1,\r\n2]";
/// flatten(&mut text);
/// assert_eq!(&text, b"[1,  2]");
/// ```
pub fn flatten(text: &mut [u8]) {
    let (blocks, tail) = text.as_chunks_mut();
    blocks.iter_mut().for_each(flatten_block);
    if !tail.is_empty() {
        // The last block may overlap the one before.
        match text.last_chunk_mut() {
            Some(last) => flatten_block(last),
            None => replace_breaks(text),
        }
    }
}

/// There is rarely anything to do: then a text is only read.
fn flatten_block(block: &mut [u8; WORD * BLOCK]) {
    let words = block.as_chunks().0.iter();
    if words.fold(0, |found, word| found | controls(u64::from_le_bytes(*word))) != 0 {
        replace_breaks(block);
    }
}

// In place it would slow down the search, which mostly finds nothing.
#[inline(never)]
fn replace_breaks(text: &mut [u8]) {
    // Branchless, so that it vectorises.
    for byte in text {
        *byte = if (*byte == b'\n') | (*byte == b'\r') { b' ' } else { *byte };
    }
}

/// Not zero if one of eight bytes is a control character.
#[inline(always)]
const fn controls(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & (ONES << 7)
}

/// The position of the first `needle`: in blocks that the compiler vectorises, then word by word.
fn find(needle: u8, bytes: &[u8]) -> Option<usize> {
    let lacks =
        |block: &&[u8; SEARCHED]| !block.iter().fold(false, |found, it| found | (*it == needle));
    let mut at = SEARCHED * bytes.as_chunks().0.iter().take_while(lacks).count();
    let (words, tail) = bytes[at..].as_chunks::<WORD>();
    let sought = ONES * needle as u64;
    for word in words {
        let same = u64::from_le_bytes(*word) ^ sought;
        let found = same.wrapping_sub(ONES) & !same & (ONES << 7);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += WORD;
    }
    let left = tail.iter().position(|byte| *byte == needle)?;
    Some(at + left)
}

/// The bytes that are searched together.
const SEARCHED: usize = 32;
/// The bytes that are looked at together.
const WORD: usize = 8;
/// A one in each of them.
const ONES: u64 = u64::MAX / 0xff;
/// The words of a block.
const BLOCK: usize = 8;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::json::Json;
    use crate::jsonrpc::{Id, MalformedKind, Message};

    /// A small generator, so that tests cut streams at arbitrary places.
    pub(crate) struct Lcg(pub(crate) u64);

    impl Lcg {
        pub(crate) fn below(&mut self, bound: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as usize) % bound
        }
    }

    /// A frame that outlives the buffer.
    #[derive(Debug, PartialEq, Clone)]
    pub(crate) enum Owned {
        Text(Vec<u8>),
        TooLong(Option<Id>, bool),
        Broken(&'static str),
    }

    pub(crate) fn text(text: &str) -> Owned {
        Owned::Text(text.into())
    }

    pub(crate) fn own(frame: Frame<'_>) -> Owned {
        match frame {
            Frame::Text(text) => Owned::Text(text.to_vec()),
            Frame::TooLong(it) => {
                assert_eq!(it.kind, MalformedKind::TooLong);
                Owned::TooLong(it.id, it.is_response)
            }
            Frame::Broken(why) => Owned::Broken(why),
        }
    }

    /// All frames in `chunks`, and the rest at the end.
    pub(crate) fn read<'a>(
        mut decoder: Decoder,
        chunks: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<Owned>, Option<Framing>) {
        let mut frames = Vec::new();
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(frame) = decoder.next() {
                frames.push(own(frame));
            }
        }
        let framing = decoder.framing();
        frames.extend(decoder.finish().map(own));
        (frames, framing)
    }

    /// Whole, byte by byte, in two parts at every position, and at random: always the same frames.
    pub(crate) fn read_every_way(decoder: impl Fn() -> Decoder, input: &[u8]) -> Vec<Owned> {
        let (whole, framing) = read(decoder(), [input]);
        assert_eq!(read(decoder(), input.chunks(1)), (whole.clone(), framing), "byte by byte");
        for at in 0..=input.len() {
            let (left, right) = input.split_at(at);
            assert_eq!(read(decoder(), [left, right]).0, whole, "cut at {at}");
        }
        let mut random = Lcg(input.len() as u64);
        for _ in 0..20 {
            let (mut chunks, mut rest) = (Vec::new(), input);
            while !rest.is_empty() {
                let (chunk, tail) = rest.split_at(1 + random.below(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            assert_eq!(read(decoder(), chunks).0, whole);
        }
        whole
    }

    #[test]
    fn the_first_bytes_tell_the_framing() {
        let framing = |input: &str| read(Decoder::detect(100), [input.as_bytes()]).1;
        assert_eq!(framing(""), None);
        assert_eq!(framing(" \r\n\t"), None);
        assert_eq!(framing("{"), Some(Framing::Newline));
        assert_eq!(framing("  \n["), Some(Framing::Newline));
        assert_eq!(framing("\u{feff}{"), Some(Framing::Newline));
        assert_eq!(framing("CONTENT-length: 2"), Some(Framing::ContentLength));
        assert_eq!(framing("\u{feff}Content-Type: x"), Some(Framing::ContentLength));
        assert_eq!(framing("\u{1}"), Some(Framing::Newline));
        assert_eq!(framing("not json"), Some(Framing::Newline));
    }

    #[test]
    fn detection_does_not_depend_on_where_the_stream_is_cut() {
        let lines = b"\xef\xbb\xbf \n{\"a\":1}\r\n\n[]\n";
        assert_eq!(read_every_way(|| Decoder::detect(100), lines), [text("{\"a\":1}"), text("[]")]);
        let blocks = b"\r\nContent-Length: 2\r\n\r\n{}content-length:3\n\n[1]\r\n";
        assert_eq!(read_every_way(|| Decoder::detect(100), blocks), [text("{}"), text("[1]")]);
        let garbage = b"\xff\xfe\n{}\n";
        let expected = [Owned::Text(b"\xff\xfe".into()), text("{}")];
        assert_eq!(read_every_way(|| Decoder::detect(100), garbage), expected);
    }

    #[test]
    fn encoded_values_are_decoded() {
        for framing in [Framing::Newline, Framing::ContentLength] {
            let mut out = Vec::new();
            encode(framing, |out| out.extend_from_slice(b"{\"a\":\r\n 1}"), &mut out);
            encode(framing, |out| out.extend_from_slice("\"é\"".as_bytes()), &mut out);
            let first = match framing {
                Framing::Newline => "{\"a\":   1}",
                Framing::ContentLength => "{\"a\":\r\n 1}",
            };
            assert_eq!(read_every_way(|| Decoder::detect(100), &out), [text(first), text("\"é\"")]);
        }
    }

    #[test]
    fn encoding_appends_one_line_however_long() {
        let mut out = b"before\n".to_vec();
        let carried = format!("[{}]", "1,\n".repeat(100));
        encode(Framing::Newline, |out| out.extend_from_slice(carried.as_bytes()), &mut out);
        assert_eq!(out, format!("before\n{}\n", carried.replace('\n', " ")).into_bytes());
    }

    #[test]
    fn a_value_that_is_left_out_belongs_where_it_is_said_to() {
        let long = "x".repeat(100_000);
        let flat = Json::parse(format!("[\"{long}\", \"\\n\"]")).expect("it is JSON");
        let broken = Json::parse(format!("[\"{long}\",\n\"\"\r]")).expect("it is JSON");
        for framing in [Framing::Newline, Framing::ContentLength] {
            for value in [&flat, &broken] {
                let message = Message::result(Id::Number(1), value.clone());
                let [mut whole, mut around] = [(); 2].map(|()| b"before\n".to_vec());
                encode(framing, |out| message.write(out), &mut whole);
                let left_out = encode_around(framing, |out| message.write_around(out), &mut around);
                let is_copied = framing == Framing::Newline && *value == broken;
                assert_eq!(left_out.is_none(), is_copied, "a line must not have breaks in it");
                if let Some(LeftOut { at, value }) = left_out {
                    around.splice(at..at, value.get().bytes());
                }
                assert!(around == whole, "{framing:?}");
            }
        }
    }

    #[test]
    fn a_line_break_is_seen_wherever_it_stands() {
        for length in 0..200 {
            let mut text = vec![b'x'; length];
            assert!(!has_breaks(&text));
            for at in 0..length {
                text[at] = if at % 2 == 0 { b'\n' } else { b'\r' };
                assert!(has_breaks(&text), "{at} of {length}");
                text[at] = b'x';
            }
        }
    }

    #[test]
    fn memory_stays_within_the_limit_and_a_chunk() {
        let (limit, chunk) = (1 << 20, vec![b'x'; 64 << 10]);
        let mut decoder = Decoder::detect(limit);
        decoder.push(b"{\"id\":7,\"result\":\"");
        for _ in 0..200 {
            decoder.push(&chunk);
            assert_eq!(decoder.next(), None);
            assert!(decoder.space(0).capacity() <= limit + chunk.len() + (8 << 10));
        }
        decoder.push(b"\"}\n{}\n");
        assert_eq!(decoder.next().map(own), Some(Owned::TooLong(Some(Id::Number(7)), true)));
        assert_eq!(decoder.next().map(own), Some(text("{}")));
        assert_eq!(decoder.next(), None);
        assert!(decoder.space(1).capacity() < limit, "room for long texts is given back");
    }

    #[test]
    fn find_agrees_with_the_naive_search() {
        let mut random = Lcg(1);
        let short = (0..300).map(|length| (length, 100));
        for (length, others) in short.chain((480..900).map(|length| (length, 1000))) {
            let bytes: Vec<u8> = (0..length).map(|_| random.below(others) as u8).collect();
            assert_eq!(find(b'\n', &bytes), bytes.iter().position(|byte| *byte == b'\n'));
        }
    }

    #[test]
    fn line_breaks_are_replaced_wherever_they_stand_and_nothing_else_is() {
        let mut random = Lcg(3);
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let expected: Vec<u8> =
                bytes.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect();
            let mut flat = bytes;
            flatten(&mut flat);
            assert_eq!(flat, expected);
        }
    }
}
