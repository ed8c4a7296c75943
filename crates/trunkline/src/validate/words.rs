//! Schemas and values → words.

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

/// What a value is, without what is inside it: that may be anybody's secret.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("the text \"{}\"", cut(text)),
        Value::Number(number) => format!("the number {number}"),
        other => format!("`{other}`"),
    }
}

/// A value of the schema, as one would write it.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", cut(text)),
        other => format!("`{}`", cut(&other.to_string())),
    }
}

/// "a, b or c", shortened when there are many.
pub(super) fn listed(words: impl IntoIterator<Item = String>, last: &str) -> String {
    let mut words: Vec<String> = words.into_iter().collect();
    if words.len() > MOST_LISTED {
        let more = words.len() - MOST_LISTED;
        words.truncate(MOST_LISTED);
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

/// The name among `known` that `name` was probably meant to be.
pub(super) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MOST_COMPARED {
        return None;
    }
    let allowed = name.chars().count() / 3;
    let near = known.filter(|it| it.len() <= MOST_COMPARED && *it != name).map(|it| {
        let same_letters = simple(it) == simple(name);
        (if same_letters { 0 } else { distance(name, it) }, it)
    });
    near.filter(|(far, _)| *far <= allowed).min_by_key(|(far, _)| *far).map(|(_, it)| it)
}

/// What the reader of a Rust type complains of, without our type names and without positions in a
/// text that the caller did not write.
pub(super) fn in_plain_words(complaint: &str) -> String {
    let complaint = complaint.split(" at line ").next().unwrap_or_default();
    let Some((before, expected)) = complaint.split_once("expected ") else {
        return complaint.to_owned();
    };
    let expected = match expected {
        it if it.starts_with("struct ") => "an object",
        it if it.starts_with("enum ") => "one of its names",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        it => it,
    };
    format!("{before}expected {expected}")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A name without what people spell differently: `check_in`, `checkIn`, `check-in`.
fn simple(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// How many letters must be changed, added, removed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

const MOST_LISTED: usize = 12;
const MOST_SHOWN: usize = 60;
const MOST_COMPARED: usize = 64;
