//! Names, URIs, times and sizes: tool names, percent-encoding, URI templates, dates.
//!
//! ```
//! use trunkline_wire::text::{UriTemplate, is_tool_name};
//!
//! assert!(is_tool_name("files.read"));
//! let template = UriTemplate::parse("city://{name}/weather").unwrap();
//! assert_eq!(template.matches("city://S%C3%A3o/weather").unwrap()["name"], "São".into());
//! ```

pub mod base64;
mod date;
mod distance;
mod size;
mod template;

pub use date::rfc3339;
pub use distance::edit_distance;
pub use size::size;
pub use template::{
    BadTemplate, MAX_TEMPLATE, MAX_URI, MAX_VARIABLES, Operator, UriTemplate, Value, Variable,
};

/// The longest tool name.
pub const MAX_TOOL_NAME: usize = 128;

/// Whether `name` is 1 to 128 of `A–Z a–z 0–9 _ . -`.
///
/// ```
/// # use trunkline_wire::text::*;
/// assert!(is_tool_name("admin.tools-list_2"));
/// assert!(!is_tool_name("two words") && !is_tool_name(""));
/// assert!(!is_tool_name(&"x".repeat(MAX_TOOL_NAME + 1)));
/// ```
pub fn is_tool_name(name: &str) -> bool {
    (1..=MAX_TOOL_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Percent-encodes `text`, except unreserved characters (RFC 3986 §2.3).
///
/// ```
/// # use trunkline_wire::text::*;
/// let mut uri = "city://".to_owned();
/// percent_encode("São/1", &mut uri);
/// assert_eq!(uri, "city://S%C3%A3o%2F1");
/// ```
pub fn percent_encode(text: &str, out: &mut String) {
    encode(text, is_unreserved, out);
}

/// Percent-encodes `text`, except reserved characters and existing escapes.
///
/// ```
/// # use trunkline_wire::text::*;
/// let mut uri = String::new();
/// percent_encode_reserved("/a b?c=%20%", &mut uri);
/// assert_eq!(uri, "/a%20b?c=%20%25");
/// ```
pub fn percent_encode_reserved(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        encode(&rest[..at], is_uri, out);
        let triplet = rest.get(at..at + 3).filter(|it| decode_triplet(it.as_bytes()).is_some());
        out.push_str(triplet.unwrap_or("%25"));
        rest = &rest[at + triplet.map_or(1, str::len)..];
    }
    encode(rest, is_uri, out);
}

/// Undoes percent-encoding; `None` if a `%` lacks two digits or the bytes are not UTF-8.
///
/// ```
/// # use trunkline_wire::text::*;
/// assert_eq!(percent_decode("S%c3%A3o").as_deref(), Some("São"));
/// assert_eq!(percent_decode("100%"), None);
/// assert_eq!(percent_decode("%ff"), None, "this is not UTF-8");
/// ```
pub fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(decode_triplet(bytes.get(at..at + 3)?)?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

fn encode(text: &str, keep: fn(u8) -> bool, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if keep(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

fn decode_triplet(triplet: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match triplet {
        [b'%', high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_uri(byte: u8) -> bool {
    is_unreserved(byte) || b":/?#[]@!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_have_a_rule() {
        for good in ["a", "getUser", "DATA_EXPORT_v2", "admin.tools.list", "a-b", &"x".repeat(128)]
        {
            assert!(is_tool_name(good), "{good}");
        }
        for bad in ["", "a b", "a/b", "a,b", "é", "a\n", &"x".repeat(129)] {
            assert!(!is_tool_name(bad), "{bad}");
        }
    }

    #[test]
    fn percent_coding_goes_both_ways() {
        let mut out = String::new();
        percent_encode("a b/é%~", &mut out);
        assert_eq!(out, "a%20b%2F%C3%A9%25~");
        assert_eq!(percent_decode(&out).as_deref(), Some("a b/é%~"));
        for bad in ["%", "%4", "%zz", "%ff", "a%+1"] {
            assert_eq!(percent_decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn reserved_coding_leaves_triplets_alone() {
        let mut out = String::new();
        percent_encode_reserved("/a b%20c%é%2g", &mut out);
        assert_eq!(out, "/a%20b%20c%25%C3%A9%252g");
    }
}
