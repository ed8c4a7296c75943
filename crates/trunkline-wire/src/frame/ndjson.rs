//! Lines → texts. A line over the limit is discarded as it arrives, except for its id.

use super::buffer::Buffer;
use super::scan::Scanner;
use super::{Cut, find};

/// The state of the search for the end of the line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// How many bytes of the unfinished line were searched already.
    searched: usize,
    /// The line is over the limit; its scanner.
    dropping: Option<Scanner>,
}

impl Lines {
    pub(super) fn cut(&mut self, buffer: &mut Buffer, limit: usize) -> Option<Cut> {
        loop {
            let rest = buffer.rest();
            if let Some(mut scanner) = self.dropping.take() {
                let end = find(b'\n', rest);
                scanner.feed(&rest[..end.unwrap_or(rest.len())]);
                let Some(end) = end else {
                    buffer.clear();
                    self.dropping = Some(scanner);
                    return None;
                };
                buffer.consume(end + 1);
                return Some(Cut::TooLong(scanner.finish()));
            }
            match find(b'\n', rest.get(self.searched..).unwrap_or_default()) {
                Some(offset) => {
                    let length = std::mem::take(&mut self.searched) + offset;
                    if let Some(cut) = line(buffer, length, 1, limit) {
                        return Some(cut);
                    }
                }
                // One byte more: it may be the `\r` of the line break.
                None if rest.len() > limit.saturating_add(1) => {
                    self.searched = 0;
                    self.dropping = Some(Scanner::default());
                }
                None => {
                    self.searched = rest.len();
                    return None;
                }
            }
        }
    }

    pub(super) fn finish(&mut self, buffer: &mut Buffer, limit: usize) -> Option<Cut> {
        self.searched = 0;
        if let Some(scanner) = self.dropping.take() {
            return Some(Cut::TooLong(scanner.finish()));
        }
        line(buffer, buffer.rest().len(), 0, limit)
    }
}

/// Cuts a line of `length` bytes and the `end` bytes after it; `None` if it is blank.
fn line(buffer: &mut Buffer, length: usize, end: usize, limit: usize) -> Option<Cut> {
    let mut range = buffer.consume(length + end);
    range.end = range.start + length;
    let line = buffer.lend(range.clone());
    if let Some(text) = line.strip_suffix(b"\r") {
        range.end = range.start + text.len();
    }
    if range.len() > limit {
        let mut scanner = Scanner::default();
        scanner.feed(line);
        return Some(Cut::TooLong(scanner.finish()));
    }
    (!line.iter().all(u8::is_ascii_whitespace)).then_some(Cut::Text(range))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Lcg, Owned, read, read_every_way, text};
    use super::super::{Decoder, Frame};
    use crate::jsonrpc::Id;

    #[test]
    fn lines_are_cut_wherever_the_chunks_end() {
        let input = "{\"a\":1}\n\r\n \t\n{\"b\":\"é\"}\r\n[]";
        let expected = [text("{\"a\":1}"), text("{\"b\":\"é\"}"), text("[]")];
        assert_eq!(read_every_way(|| Decoder::ndjson(100), input.as_bytes()), expected);
    }

    #[test]
    fn the_limit_counts_the_text_alone() {
        for end in ["\n", "\r\n"] {
            let input = format!("12345678{end}123456789{end}1{end}");
            let expected = [text("12345678"), Owned::TooLong(None, false), text("1")];
            assert_eq!(read_every_way(|| Decoder::ndjson(8), input.as_bytes()), expected);
        }
    }

    #[test]
    fn a_line_over_the_limit_keeps_its_id_and_the_stream_continues() {
        let long = "x".repeat(60);
        let cases = [
            (format!(r#"{{"id":5,"method":"m","params":["{long}"]}}"#), Some(Id::Number(5)), false),
            (
                format!(r#"{{"result":{{"id":1,"t":"{long}"}},"id":"a\"b"}}"#),
                Some(Id::Text("a\"b".into())),
                true,
            ),
            (format!(r#"{{"error":"{long}"}}"#), None, true),
            (format!(r#"[{{"id":1,"method":"{long}"}}]"#), None, false),
            (long.clone(), None, false),
        ];
        for (line, id, is_response) in cases {
            let input = format!("{line}\n{{}}\n{line}");
            let gone = Owned::TooLong(id, is_response);
            let expected = [gone.clone(), text("{}"), gone];
            assert_eq!(read_every_way(|| Decoder::ndjson(32), input.as_bytes()), expected);
        }
    }

    #[test]
    fn random_streams_match_a_naive_splitter() {
        let mut random = Lcg(42);
        for _ in 0..300 {
            let input: Vec<u8> =
                (0..random.below(400)).map(|_| b"ab \r\n\n{\""[random.below(8)]).collect();
            let limit = 1 + random.below(12);
            let naive: Vec<Owned> = input
                .split(|byte| *byte == b'\n')
                .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
                .filter_map(|line| match line {
                    _ if line.len() > limit => Some(Owned::TooLong(None, false)),
                    _ if line.trim_ascii().is_empty() => None,
                    _ => Some(Owned::Text(line.to_vec())),
                })
                .collect();
            let mut rest = &input[..];
            let chunks = std::iter::from_fn(|| {
                let (chunk, tail) = rest.split_at(random.below(30).min(rest.len()));
                rest = tail;
                (!rest.is_empty() || !chunk.is_empty()).then_some(chunk)
            });
            assert_eq!(read(Decoder::ndjson(limit), chunks).0, naive, "{:?}", input.escape_ascii());
        }
    }

    #[test]
    fn a_hundred_thousand_lines_in_one_chunk_are_not_shifted_about() {
        let mut decoder = Decoder::ndjson(100);
        decoder.push(&b"{}\n".repeat(100_000));
        let base = decoder.space(0).as_ptr().addr();
        let mut count = 0;
        while let Some(frame) = decoder.next() {
            let Frame::Text(line) = frame else { panic!("{frame:?}") };
            assert_eq!(line.as_ptr().addr(), base + 3 * count);
            count += 1;
        }
        assert_eq!(count, 100_000);
    }
}
