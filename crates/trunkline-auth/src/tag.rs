//! Unguessable names, and short authentication tags that prove that we issued a name.
//!
//! ```
//! use trunkline_auth::tag::{Tagger, random_name};
//!
//! let tagger = Tagger::random();
//! let session = random_name();
//! let proof = tagger.scope(&session).tag(b"event 7");
//! assert_eq!(tagger.scope(&session).tag(b"event 7"), proof);
//! ```

use std::hash::Hasher;

use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::rand::{SecureRandom, SystemRandom};

/// Makes keys for tags, each for one scope.
#[derive(Clone, Debug)]
pub struct Tagger(Key);

/// Computes tags within one scope: SipHash-2-4, a MAC for short inputs, with a key that is an HMAC
/// of the scope's name.
#[derive(Clone, Copy)]
pub struct Tags(u64, u64);

impl Tagger {
    /// A tagger whose key lives as long as this process.
    pub fn random() -> Self {
        Self(Key::generate(HMAC_SHA256, &SystemRandom::new()).expect(RANDOM))
    }

    /// A tagger for all processes that share `secret`.
    pub fn keyed(secret: &[u8; 32]) -> Self {
        // A key of its own: whoever learns it can forge tags, but seal nothing.
        let own = sign(&Key::new(HMAC_SHA256, secret), b"trunkline tags");
        Self(Key::new(HMAC_SHA256, own.as_ref()))
    }

    /// The tags of `scope`.
    pub fn scope(&self, scope: &str) -> Tags {
        let key = sign(&self.0, scope.as_bytes());
        let half = |from: usize| {
            let bytes = key.as_ref()[from..from + 8].try_into();
            u64::from_be_bytes(bytes.expect("an HMAC has 32 bytes"))
        };
        Tags(half(0), half(8))
    }
}

impl Tags {
    /// The tag of `place`.
    pub fn tag(self, place: &[u8]) -> u64 {
        #[allow(deprecated, reason = "its successor for hash maps leaves the function open")]
        let mut hasher = std::hash::SipHasher::new_with_keys(self.0, self.1);
        hasher.write(place);
        hasher.finish()
    }
}

/// 128 random bits, as 32 letters and digits.
///
/// ```
/// # use trunkline_auth::tag::*;
/// let name = random_name();
/// assert_eq!(name.len(), 32);
/// assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()));
/// ```
pub fn random_name() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect(RANDOM);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

const RANDOM: &str = "the operating system hands out random bytes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_depends_on_all_of_it() {
        let tagger = Tagger::random();
        let tag = tagger.scope("session").tag(&[1, 2]);
        assert_eq!(tag, tagger.scope("session").tag(&[1, 2]));
        assert_ne!(tag, tagger.scope("session").tag(&[1, 3]));
        assert_ne!(tag, tagger.scope("sessiom").tag(&[1, 2]));
        assert_ne!(tag, Tagger::random().scope("session").tag(&[1, 2]));
    }

    #[test]
    fn those_who_share_a_secret_make_the_same_tags() {
        let tag = |secret: u8| Tagger::keyed(&[secret; 32]).scope("session").tag(&[1, 2]);
        assert_eq!(tag(1), tag(1));
        assert_ne!(tag(1), tag(2));
    }

    #[test]
    fn the_function_is_siphash_2_4() {
        // The first test vector of its authors: key 00 01 … 0f, no input.
        let tags = Tags(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(tags.tag(&[]), 0x726f_db47_dd0e_0e31);
    }

    #[test]
    fn names_are_never_the_same() {
        let names: std::collections::HashSet<_> = (0..10_000).map(|_| random_name()).collect();
        assert_eq!(names.len(), 10_000);
        assert!(names.iter().all(|it| it.len() == 32));
    }
}
