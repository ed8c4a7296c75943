//! Bytes ⇄ base64: the standard alphabet, written padded and read padded or not.

/// Appends the bytes to `out`, padded.
///
/// ```
/// let mut out = String::from("data:;base64,");
/// trunkline_wire::text::base64::encode(b"hello", &mut out);
/// assert_eq!(out, "data:;base64,aGVsbG8=");
/// ```
pub fn encode(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            out.push(match digit <= chunk.len() {
                true => char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]),
                false => '=',
            });
        }
    }
}

/// The bytes; `None` if `text` is not base64.
///
/// ```
/// use trunkline_wire::text::base64;
///
/// assert_eq!(base64::decode("aGVsbG8="), Some(b"hello".to_vec()));
/// assert_eq!(base64::decode("aGVsbG8"), Some(b"hello".to_vec()));
/// assert_eq!(base64::decode("aGVs bG8="), None);
/// ```
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let padding = text.len() - text.trim_end_matches('=').len();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let letters = &text.as_bytes()[..text.len() - padding];
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for group in letters.chunks(4) {
        let mut bits = 0_u32;
        for letter in group {
            bits = bits << 6 | value(*letter)?;
        }
        // The spare bits of the last group must be zero.
        let (spare, count) = match group.len() {
            4 => (0, 3),
            3 => (2, 2),
            2 => (4, 1),
            _ => return None,
        };
        if bits & ((1 << spare) - 1) != 0 {
            return None;
        }
        let whole = (bits >> spare).to_be_bytes();
        bytes.extend_from_slice(&whole[4 - count..]);
    }
    Some(bytes)
}

fn value(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for length in 0..=255 {
            let bytes: Vec<u8> = (0..length).collect();
            let mut text = String::new();
            encode(&bytes, &mut text);
            assert_eq!((decode(&text), text.len() % 4), (Some(bytes), 0));
        }
    }

    #[test]
    fn only_valid_base64_is_decoded() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYg", Some(b"foob")),
            ("+/+/", Some(&[0xfb, 0xff, 0xbf])),
            ("Z", None),
            ("Zg=", None),
            ("Zg===", None),
            ("====", None),
            ("Zh==", None),
            ("Zm9_", None),
            ("Zé==", None),
        ] {
            assert_eq!(decode(text).as_deref(), bytes, "{text}");
        }
    }
}
