//! Names that nobody can guess, and short proofs that a name was given out by us.

use ring::hmac::{Context, HMAC_SHA256, Key};
use ring::rand::{SecureRandom, SystemRandom};

/// Computes proofs with a key of its own.
#[derive(Clone, Debug)]
pub struct Tagger(Key);

impl Tagger {
    /// A tagger whose key lives as long as this process.
    pub fn random() -> Self {
        Self(Key::generate(HMAC_SHA256, &SystemRandom::new()).expect(RANDOM))
    }

    /// The proof for `place` within `scope`: the first 64 bits of an HMAC over both.
    pub fn tag(&self, scope: &str, place: &[u8]) -> u64 {
        let mut context = Context::with_key(&self.0);
        context.update(&(scope.len() as u64).to_be_bytes());
        context.update(scope.as_bytes());
        context.update(place);
        first(context.sign().as_ref())
    }
}

/// 128 random bits, as 32 letters and digits.
pub fn random_name() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect(RANDOM);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

fn first(tag: &[u8]) -> u64 {
    u64::from_be_bytes(tag[..8].try_into().expect("a tag has 32 bytes"))
}

const RANDOM: &str = "the operating system hands out random bytes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_depends_on_all_of_it() {
        let tagger = Tagger::random();
        let tag = tagger.tag("session", &[1, 2]);
        assert_eq!(tag, tagger.tag("session", &[1, 2]));
        assert_ne!(tag, tagger.tag("session", &[1, 3]));
        assert_ne!(tag, tagger.tag("sessiom", &[1, 2]));
        assert_ne!(tag, tagger.tag("session\u{1}", &[2]));
        assert_ne!(tag, Tagger::random().tag("session", &[1, 2]));
    }

    #[test]
    fn names_are_never_the_same() {
        let names: std::collections::HashSet<_> = (0..10_000).map(|_| random_name()).collect();
        assert_eq!(names.len(), 10_000);
        assert!(names.iter().all(|it| it.len() == 32));
    }
}
