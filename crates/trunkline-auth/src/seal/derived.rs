//! Derived keys that are used more than once: one that seals, and those that opened something lately.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::aead::{LessSafeKey, NONCE_LEN};

use super::{Once, SALT};

/// The keys that are kept.
#[derive(Default)]
pub(super) struct Derived {
    sealing: Mutex<Option<Sealing>>,
    /// The one that was kept last is at the end.
    opening: Mutex<VecDeque<Opening>>,
}

/// The key that seals, and how many texts it has sealed.
struct Sealing {
    key: Arc<LessSafeKey>,
    salt: [u8; SALT],
    texts: u32,
}

/// A key that was derived from the key of this number with this salt.
struct Opening {
    number: usize,
    salt: [u8; SALT],
    key: Arc<LessSafeKey>,
}

impl Derived {
    /// What seals the next text. Its nonce is its number, which no other text with this salt has.
    pub(super) fn next(&self, derive: impl FnOnce() -> Once) -> Once {
        let mut sealing = lock(&self.sealing);
        if sealing.as_ref().is_none_or(|it| it.texts >= MOST_TEXTS) {
            let Once { key, salt, .. } = derive();
            *sealing = Some(Sealing { key, salt, texts: 0 });
        }
        let it = sealing.as_mut().expect("it was just set");
        it.texts += 1;
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 4..].copy_from_slice(&it.texts.to_be_bytes());
        Once { key: Arc::clone(&it.key), salt: it.salt, nonce }
    }

    /// The key that was kept for a salt.
    pub(super) fn find(&self, number: usize, salt: &[u8; SALT]) -> Option<Arc<LessSafeKey>> {
        let opening = lock(&self.opening);
        let found = opening.iter().rfind(|it| it.number == number && it.salt == *salt);
        found.map(|it| Arc::clone(&it.key))
    }

    /// Keeps a key that opened a text.
    pub(super) fn keep(&self, number: usize, salt: [u8; SALT], key: Arc<LessSafeKey>) {
        let mut opening = lock(&self.opening);
        if opening.len() >= MOST_KEYS {
            opening.pop_front();
        }
        opening.push_back(Opening { number, salt, key });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many texts one derived key seals.
const MOST_TEXTS: u32 = 1 << 20;
/// How many keys are kept: one for each process whose texts are opened.
const MOST_KEYS: usize = 64;
