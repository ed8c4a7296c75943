//! What a gate says of a request: who is let in, or why nobody is.

use std::fmt;

use crate::Principal;

/// A request that is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admission {
    /// For whom.
    pub principal: Principal,
    /// The value of `DPoP-Nonce` for the answer: the client's is about to end.
    pub nonce: Option<String>,
}

impl Admission {
    /// For somebody, without more.
    pub fn new(principal: Principal) -> Self {
        Self { principal, nonce: None }
    }
}

/// Why a request is not let in, and how it could be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// 401, 403, or 503 if nobody can say.
    pub status: u16,
    /// The code of the error, if there is one.
    pub error: Option<&'static str>,
    /// In words, for the client.
    pub description: String,
    /// The value of `WWW-Authenticate`.
    pub challenge: Option<String>,
    /// The value of `DPoP-Nonce`.
    pub nonce: Option<String>,
    /// In words, for who runs the server: never for the client.
    pub cause: Option<String>,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

impl std::error::Error for Denied {}
