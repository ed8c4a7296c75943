//! Bytes → their digest.
//!
//! ```
//! use trunkline_auth::digest::sha256;
//!
//! let promised = sha256(b"SKILL.md, as it was reviewed");
//! assert_ne!(sha256(b"SKILL.md, as it was served"), promised);
//! ```

use std::fmt::Write;

use ring::digest::{SHA256, digest};

/// `sha256:` and 64 lowercase hexadecimal digits.
///
/// ```
/// use trunkline_auth::digest::sha256;
///
/// assert!(sha256(b"abc").starts_with("sha256:ba7816bf8f01cfea"));
/// assert_eq!(sha256(b"").len(), "sha256:".len() + 64);
/// ```
pub fn sha256(bytes: &[u8]) -> String {
    let mut out = "sha256:".to_owned();
    for byte in sha256_bytes(bytes) {
        write!(out, "{byte:02x}").expect("writing to a string cannot fail");
    }
    out
}

/// The same as bytes.
///
/// ```
/// assert_eq!(trunkline_auth::digest::sha256_bytes(b"abc")[..2], [0xba, 0x78]);
/// ```
pub fn sha256_bytes(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn the_digests_are_those_of_fips_180() {
        for (text, expected) in [
            ("", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ] {
            assert_eq!(sha256(text.as_bytes()), expected);
        }
    }
}
