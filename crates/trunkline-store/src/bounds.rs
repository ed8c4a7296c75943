//! Every bound on what a store may cost, in one struct.

use std::time::Duration;

use crate::{StoreError, Ttl};

macro_rules! bounds {
    ($($(#[$doc:meta])* $name:ident: $default:expr;)*) => {
        /// The bounds of a store. A write beyond them is refused.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Bounds {
            $($(#[$doc])* pub $name: usize,)*
        }

        impl Default for Bounds {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Bounds {
            $(
                #[doc = concat!("The same bounds with another `", stringify!($name), "`.")]
                #[must_use]
                pub fn $name(mut self, value: usize) -> Self {
                    self.$name = value;
                    self
                }
            )*
        }
    };
}

bounds! {
    /// The longest key, in bytes: 1 KiB.
    key: 1 << 10;
    /// The largest value, in bytes: 16 MiB, like the longest message.
    value: 16 << 20;
    /// Entries and leases at once: 100,000.
    entries: 100_000;
    /// The bytes of all keys and values together, with the overhead of holding them: 256 MiB.
    bytes: 256 << 20;
    /// Entries in one page of a scan: 1,000.
    page: 1_000;
    /// The size at which a page of a scan ends: 16 MiB. The entry that reaches it is included.
    page_bytes: 16 << 20;
    /// The largest message of a channel, in bytes: 64 KiB.
    message: 64 << 10;
    /// How many messages a listener may be behind: 256.
    queue: 256;
    /// Listeners at once: 1,024.
    listeners: 1_024;
}

impl Bounds {
    pub(crate) fn check_key(&self, key: &str) -> Result<(), StoreError> {
        match key.len() {
            length if length == 0 || length > self.key => {
                Err(StoreError::BadKey { length, most: self.key })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_value(&self, value: &[u8]) -> Result<(), StoreError> {
        most(value.len(), self.value)
    }

    pub(crate) fn check_message(&self, message: &[u8]) -> Result<(), StoreError> {
        most(message.len(), self.message)
    }

    pub(crate) fn check_total(&self, entries: usize, bytes: usize) -> Result<(), StoreError> {
        if entries > self.entries {
            return Err(StoreError::Full { what: "entries", most: self.entries });
        }
        if bytes > self.bytes {
            return Err(StoreError::Full { what: "bytes", most: self.bytes });
        }
        Ok(())
    }

    pub(crate) fn page_limit(&self, limit: usize) -> usize {
        limit.clamp(1, self.page.max(1))
    }
}

pub(crate) fn check_ttl(ttl: Ttl) -> Result<(), StoreError> {
    if ttl == Some(Duration::ZERO) { Err(StoreError::ZeroTtl) } else { Ok(()) }
}

fn most(size: usize, most: usize) -> Result<(), StoreError> {
    if size > most { Err(StoreError::TooLarge { size, most }) } else { Ok(()) }
}
