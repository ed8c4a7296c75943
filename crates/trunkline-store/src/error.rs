//! Why a store operation failed.

use std::fmt;

/// Why a store operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached or its medium failed; the text is a sentence that says why. A write
    /// may or may not have happened.
    Unavailable(String),
    /// The key (or the name of a lease or a channel) is empty or too long.
    BadKey {
        /// How many bytes it has.
        length: usize,
        /// How many it may have.
        most: usize,
    },
    /// The value or message is too large.
    TooLarge {
        /// How many bytes it has.
        size: usize,
        /// How many it may have.
        most: usize,
    },
    /// There is no room. Nothing is evicted to make some.
    Full {
        /// What there is too much of: `entries`, `bytes` or `listeners`.
        what: &'static str,
        /// How many there may be; 0 if only the store's server knows.
        most: usize,
    },
    /// The TTL is zero.
    ZeroTtl,
    /// The value of the key is no number and cannot be counted.
    NotANumber,
    /// The sum does not fit into 64 bits. The number stays as it was.
    OutOfRange,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable(why) => f.write_str(why),
            StoreError::BadKey { length, most } => write!(
                f,
                "A key has 1 to {most} bytes, this one {length}; shorten it or name something."
            ),
            StoreError::TooLarge { size, most } => write!(
                f,
                "The value has {size} bytes and at most {most} are allowed; store less or raise the bound."
            ),
            StoreError::Full { what, most: 0 } => write!(
                f,
                "The store has no room for more {what}; delete some, let some expire or give it more room."
            ),
            StoreError::Full { what, most } => write!(
                f,
                "The store is full: it may hold {most} {what}; delete some, let some expire or raise the bound."
            ),
            StoreError::ZeroTtl => {
                f.write_str("A time to live of zero keeps nothing; give a longer one, or none.")
            }
            StoreError::NotANumber => f.write_str(
                "What lies under the key is no whole number and cannot be counted; use another key.",
            ),
            StoreError::OutOfRange => f.write_str(
                "The sum does not fit into 64 bits; the number stays as it was. Delete it to start anew.",
            ),
        }
    }
}

impl std::error::Error for StoreError {}
