//! Schemas and values → words for messages.

use std::io::{self, Write};

use serde_json::Value;

/// A set of JSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const OBJECT: Self = Self(1);
    pub(super) const ARRAY: Self = Self(1 << 1);
    pub(super) const STRING: Self = Self(1 << 2);
    pub(super) const NUMBER: Self = Self(1 << 3);
    pub(super) const INTEGER: Self = Self(1 << 4);
    pub(super) const BOOLEAN: Self = Self(1 << 5);
    pub(super) const NULL: Self = Self(1 << 6);

    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|it| it.1 == name).map(|it| it.0)
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn allows(self, value: &Value) -> bool {
        match value {
            Value::Object(_) => self.has(Self::OBJECT),
            Value::Array(_) => self.has(Self::ARRAY),
            Value::String(_) => self.has(Self::STRING),
            Value::Bool(_) => self.has(Self::BOOLEAN),
            Value::Null => self.has(Self::NULL),
            Value::Number(number) => {
                self.has(Self::NUMBER) || self.has(Self::INTEGER) && super::number::is_whole(number)
            }
        }
    }

    /// "a text or `null`"
    pub(super) fn in_words(self) -> String {
        let words = NAMES.iter().filter(|it| self.has(it.0)).map(|it| it.2.to_owned());
        listed(words, "or")
    }
}

const NAMES: [(Types, &str, &str); 7] = [
    (Types::OBJECT, "object", "an object"),
    (Types::ARRAY, "array", "a list"),
    (Types::STRING, "string", "a text"),
    (Types::NUMBER, "number", "a number"),
    (Types::INTEGER, "integer", "a whole number"),
    (Types::BOOLEAN, "boolean", "`true` or `false`"),
    (Types::NULL, "null", "`null`"),
];

/// The type of a value, and a scalar itself; never the content of a container, which may be a
/// secret.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("the text \"{}\"", cut(text)),
        Value::Number(number) => format!("the number {number}"),
        other => format!("`{other}`"),
    }
}

/// A value of the schema, as JSON.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", cut(text)),
        other => {
            let mut start = Start::default();
            // The writer fails on purpose once it has enough.
            let _ = serde_json::to_writer(&mut start, other);
            format!("`{}`", cut(&String::from_utf8_lossy(&start.0)))
        }
    }
}

/// The start of a text that may be very long.
#[derive(Default)]
struct Start(Vec<u8>);

impl Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() > 4 * MOST_SHOWN {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// "a, b or c", shortened when there are many.
pub(super) fn listed(words: impl IntoIterator<Item = String>, last: &str) -> String {
    let words: Vec<String> = words.into_iter().collect();
    shortened(words.len(), words, last)
}

/// The same for `count` words, of which only the first few are supplied.
pub(super) fn shortened(
    count: usize,
    words: impl IntoIterator<Item = String>,
    last: &str,
) -> String {
    let mut words: Vec<String> = words.into_iter().take(MOST_LISTED).collect();
    if count > words.len() {
        let more = count - words.len();
        return format!("{} {last} {more} more", words.join(", "));
    }
    match words.pop() {
        Some(only) if words.is_empty() => only,
        Some(end) => format!("{} {last} {end}", words.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// "1 character", "2 characters"
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// The complaint of a serde deserializer, without Rust type names and positions in a text that the
/// caller did not write.
pub(super) fn in_plain_words(complaint: &str) -> String {
    let complaint = complaint.split(" at line ").next().unwrap_or_default();
    match complaint.split_once("expected ") {
        Some((before, expected)) => format!("{before}expected {}", plain_type(expected)),
        None => complaint.to_owned(),
    }
}

/// The same without the found value, which may be a secret.
pub(super) fn in_guarded_words(complaint: &str) -> String {
    // The value may contain these words too, but it comes before ours.
    let complaint = complaint.rsplit_once(" at line ").map_or(complaint, |it| it.0);
    if ["missing field `", "a secret does not fit"].iter().any(|it| complaint.starts_with(it)) {
        return complaint.to_owned();
    }
    let is_known = ["invalid type: ", "invalid value: "].iter().any(|it| complaint.starts_with(it));
    match complaint.rsplit_once(", expected ").filter(|_| is_known) {
        Some((_, expected)) => format!("expected {}", plain_type(expected)),
        None => "there is something in them that cannot be read".to_owned(),
    }
}

fn plain_type(expected: &str) -> &str {
    match expected {
        it if it.starts_with("struct ") => "an object",
        it if it.starts_with("enum ") => "one of its names",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        it => it,
    }
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

const MOST_LISTED: usize = 12;
const MOST_SHOWN: usize = 60;
