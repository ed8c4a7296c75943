//! Rules of trust, without a socket.
//!
//! It contains [`seal`]: strings that a peer carries for us and can neither read nor change;
//! [`digest`]: proof that bytes are the expected ones; and [`Principal`]: the authenticated caller.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use trunkline_auth::{Principal, seal::Sealer};
//!
//! let (sealer, now) = (Sealer::random(), SystemTime::now());
//! let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
//! let sealed = sealer.seal(b"page 2", alice.id().as_bytes(), now + Duration::from_secs(60));
//! assert!(sealer.open(&sealed, alice.id().as_bytes(), now).is_ok());
//! assert!(sealer.open(&sealed, bob.id().as_bytes(), now).is_err());
//! ```

#![forbid(unsafe_code)]

/// A struct whose fields the crate sees, and what each is unless somebody sets it.
#[doc(hidden)]
#[macro_export]
macro_rules! settings {
    ($(#[$attr:meta])* pub struct $Name:ident {
        $($(#[$doc:meta])* $field:ident: $Type:ty = $value:expr,)*
    }) => {
        $(#[$attr])*
        pub struct $Name { $($(#[$doc])* pub(crate) $field: $Type,)* }

        impl $Name {
            fn unset() -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}

/// Methods of a builder that do one thing to one field: `name(argument: Type) { field = value }`.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($argument:tt)*) { $($change:tt)* })*) => { $(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $($argument)*) -> Self {
            self.$($change)*;
            self
        }
    )* };
}

/// Makes a type an error that says a sentence: the one it holds, or what the function returns.
macro_rules! error_in_words {
    ($Name:ident) => {
        error_in_words! { $Name, |it| &it.0 }
    };
    ($Name:ident, $words:expr) => {
        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let words: fn(&Self) -> &str = $words;
                f.write_str(words(self))
            }
        }

        impl std::error::Error for $Name {}
    };
}
use error_in_words;

pub mod address;
pub mod challenge;
#[cfg(feature = "oauth")]
pub mod client;
pub mod credentials;
pub mod digest;
#[cfg(feature = "oauth")]
pub mod dpop;
pub mod fetch;
#[cfg(feature = "oauth")]
mod issuer;
#[cfg(feature = "oauth")]
pub mod jose;
#[cfg(feature = "oauth")]
pub mod metadata;
mod principal;
#[cfg(feature = "oauth")]
pub mod resource;
pub mod scope;
pub mod seal;
pub mod tag;
pub mod url;

pub use principal::Principal;
