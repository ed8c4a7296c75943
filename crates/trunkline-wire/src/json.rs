//! JSON that is carried, not parsed; and strings written fast.
//!
//! ```
//! use trunkline_wire::json::Json;
//!
//! let json = Json::parse(r#" {"b": 1.50, "a": 10000000000000000000000} "#).unwrap();
//! assert_eq!(json.get(), r#"{"b": 1.50, "a": 10000000000000000000000}"#);
//! ```

use std::fmt;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A valid JSON text, kept as it came: number spelling and key order survive.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Keeps `text` if it is one JSON value, nested no deeper than [`MAX_DEPTH`].
    pub fn parse(text: impl Into<Box<str>>) -> Result<Self, serde_json::Error> {
        let mut text = text.into();
        if text.trim_ascii().len() < text.len() {
            text = text.trim_ascii().into();
        }
        if is_too_deep(text.as_bytes(), MAX_DEPTH) {
            return Err(serde_json::Error::custom("the value is nested too deeply"));
        }
        serde_json::from_str::<&RawValue>(&text)?;
        Ok(Self(text))
    }

    /// Writes a value whose serialisation cannot fail: our own types and `serde_json::Value`.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self::try_of(value).expect("the protocol's own types are always writable as JSON")
    }

    /// Writes any value.
    pub fn try_of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    /// `{}`
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// `null`
    pub fn null() -> Self {
        Self("null".into())
    }

    /// A JSON string.
    pub fn string(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 2);
        write_string(text, &mut out);
        Self::from_written(out)
    }

    /// Wraps bytes that this crate has just written as one JSON value.
    pub(crate) fn from_written(bytes: Vec<u8>) -> Self {
        debug_assert!(serde_json::from_slice::<&RawValue>(&bytes).is_ok());
        Self(String::from_utf8(bytes).expect("JSON is written from UTF-8 pieces").into())
    }

    /// The text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Reads the text as a `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Reads the text as an owned `T`.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        Self::of(value)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::of(&value)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Box::<RawValue>::deserialize(deserializer)?.into()))
    }
}

/// How deep a text may nest.
pub const MAX_DEPTH: usize = 128;

/// Whether brackets in `text` nest deeper than `limit`. Reads strings correctly, judges nothing else.
///
/// ```
/// # use trunkline_wire::json::*;
/// assert!(is_too_deep(b"[[[]]]", 2));
/// assert!(!is_too_deep(b"[[],[],[]]", 2));
/// assert!(!is_too_deep(br#"["[[["]"#, 1), "brackets in strings do not count");
/// ```
pub fn is_too_deep(text: &[u8], limit: usize) -> bool {
    // Counting brackets is many times faster than following strings, and nearly always enough.
    if text.len() <= limit || opening_brackets(text) <= limit {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// How many `{` and `[` there are. Small counters in short blocks let the compiler use vectors.
fn opening_brackets(text: &[u8]) -> usize {
    let is_opening = |byte: &u8| u8::from(byte | 0x20 == b'{');
    text.chunks(192).map(|block| usize::from(block.iter().map(is_opening).sum::<u8>())).sum()
}

/// Appends `text` as a JSON string. Looks for characters to escape a block at a time, which the
/// compiler turns into vector code; most strings have none.
///
/// ```
/// # use trunkline_wire::json::*;
/// let mut out = b"name: ".to_vec();
/// write_string("tab\t", &mut out);
/// assert_eq!(out, br#"name: "tab\t""#);
/// ```
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    const BLOCK: usize = 32;
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let (mut written, mut at) = (0, 0);
    while at < bytes.len() {
        let end = (at + BLOCK).min(bytes.len());
        let block = &bytes[at..end];
        if block.iter().fold(false, |any, byte| any | needs_escape(*byte)) {
            for (offset, byte) in block.iter().enumerate().filter(|(_, byte)| needs_escape(**byte))
            {
                out.extend_from_slice(&bytes[written..at + offset]);
                write_escape(*byte, out);
                written = at + offset + 1;
            }
        }
        at = end;
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

const fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_as_serde_json_writes_them() {
        let every: String = (0..=0x7f_u8).map(char::from).collect();
        for text in ["", "plain", "héllo ✓", "tab\tquote\"back\\slash", &every, &every.repeat(3)]
        {
            assert_eq!(Json::string(text).get(), serde_json::to_string(text).unwrap());
        }
    }

    #[test]
    fn depth_counts_brackets_outside_strings_only() {
        let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
        assert!(is_too_deep(deep.as_bytes(), 128));
        assert!(Json::parse(deep).is_err());
        let flat = format!("[{}0]", "[],".repeat(500));
        assert!(!is_too_deep(flat.as_bytes(), 128));
        let quoted = format!("\"{}\\\"{}\"", "[".repeat(200), "[".repeat(200));
        assert!(!is_too_deep(quoted.as_bytes(), 128));
    }

    #[test]
    fn numbers_and_key_order_survive() {
        let text = r#"{"b":1.50,"a":123456789012345678901234567890}"#;
        assert_eq!(Json::parse(text).unwrap().get(), text);
        assert_eq!(Json::of(&Json::parse(text).unwrap()).get(), text);
    }
}
