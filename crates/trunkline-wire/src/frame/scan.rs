//! A text too long to keep, in pieces → its id, and whether it is a response. Uses a few hundred bytes,
//! whatever the length.

use crate::jsonrpc::{Id, Malformed, MalformedKind};

/// The longest name or id that is kept.
const MAX_TOKEN: usize = 1 << 10;

/// Tracks strings and depth, and reads the members of the outermost object. It validates nothing: the
/// text is refused anyway, only its id is needed.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    depth: usize,
    place: Place,
    in_string: bool,
    escaped: bool,
    done: bool,
    token: Vec<u8>,
    id: Option<Id>,
    has_id: bool,
    has_method: bool,
    has_outcome: bool,
}

/// The current token of the outermost object.
#[derive(Debug, Default, PartialEq, Clone, Copy)]
enum Place {
    #[default]
    Name,
    Id,
    Other,
}

impl Scanner {
    /// Scans the next piece.
    pub(super) fn feed(&mut self, mut piece: &[u8]) {
        while !self.done && !piece.is_empty() {
            if self.in_string {
                piece = self.string(piece);
            } else {
                self.byte(piece[0]);
                piece = &piece[1..];
            }
        }
    }

    /// The result, once the text has ended.
    pub(super) fn finish(self) -> Malformed {
        Malformed {
            kind: MalformedKind::TooLong,
            id: self.id,
            is_response: self.has_outcome && !self.has_method,
            is_notification: false,
        }
    }

    /// Skips a string up to its end, an escape, or the end of the piece.
    fn string<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let stop = match self.escaped {
            true => Some(0),
            false => piece.iter().position(|byte| matches!(byte, b'"' | b'\\')),
        };
        let (part, rest) = piece.split_at(stop.map_or(piece.len(), |at| at + 1));
        self.keep(part);
        match part.last() {
            _ if self.escaped => self.escaped = false,
            Some(b'\\') => self.escaped = true,
            Some(b'"') => self.in_string = false,
            _ => {}
        }
        rest
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(b"\"");
            }
            b'{' | b'[' => {
                self.keep(&[byte]);
                // A batch has no single id.
                self.done = self.depth == 0 && byte == b'[';
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth <= 1 {
                    self.end_value();
                    self.done = true;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 && self.place == Place::Name => self.end_name(),
            b',' if self.depth == 1 => {
                self.end_value();
                self.place = Place::Name;
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            // Only white space may precede the object.
            _ if self.depth == 0 => self.done = true,
            _ => self.keep(&[byte]),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.depth == 1 && self.place != Place::Other {
            let room = (MAX_TOKEN + 1).saturating_sub(self.token.len());
            self.token.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn end_name(&mut self) {
        let name = serde_json::from_slice::<String>(&self.take()).unwrap_or_default();
        self.place = Place::Other;
        match &*name {
            // The first one counts, as in the parser.
            "id" if !self.has_id => {
                self.has_id = true;
                self.place = Place::Id;
            }
            "method" => self.has_method = true,
            "result" | "error" => self.has_outcome = true,
            _ => {}
        }
    }

    fn end_value(&mut self) {
        if self.place == Place::Id {
            let token = self.take();
            self.id = std::str::from_utf8(&token).ok().and_then(Id::from_json);
        }
        self.token.clear();
        self.done |= self.id.is_some() && self.has_method;
    }

    /// The token, or nothing if it was too long to keep.
    fn take(&mut self) -> Vec<u8> {
        let token = std::mem::take(&mut self.token);
        if token.len() > MAX_TOKEN { Vec::new() } else { token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, id: Option<Id>, is_response: bool) {
        let expected = Malformed { id, is_response, ..Malformed::new(MalformedKind::TooLong) };
        for size in 1..=text.len() {
            let mut scanner = Scanner::default();
            text.as_bytes().chunks(size).for_each(|piece| scanner.feed(piece));
            assert_eq!(scanner.finish(), expected, "{text} in pieces of {size}");
        }
    }

    #[test]
    fn the_id_of_the_outermost_object_is_found() {
        check(r#"{"id":1,"method":"x"}"#, Some(Id::Number(1)), false);
        check(
            r#" {"jsonrpc":"2.0", "id" : "a\"},\\" , "result" : 1}"#,
            Some(Id::Text("a\"},\\".into())),
            true,
        );
        check(
            r#"{"params":{"id":2,"a":[{"id":3}]},"method":"m","id":-4}"#,
            Some(Id::Number(-4)),
            false,
        );
        check(
            r#"{"x":"\"id\":9,{[","\u0069d":12345678901234567890,"error":{}}"#,
            Some(Id::Big("12345678901234567890".into())),
            true,
        );
    }

    #[test]
    fn what_is_no_id_is_none() {
        check(r#"{"id":null,"method":"x"}"#, None, false);
        check(r#"{"id":{"id":1},"result":0}"#, None, true);
        check(r#"{"id":1.5,"result":0}"#, None, true);
        check(r#"{"params":{"id":1},"method":"n"}"#, None, false);
        check(r#"[{"id":1}]"#, None, false);
        check(r#""id":1,{"id":2}"#, None, false);
        check(r#"{"a":1}{"id":2}"#, None, false);
        let long = format!(r#"{{"id":"{}","result":1}}"#, "x".repeat(2000));
        let mut scanner = Scanner::default();
        scanner.feed(long.as_bytes());
        assert_eq!(scanner.finish().id, None);
    }

    #[test]
    fn the_first_id_counts() {
        check(r#"{"id":1,"id":2,"result":{}}"#, Some(Id::Number(1)), true);
        check(r#"{"id":1,"result":{},"method":"x"}"#, Some(Id::Number(1)), false);
    }
}
