//! How long a result stays fresh, and for whom.

use serde::{Deserialize, Serialize};

/// What a server says about keeping a result.
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// let hint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Private };
/// assert_eq!(hint, CacheHint::private(60_000));
/// assert_eq!(CacheHint::default(), CacheHint::NONE);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheHint {
    /// Milliseconds after receipt during which the result may be used again.
    pub ttl_ms: u64,
    /// Who may share it.
    pub scope: CacheScope,
}

/// Who may share a kept result.
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// assert_eq!(Json::of(&CacheScope::Public).get(), r#""public""#);
/// assert_eq!(CacheScope::default(), CacheScope::Private);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Anyone.
    Public,
    /// Only the authorization context that asked.
    #[default]
    Private,
}

impl CacheHint {
    /// Not to be kept at all: what holds when nothing is said.
    pub const NONE: Self = Self { ttl_ms: 0, scope: CacheScope::Private };

    /// Fresh for `ttl_ms`, for anyone.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// let hint = CacheHint::public(5_000);
    /// assert_eq!((hint.ttl_ms, hint.scope), (5_000, CacheScope::Public));
    /// ```
    pub const fn public(ttl_ms: u64) -> Self {
        Self { ttl_ms, scope: CacheScope::Public }
    }

    /// Fresh for `ttl_ms`, for the asking context only.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// const MINE: CacheHint = CacheHint::private(1_000);
    /// assert_ne!(MINE, CacheHint::public(1_000));
    /// ```
    pub const fn private(ttl_ms: u64) -> Self {
        Self { ttl_ms, scope: CacheScope::Private }
    }
}

impl CacheScope {
    /// The scope as it stands on the wire.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// assert_eq!(CacheScope::Private.as_str(), "private");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

impl Default for CacheHint {
    fn default() -> Self {
        Self::NONE
    }
}
