//! What lets the requests of a client in, as its transport sees it.

use std::fmt;

use crate::fetch::Pending;

/// Gives requests what lets them in, and finds more when that is refused.
pub trait Credentials: Send + Sync + 'static {
    /// The headers of this request; none if nothing is known yet.
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>>;

    /// The request came back with 401 or 403. `Ok` if it is worth sending once more, with the
    /// [`headers`](Self::headers) of then.
    fn refused<'a>(&'a self, to: Target<'a>, refusal: Refused<'a>, people: Asked<'a>) -> Retry<'a>;

    /// The request came back with this value of `DPoP-Nonce`.
    fn nonce(&self, to: Target<'_>, nonce: &str);
}

/// Is told `true` when a person is waited for, and `false` when no longer. Where there is none,
/// nobody may be asked to log in.
pub type People<'a> = dyn Fn(bool) + Send + Sync + 'a;

/// Whether a person may be asked, and who is told so.
pub type Asked<'a> = Option<&'a People<'a>>;

/// Whether a refused request is worth sending once more.
pub type Retry<'a> = Pending<'a, Result<(), Denied>>;

/// Names in lower case, values that are never shown.
pub type Headers = Vec<(&'static str, String)>;

/// A request to the server.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// The whole URL.
    pub url: &'a str,
}

/// How a request was refused.
#[derive(Clone, Copy)]
pub struct Refused<'a> {
    /// 401 or 403.
    pub status: u16,
    /// Every value of `WWW-Authenticate`.
    pub challenges: &'a [String],
    /// What it was sent with: somebody else may have found something newer meanwhile.
    pub sent: &'a Headers,
    /// How often this very request was refused, this time included.
    pub times: u32,
}

/// Nothing lets the request in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// In words, safe to show.
    pub why: String,
    /// Whether a person who logs in would help.
    pub needs_login: bool,
}

impl Denied {
    /// No login would help.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs_login: false }
    }

    /// A person has to log in.
    pub fn login(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs_login: true }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Denied {}
