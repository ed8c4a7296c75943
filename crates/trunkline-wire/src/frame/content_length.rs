//! Header blocks with a `Content-Length` → texts. A malformed header ends the stream, because the start
//! of the next one is unknown.

use super::buffer::Buffer;
use super::scan::Scanner;
use super::{Cut, find};

/// The longest header block.
const MAX_HEADER: usize = 4 << 10;
/// The longest text that is skipped instead of ending the stream.
const MAX_SKIP: usize = 1 << 30;

/// The part of a block that comes next.
#[derive(Debug, Default)]
pub(super) enum Blocks {
    /// The header.
    #[default]
    Header,
    /// A text of this length.
    Text(usize),
    /// The rest of a text over the limit.
    Dropping(usize, Scanner),
}

impl Blocks {
    pub(super) fn cut(&mut self, buffer: &mut Buffer, limit: usize) -> Option<Cut> {
        loop {
            match self {
                Self::Header => {
                    let length = match header(buffer)? {
                        Ok(length) if length <= MAX_SKIP => length,
                        Ok(_) => return Some(Cut::Broken("The announced length is absurd.")),
                        Err(why) => return Some(Cut::Broken(why)),
                    };
                    *self = match length {
                        _ if length > limit => Self::Dropping(length, Scanner::default()),
                        _ => Self::Text(length),
                    };
                }
                Self::Text(length) => {
                    let length = *length;
                    if buffer.rest().len() < length {
                        return None;
                    }
                    *self = Self::Header;
                    return Some(Cut::Text(buffer.consume(length)));
                }
                Self::Dropping(left, scanner) => {
                    let rest = buffer.rest();
                    let part = rest.len().min(*left);
                    scanner.feed(&rest[..part]);
                    buffer.consume(part);
                    *left -= part;
                    if *left > 0 {
                        return None;
                    }
                    let malformed = std::mem::take(scanner).finish();
                    *self = Self::Header;
                    return Some(Cut::TooLong(malformed));
                }
            }
        }
    }

    pub(super) fn finish(&mut self, buffer: &mut Buffer) -> Option<Cut> {
        let between = matches!(self, Self::Header) && buffer.rest().trim_ascii().is_empty();
        (!between).then_some(Cut::Broken("The stream ended inside a message."))
    }
}

/// Consumes one header block and reads its length; `None` if it is incomplete.
fn header(buffer: &mut Buffer) -> Option<Result<usize, &'static str>> {
    let blank = buffer.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    buffer.consume(blank);
    let rest = buffer.rest();
    let head = &rest[..rest.len().min(MAX_HEADER)];
    let mut lines = Lines(head);
    let mut length = None;
    // The block is parsed from its start each time: it is short and nearly always complete.
    loop {
        let Some(line) = lines.next() else {
            return (head.len() == MAX_HEADER).then_some(Err("The header block does not end."));
        };
        if line.is_empty() {
            break;
        }
        match field(line) {
            Ok(Some(_)) if length.is_some() => {
                return Some(Err("The header has two `Content-Length` fields."));
            }
            Ok(Some(value)) => length = Some(value),
            Ok(None) => {}
            Err(why) => return Some(Err(why)),
        }
    }
    let used = head.len() - lines.0.len();
    buffer.consume(used);
    Some(length.ok_or("The header has no `Content-Length` field."))
}

/// One header line → the length, if it is that field.
fn field(line: &[u8]) -> Result<Option<usize>, &'static str> {
    let colon = find(b':', line).ok_or("A header line has no colon.")?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || !name.iter().all(is_token) {
        return Err("A header name has characters that no header name has.");
    }
    if !name.eq_ignore_ascii_case(b"content-length") {
        return Ok(None);
    }
    let digits = std::str::from_utf8(value).unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("`Content-Length` is not a number.");
    }
    digits.parse().map(Some).map_err(|_| "The announced length is absurd.")
}

/// Complete lines; the text after the last line break stays.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = find(b'\n', self.0)?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::super::tests::{Lcg, Owned, read, read_every_way, text};
    use crate::jsonrpc::Id;

    fn every_way(input: &str) -> Vec<Owned> {
        read_every_way(|| Decoder::content_length(40), input.as_bytes())
    }

    fn assert_broken(input: &str, part: &str) {
        let frames = every_way(input);
        let Some(Owned::Broken(why)) = frames.last() else { panic!("{input:?} gave {frames:?}") };
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn exactly_the_announced_bytes_are_taken() {
        let input = "Content-Length: 6\r\n\r\n\"é\\n\"CONTENT-LENGTH:\t4 \nContent-Type: application/json; charset=utf-8\n\n{}\r\n\n  content-length: 0\r\n\r\n";
        assert_eq!(every_way(input), [text("\"é\\n\""), text("{}\r\n"), text("")]);
    }

    #[test]
    fn a_text_over_the_limit_is_passed_over() {
        let long = format!(r#"{{"id":"q","result":"{}"}}"#, "}\n".repeat(20));
        let input =
            format!("Content-Length: {}\r\n\r\n{long}Content-Length: 2\r\n\r\n{{}}", long.len());
        assert_eq!(
            every_way(&input),
            [Owned::TooLong(Some(Id::Text("q".into())), true), text("{}")]
        );
    }

    #[test]
    fn a_header_that_cannot_be_trusted_ends_the_stream() {
        assert_broken("Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "two");
        assert_broken(
            "Content-Type: x\r\n\r\n{}Content-Length: 2\r\n\r\n{}",
            "no `Content-Length`",
        );
        assert_broken("Content-Length: -2\r\n\r\n{}", "not a number");
        assert_broken("Content-Length: \r\n\r\n{}", "not a number");
        assert_broken("Content-Length: 99999999999999999999999\r\n\r\n{}", "absurd");
        assert_broken("Content-Length: 1073741825\r\n\r\n{}", "absurd");
        assert_broken("{\"id\":1}\n", "name");
        assert_broken("hello\n\n", "colon");
        let endless = format!("Content-Length: 2\r\n{}", "x-a: b\r\n".repeat(600));
        let (frames, _) = read(Decoder::content_length(40), endless.as_bytes().chunks(100));
        assert_eq!(frames, [Owned::Broken("The header block does not end.")]);
    }

    #[test]
    fn a_stream_that_ends_too_early_says_so() {
        assert_broken("Content-Length: 3\r\n\r\n{}", "ended");
        assert_broken("Content-Len", "ended");
        assert_eq!(every_way(" \r\n"), []);
    }

    #[test]
    fn random_texts_come_through_random_cuts() {
        let mut random = Lcg(7);
        for _ in 0..200 {
            let mut input = Vec::new();
            let texts: Vec<Owned> = (0..random.below(6))
                .map(|_| {
                    let body: Vec<u8> =
                        (0..random.below(41)).map(|_| b"Co:\r\n1{"[random.below(7)]).collect();
                    input.extend_from_slice(
                        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
                    );
                    input.extend_from_slice(&body);
                    Owned::Text(body)
                })
                .collect();
            assert_eq!(
                read(Decoder::content_length(40), input.chunks(1 + random.below(50))).0,
                texts
            );
        }
    }
}
