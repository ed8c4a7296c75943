//! JSON with comments and trailing commas → a tree that knows where in the text everything stands.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

/// Why a text was not understood, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// From one on.
    pub(crate) line: usize,
    /// From one on, in characters.
    pub(crate) column: usize,
    /// What is wrong, in a sentence.
    pub(crate) message: String,
}

impl Unreadable {
    /// What is wrong at a byte of a text.
    pub(super) fn at(text: &str, byte: usize, message: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..byte.min(text.len())];
        let line = before.iter().filter(|it| **it == b'\n').count() + 1;
        let start = before.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        // Bytes that continue a character do not begin a column.
        let column = before[start..].iter().filter(|it| **it & 0xc0 != 0x80).count() + 1;
        Self { line, column, message: message.into() }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Unreadable {}

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar(Value),
}

/// A name with its value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    /// Where its name begins.
    pub(super) start: usize,
    pub(super) value: Node,
    /// Where the comma after it stands, if there is one.
    pub(super) comma: Option<usize>,
}

impl Node {
    /// The members of an object.
    pub(super) fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// A member of an object. The last of several counts, as in JavaScript.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().rfind(|it| it.key == key)
    }

    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|it| (it.key.clone(), it.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
            Kind::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Scalar(value) => value.clone(),
        }
    }
}

/// Reads a text. `None` if there is nothing in it but space and comments.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Unreadable> {
    let mut reader = Reader { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    reader.skip()?;
    if reader.at == text.len() {
        return Ok(None);
    }
    let node = reader.value(0)?;
    reader.skip()?;
    match reader.at == text.len() {
        true => Ok(Some(node)),
        false => Err(reader.fail("The value has ended, and something comes after it.")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, Unreadable> {
        if depth > DEPTH {
            return Err(self.fail("It is nested too deeply."));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.object(depth)?),
            Some(b'[') => Kind::Array(self.array(depth)?),
            Some(b'"') => Kind::Scalar(Value::String(self.string()?)),
            Some(_) => Kind::Scalar(self.word()?),
            None => return Err(self.fail("The text ends where a value should be.")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, Unreadable> {
        let mut members: Vec<Member> = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(members);
                }
                Some(b'"') if members.last().is_none_or(|it| it.comma.is_some()) => {}
                Some(b'"') => return Err(self.fail("There is no comma before this name.")),
                _ => return Err(self.fail("Here should be a name in double quotes, or `}`.")),
            }
            let start = self.at;
            let key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.fail("Here should be a colon."));
            }
            self.at += 1;
            self.skip()?;
            let value = self.value(depth + 1)?;
            self.skip()?;
            let comma = self.comma();
            members.push(Member { key, start, value, comma });
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>, Unreadable> {
        let mut items = Vec::new();
        let mut may_go_on = true;
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(items);
            }
            if !may_go_on {
                return Err(self.fail("Here should be a comma, or `]`."));
            }
            items.push(self.value(depth + 1)?);
            self.skip()?;
            may_go_on = self.comma().is_some();
        }
    }

    fn string(&mut self) -> Result<String, Unreadable> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.fail("These double quotes do not end.")),
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        serde_json::from_str(&self.text[start..=end]).map_err(|_| {
            Unreadable::at(self.text, start, "This text has an escape that means nothing.")
        })
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Value, Unreadable> {
        let rest = &self.text[self.at..];
        let is_part = |it: char| it.is_ascii_alphanumeric() || "+-._".contains(it);
        let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
        let value =
            serde_json::from_str(&rest[..end]).map_err(|_| self.fail("Here should be a value."))?;
        self.at += end;
        Ok(value)
    }

    fn comma(&mut self) -> Option<usize> {
        (self.peek() == Some(b',')).then(|| {
            self.at += 1;
            self.at - 1
        })
    }

    /// Goes past space and comments.
    fn skip(&mut self) -> Result<(), Unreadable> {
        loop {
            let rest = &self.text[self.at..];
            let space = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += space;
            let rest = &rest[space..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    return Err(self.fail("This comment does not end."));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail(&self, message: &str) -> Unreadable {
        Unreadable::at(self.text, self.at, message)
    }
}

/// No configuration file is deeper.
const DEPTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_no_obstacle() {
        let text = "\u{feff}// Zed\n{ /* a */ \"a\" /*b*/ : [1, -2.5e3, true,], // c\r\n \"é\\n\": {}, }\n//";
        let found = parse(text).unwrap().unwrap();
        assert_eq!(found.to_value(), json!({ "a": [1, -2500.0, true], "é\n": {} }));
        assert!(parse(" // nothing\n").unwrap().is_none());
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        let found = parse(r#"{"a": 1, "a": 2}"#).unwrap().unwrap();
        assert_eq!(found.member("a").unwrap().value.to_value(), json!(2));
        assert_eq!(found.to_value(), json!({ "a": 2 }));
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        for (text, line, column) in [
            ("{\n  \"é\" 1}", 2, 7),
            ("{\"a\": 1 \"b\": 2}", 1, 9),
            ("{\"a\": tru}", 1, 7),
            ("{\"a\": }", 1, 7),
            ("{a: 1}", 1, 2),
            ("[1 2]", 1, 4),
            ("{} x", 1, 4),
            ("{\n\"a", 2, 1),
            ("/* a", 1, 1),
            ("{", 1, 2),
            ("\"\\q\"", 1, 1),
        ] {
            let found = parse(text).unwrap_err();
            assert_eq!((found.line, found.column), (line, column), "{text}: {found}");
        }
        assert!(parse(&"[".repeat(5000)).unwrap_err().message.contains("deep"));
    }
}
