//! A key ⇄ the name of its file.
//!
//! Names contain only lower-case letters, digits and `-_%`, so that case-insensitive or
//! Unicode-normalising file systems keep keys apart. Lower-case letters and digits stay readable.

use ring::digest::{SHA256, digest};

/// What a file name says about its key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The key.
    Key(String),
    /// The key is inside the file.
    Inside,
}

/// The name of the file for `key`.
pub(super) fn encode(key: &str) -> String {
    let mut name = String::from("k-");
    for byte in key.bytes() {
        if is_plain(byte) {
            name.push(byte.into());
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
        if name.len() > LONGEST {
            let digest = digest(&SHA256, key.as_bytes());
            let hex = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
            return format!("h-{}", hex.collect::<String>());
        }
    }
    name
}

/// Decodes `name`; `None` for a file that is not ours.
pub(super) fn decode(name: &str) -> Option<Named> {
    if let Some(digest) = name.strip_prefix("h-") {
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        return is_digest.then_some(Named::Inside);
    }
    let (mut rest, mut key) = (name.strip_prefix("k-")?.as_bytes(), Vec::new());
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte == b'%' {
            let (digits, more) = rest.split_at_checked(2)?;
            key.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
            rest = more;
        } else {
            key.push(byte);
        }
    }
    let key = String::from_utf8(key).ok()?;
    // Each key has one name; another name that decodes to it is not its file.
    (encode(&key) == name).then_some(Named::Key(key))
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
}

/// File systems allow 255 bytes; encrypted ones as few as 143.
const LONGEST: usize = 140;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_name() {
        for key in ["task/1", "A", "a", ".", "..", "é", "\0", "a b\n", "%41", "con", "日本語"] {
            let name = encode(key);
            assert_eq!(decode(&name), Some(Named::Key(key.to_owned())), "{name}");
            assert!(name.bytes().all(|byte| is_plain(byte) || byte == b'%'), "{name}");
        }
        assert_eq!(encode("Task/1"), "k-%54ask%2f1");
    }

    #[test]
    fn a_long_key_is_inside_its_file() {
        let (long, other) = ("x".repeat(139), "x".repeat(140));
        assert_eq!(decode(&encode(&long)), Some(Named::Inside));
        assert_ne!(encode(&long), encode(&other));
        assert!(matches!(decode(&encode(&"x".repeat(138))), Some(Named::Key(_))));
    }

    #[test]
    fn other_files_are_not_ours() {
        for name in ["", "k", "readme", "k-%4", "k-%zz", "k-A", "k-%61", "k-%ff", "h-12", ".k-a"] {
            assert_eq!(decode(name), None, "{name}");
        }
    }
}
