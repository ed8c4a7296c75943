//! Looks up an API key in constant time.

use ring::hmac;
use ring::rand::SystemRandom;

use super::protect::ApiKey;
use crate::Principal;

/// API keys, of which only tags are kept.
pub(crate) struct ApiKeys {
    key: hmac::Key,
    known: Vec<(hmac::Tag, Principal)>,
}

impl ApiKeys {
    pub(crate) fn new(keys: Vec<ApiKey>) -> Self {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .expect("the operating system hands out random bytes");
        let known = keys.into_iter().map(|it| {
            let mut principal = Principal::new(it.name);
            principal.scopes = it.scopes.as_slice().to_vec();
            (hmac::sign(&key, it.secret.as_bytes()), principal)
        });
        let known = known.collect();
        Self { key, known }
    }

    /// Compares every key in constant time, whichever matches.
    pub(crate) fn find(&self, token: &str) -> Option<Principal> {
        let fits =
            |tag: &hmac::Tag| hmac::verify(&self.key, token.as_bytes(), tag.as_ref()).is_ok();
        let found = self.known.iter().fold(
            None,
            |found, (tag, principal)| {
                if fits(tag) { Some(principal) } else { found }
            },
        );
        found.cloned()
    }
}
