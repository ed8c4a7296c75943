//! Texts → JSON strings.

use super::plain::end_of_plain;

/// Appends `text` as a JSON string. Searches for characters to escape in blocks that the compiler
/// vectorises; most strings have none.
///
/// ```
/// # use trunkline_wire::json::*;
/// let mut out = b"name: ".to_vec();
/// write_string("tab\t", &mut out);
/// assert_eq!(out, br#"name: "tab\t""#);
/// ```
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut at = 0;
    loop {
        let end = end_of_plain(bytes, at);
        out.extend_from_slice(&bytes[at..end]);
        let Some(byte) = bytes.get(end) else { break };
        match short_escape(*byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => {
                let [high, low] = hexadecimal(*byte);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
        at = end + 1;
    }
    out.push(b'"');
}

/// The same for a text, which needs no second look at what was written.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(end_of_plain(rest.as_bytes(), 0));
        out.push_str(plain);
        let Some(byte) = special.bytes().next() else { break };
        match short_escape(byte) {
            Some(letter) => {
                out.push('\\');
                out.push(char::from(letter));
            }
            None => {
                out.push_str("\\u00");
                out.extend(hexadecimal(byte).map(char::from));
            }
        }
        rest = &special[1..];
    }
    out.push('"');
}

/// The letter behind the backslash, for a character that has one.
fn short_escape(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return None,
    })
}

fn hexadecimal(byte: u8) -> [u8; 2] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]
}

#[cfg(test)]
mod tests {
    use super::super::Json;
    use super::*;

    #[test]
    fn strings_are_written_as_serde_json_writes_them() {
        let every: String = (0..=0x7f_u8).map(char::from).collect();
        let short: Vec<String> = (55..70).map(|length| "x".repeat(length)).collect();
        let short = short.iter().map(String::as_str);
        let texts = ["", "plain", "héllo ✓", "tab\tquote\"back\\slash", &every, &every.repeat(3)];
        for text in short.chain(texts) {
            let expected = serde_json::to_string(text).unwrap();
            assert_eq!(Json::string(text).get(), expected);
            let mut out = "before".to_owned();
            push_string(text, &mut out);
            assert_eq!(out, format!("before{expected}"));
        }
    }
}
