//! A text ⇄ the value of an `Mcp-Name` or `Mcp-Param-…` header.

use std::borrow::Cow;
use std::fmt;

use crate::text::base64;

/// Why a header value cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadValue {
    /// It has bytes that header values must not have.
    Characters,
    /// It is marked as base64 but invalid: a foreign character, or wrong padding.
    Base64,
    /// The decoded bytes are not UTF-8.
    Utf8,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Characters => "it has characters that a header must not have",
            Self::Base64 => "it is marked as base64 and is none",
            Self::Utf8 => "its base64 does not hold UTF-8",
        })
    }
}

impl std::error::Error for BadValue {}

/// Encodes a text as a header value: unchanged if it survives that, else as `=?base64?…?=`.
///
/// ```
/// # use trunkline_wire::header::*;
/// assert_eq!(encode_value("two words"), "two words");
/// assert_eq!(encode_value("line\nbreak"), "=?base64?bGluZQpicmVhaw==?=");
/// ```
pub fn encode_value(text: &str) -> Cow<'_, str> {
    // A tab inside is allowed, but not every server keeps it.
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain && !text.starts_with(' ') && !text.ends_with(' ') && !is_marked(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(PREFIX.len() + text.len().div_ceil(3) * 4 + SUFFIX.len());
    out.push_str(PREFIX);
    base64::encode(text.as_bytes(), &mut out);
    out.push_str(SUFFIX);
    Cow::Owned(out)
}

/// Decodes a header value. A value that is not entirely marked as base64 stands for itself, without
/// surrounding blanks.
///
/// ```
/// # use trunkline_wire::header::*;
/// assert_eq!(decode_value(b" us-west1 ").unwrap(), "us-west1");
/// assert_eq!(decode_value(b"=?base64?SGVsbG8=?=").unwrap(), "Hello");
/// ```
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, BadValue> {
    let value = trim(value);
    if !value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return Err(BadValue::Characters);
    }
    let text = std::str::from_utf8(value).map_err(|_| BadValue::Characters)?;
    if !is_marked(text) {
        return Ok(Cow::Borrowed(text));
    }
    // Prefix and suffix must not overlap: such a text is ambiguous.
    let inner = text.strip_prefix(PREFIX).and_then(|it| it.strip_suffix(SUFFIX));
    // Only the padded spelling is valid.
    let inner = inner.filter(|it| it.len().is_multiple_of(4));
    let bytes = inner.and_then(base64::decode).ok_or(BadValue::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| BadValue::Utf8)
}

fn is_marked(text: &str) -> bool {
    text.starts_with(PREFIX) && text.ends_with(SUFFIX)
}

/// The value without surrounding optional white space.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_text_is_not_encoded() {
        for text in
            ["us-west1", "", "two words", "42", "SGVsbG8=", "=?base64?x", "x?=", "=?BASE64?x?="]
        {
            assert_eq!(encode_value(text), text);
            assert_eq!(decode_value(text.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn the_rest_goes_as_base64() {
        for (text, value) in [
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("a\tb", "=?base64?YQli?="),
            ("\t", "=?base64?CQ==?="),
            ("a\r\nSet-Cookie: x", "=?base64?YQ0KU2V0LUNvb2tpZTogeA==?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ] {
            assert_eq!(encode_value(text), value);
            assert_eq!(decode_value(value.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn every_length_comes_back() {
        let text: String = ('\u{0}'..='\u{ff}').collect();
        for end in text.char_indices().map(|(at, _)| at) {
            let value = encode_value(&text[..end]);
            assert_eq!(decode_value(value.as_bytes()).unwrap(), &text[..end]);
        }
    }

    #[test]
    fn blanks_around_a_value_do_not_count() {
        assert_eq!(decode_value(b" \t x y\t ").unwrap(), "x y");
        assert_eq!(decode_value(b" =?base64?SGVsbG8=?=\t").unwrap(), "Hello");
        assert_eq!(decode_value(b" \t ").unwrap(), "");
        assert_eq!(decode_value(b"=?base64??=").unwrap(), "");
    }

    #[test]
    fn only_a_whole_marker_marks() {
        for text in ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?Base64?SGVsbG8=?="] {
            assert_eq!(decode_value(text.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn malformed_values_have_distinct_errors() {
        for value in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?SGVsbG8==?=",
            "=?base64?SGVsbG9=?=",
            "=?base64?SGVs=bG8?=",
            "=?base64?====?=",
            "=?base64?A===?=",
            "=?base64?SGVs\tbG8=?=",
            "=?base64?_-__?=",
            "=?base64?=",
        ] {
            assert_eq!(decode_value(value.as_bytes()), Err(BadValue::Base64), "{value}");
        }
        assert_eq!(decode_value(b"=?base64?/w==?="), Err(BadValue::Utf8));
        for value in [&b"caf\xc3\xa9"[..], b"a\x00b", b"a\rb", b"a\nb", b"\x7f"] {
            assert_eq!(decode_value(value), Err(BadValue::Characters));
        }
    }
}
