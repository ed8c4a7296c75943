//! Bytes ⇄ opaque strings that a peer can carry but neither read nor change.
//!
//! AES-256-GCM, with an expiry inside and the caller's context as associated data: a string does
//! not open in another context. Random nonces of 96 bits are safe for 2^32 texts with one key (NIST
//! SP 800-38D §8.3), which a busy process reaches; so each text has its own key, derived from ours
//! with a random salt (HKDF, RFC 5869), and the number of texts per key is not limited. Deriving a key costs
//! more than sealing a short text, so [`Sealer::for_many`] keeps the derived ones.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use trunkline_auth::seal::{Sealer, Unsealable};
//!
//! let (sealer, now) = (Sealer::random(), SystemTime::now());
//! let sealed = sealer.seal(b"answers so far", b"tools/call book", now + Duration::from_secs(600));
//! assert_eq!(sealer.open(&sealed, b"tools/call book", now).unwrap(), b"answers so far");
//! assert_eq!(sealer.open(&sealed, b"tools/call pay", now), Err(Unsealable));
//! ```

mod derived;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use derived::Derived;

/// Seals and opens. The first key seals, every key opens, so keys can be rotated without a gap.
pub struct Sealer {
    keys: Vec<Key>,
    random: SystemRandom,
    /// Set if derived keys are kept.
    derived: Option<Derived>,
}

struct Key {
    id: u8,
    bytes: [u8; 32],
}

impl Key {
    /// The key for texts with this salt.
    fn for_salt(&self, salt: &[u8; SALT]) -> Arc<LessSafeKey> {
        let own = Salt::new(HKDF_SHA256, salt).extract(&self.bytes);
        let key = own.expand(&[b"trunkline seal"], &AES_256_GCM);
        let key = UnboundKey::from(key.expect("it is shorter than HKDF's limit"));
        Arc::new(LessSafeKey::new(key))
    }
}

/// What seals one text: a key, the salt it was derived with, and a nonce that this key has not had before.
struct Once {
    key: Arc<LessSafeKey>,
    salt: [u8; SALT],
    nonce: [u8; NONCE_LEN],
}

/// The string is not one of ours, or for another context, or expired. The reason is not revealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsealable;

crate::error_in_words!(Unsealable, |_| "The sealed string is not valid here.");

impl Sealer {
    /// A sealer whose key lives as long as this process.
    pub fn random() -> Self {
        let mut key = [0; 32];
        let random = SystemRandom::new();
        random.fill(&mut key).expect("the operating system hands out random bytes");
        Self::new(&[key])
    }

    /// A sealer with given keys, newest first; at least one.
    pub fn new(keys: &[[u8; 32]]) -> Self {
        assert!(!keys.is_empty(), "a sealer needs a key");
        let keys = keys.iter().map(|bytes| {
            // The first byte of its digest selects the key without revealing anything about it.
            let id = ring::digest::digest(&ring::digest::SHA256, bytes).as_ref()[0];
            Key { id, bytes: *bytes }
        });
        Self { keys: keys.collect(), random: SystemRandom::new(), derived: None }
    }

    /// The same for many short texts: up to a million of them share a derived key, each with a nonce that is counted,
    /// and derived keys are kept where texts are opened, too. Any sealer with the same keys opens what this one sealed.
    #[must_use]
    pub fn for_many(self) -> Self {
        Self { derived: Some(Derived::default()), ..self }
    }

    /// Seals `plain` for `context`, until `expires`.
    pub fn seal(&self, plain: &[u8], context: &[u8], expires: SystemTime) -> String {
        let key = &self.keys[0];
        let once = match &self.derived {
            None => self.derive(),
            Some(derived) => derived.next(|| self.derive()),
        };
        let mut whole = Vec::with_capacity(HEAD + EXPIRY + plain.len() + TAG);
        whole.extend_from_slice(&[VERSION, key.id]);
        whole.extend_from_slice(&once.salt);
        whole.extend_from_slice(&once.nonce);
        whole.extend_from_slice(&seconds(expires).to_be_bytes());
        whole.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(once.nonce);
        let sealed =
            once.key.seal_in_place_separate_tag(nonce, Aad::from(context), &mut whole[HEAD..]);
        let tag = sealed.expect("the text is far below the cipher's limit");
        whole.extend_from_slice(tag.as_ref());
        URL_SAFE_NO_PAD.encode(whole)
    }

    /// A key for one text, or for the first of many.
    fn derive(&self) -> Once {
        let (mut salt, mut nonce) = ([0; SALT], [0; NONCE_LEN]);
        for random in [&mut salt[..], &mut nonce] {
            self.random.fill(random).expect("the operating system hands out random bytes");
        }
        Once { key: self.keys[0].for_salt(&salt), salt, nonce }
    }

