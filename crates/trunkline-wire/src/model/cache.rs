//! The cache hint of a result: how long it stays fresh, and for whom.

use serde::{Deserialize, Serialize};

/// The cache hint of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheHint {
    /// The TTL: milliseconds after receipt during which the result may be reused.
    pub ttl_ms: u64,
    /// Who may share it.
    pub scope: CacheScope,
}

/// Who may share a cached result.
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
    /// Not cacheable: the default.
    pub const NONE: Self = Self { ttl_ms: 0, scope: CacheScope::Private };

    /// Fresh for `ttl_ms`, for anyone.
    pub const fn public(ttl_ms: u64) -> Self {
        Self { ttl_ms, scope: CacheScope::Public }
    }

    /// Fresh for `ttl_ms`, for the requesting context only.
    pub const fn private(ttl_ms: u64) -> Self {
        Self { ttl_ms, scope: CacheScope::Private }
    }
}

impl CacheScope {
    /// The scope as it is on the wire.
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
