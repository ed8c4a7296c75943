//! The answer of a gate: the principal of a request, or why it is denied.

use std::fmt;

use crate::Principal;

/// An admitted request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admission {
    /// Its principal.
    pub principal: Principal,
    /// The value of `DPoP-Nonce` for the response: the client's nonce is about to expire.
    pub nonce: Option<String>,
}

impl Admission {
    /// Admits this principal.
    pub fn new(principal: Principal) -> Self {
        Self { principal, nonce: None }
    }
}

/// Why a request is denied, and how it could be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// 401, 403, or 503 if the token cannot be checked.
    pub status: u16,
    /// The code of the error, if there is one.
    pub error: Option<&'static str>,
    /// In words, for the client.
    pub description: String,
    /// The value of `WWW-Authenticate`.
    pub challenge: Option<String>,
    /// The value of `DPoP-Nonce`.
    pub nonce: Option<String>,
    /// For the operator, in words: never for the client.
    pub cause: Option<String>,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

impl std::error::Error for Denied {}