    /// Opens what [`Self::seal`] sealed for the same context, if it has not expired.
    pub fn open(
        &self,
        sealed: &str,
        context: &[u8],
        now: SystemTime,
    ) -> Result<Vec<u8>, Unsealable> {
        let whole = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| Unsealable)?;
        let (head, body) = whole.split_at_checked(HEAD).ok_or(Unsealable)?;
        if head[0] != VERSION {
            return Err(Unsealable);
        }
        let (salt, nonce) = head[2..].split_at(SALT);
        let salt: [u8; SALT] = salt.try_into().map_err(|_| Unsealable)?;
        let nonce: [u8; NONCE_LEN] = nonce.try_into().map_err(|_| Unsealable)?;
        let plain = self.keys.iter().enumerate().filter(|(_, it)| it.id == head[1]).find_map(
            |(number, it)| {
                let kept = self.derived.as_ref().and_then(|derived| derived.find(number, &salt));
                let key = kept.clone().unwrap_or_else(|| it.for_salt(&salt));
                let mut body = body.to_vec();
                let nonce = Nonce::assume_unique_for_key(nonce);
                let length = key.open_in_place(nonce, Aad::from(context), &mut body).ok()?.len();
                body.truncate(length);
                // Only what opened is kept: nobody else can make us forget it.
                if let (Some(derived), None) = (&self.derived, kept) {
                    derived.keep(number, salt, key);
                }
                Some(body)
            },
        );
        let mut plain = plain.ok_or(Unsealable)?;
        let expires = plain.first_chunk::<EXPIRY>().ok_or(Unsealable)?;
        if seconds(now) >= u64::from_be_bytes(*expires) {
            return Err(Unsealable);
        }
        plain.drain(..EXPIRY);
        Ok(plain)
    }

    /// A random, unguessable name: 128 bits.
    pub fn random_name(&self) -> String {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes).expect("the operating system hands out random bytes");
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

const VERSION: u8 = 2;
/// The size of the salt; with the nonce 224 random bits.
const SALT: usize = 16;
const HEAD: usize = 2 + SALT + NONCE_LEN;
const EXPIRY: usize = 8;
const TAG: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = UNIX_EPOCH;

    fn later(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_sealed_opens_in_its_context_and_time_only() {
        let sealer = Sealer::random();
        let sealed = sealer.seal(b"journal", b"tools/call book", later(600));
        assert_eq!(sealer.open(&sealed, b"tools/call book", NOW).unwrap(), b"journal");
        assert_eq!(sealer.open(&sealed, b"tools/call other", NOW), Err(Unsealable));
        assert_eq!(sealer.open(&sealed, b"tools/call book", later(600)), Err(Unsealable));
        assert_eq!(Sealer::random().open(&sealed, b"tools/call book", NOW), Err(Unsealable));
    }

    #[test]
    fn no_bit_can_be_changed() {
        let sealer = Sealer::random();
        let sealed = sealer.seal(b"x", b"", later(600));
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut forged = bytes.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            let forged = URL_SAFE_NO_PAD.encode(forged);
            assert_eq!(sealer.open(&forged, b"", NOW), Err(Unsealable), "bit {bit}");
        }
        for text in ["", "A", "not base64!", "AAAA"] {
            assert_eq!(sealer.open(text, b"", NOW), Err(Unsealable));
        }
    }

    #[test]
    fn no_key_seals_two_texts() {
        let (bytes, mut salts) = ([7; 32], std::collections::HashSet::new());
        let sealer = Sealer::new(&[bytes]);
        let ours = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).unwrap());
        for _ in 0..1_000 {
            let whole = URL_SAFE_NO_PAD.decode(sealer.seal(b"x", b"", later(600))).unwrap();
            let (head, body) = whole.split_at(whole.len() - 8 - 1 - 16);
            let nonce = head[head.len() - NONCE_LEN..].try_into().unwrap();
            let nonce = Nonce::assume_unique_for_key(nonce);
            assert!(ours.open_in_place(nonce, Aad::empty(), &mut body.to_vec()).is_err());
            assert!(salts.insert(head[2..head.len() - NONCE_LEN].to_vec()));
        }
    }

    #[test]
    fn many_texts_share_a_key_and_never_a_nonce() {
        let (keys, mut nonces) = ([[7; 32], [8; 32]], std::collections::HashSet::new());
        let (many, other) = (Sealer::new(&keys).for_many(), Sealer::new(&keys));
        for _ in 0..1_000 {
            let sealed = many.seal(b"x", b"context", later(600));
            assert_eq!(other.open(&sealed, b"context", NOW).unwrap(), b"x");
            assert_eq!(many.open(&sealed, b"context", NOW).unwrap(), b"x");
            assert_eq!(many.open(&sealed, b"another", NOW), Err(Unsealable));
            assert_eq!(many.open(&sealed, b"context", later(600)), Err(Unsealable));
            let whole = URL_SAFE_NO_PAD.decode(sealed).unwrap();
            assert!(nonces.insert(whole[2..HEAD].to_vec()), "a salt with a nonce comes once");
        }
        let salts: std::collections::HashSet<_> = nonces.iter().map(|it| &it[..SALT]).collect();
        assert_eq!(salts.len(), 1);
        let sealed = other.seal(b"y", b"", later(600));
        assert_eq!(many.open(&sealed, b"", NOW).unwrap(), b"y");
    }

    #[test]
    fn an_older_key_still_opens() {
        let (old, new) = ([1; 32], [2; 32]);
        let sealed = Sealer::new(&[old]).seal(b"x", b"", later(600));
        assert_eq!(Sealer::new(&[new, old]).open(&sealed, b"", NOW).unwrap(), b"x");
        assert_eq!(Sealer::new(&[new]).open(&sealed, b"", NOW), Err(Unsealable));
    }

    #[test]
    fn random_names_differ() {
        let sealer = Sealer::random();
        let names: std::collections::HashSet<_> = (0..1000).map(|_| sealer.random_name()).collect();
        assert_eq!(names.len(), 1000);
    }
}
