//! The credentials of a client's requests, as its transport sees them.

use std::fmt;

use crate::fetch::Pending;

/// Adds credentials to requests, and obtains others when they are refused.
pub trait Credentials: Send + Sync + 'static {
    /// The headers of this request; none if there are no credentials yet.
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>>;

    /// The server answered 401 or 403. `Ok` if a retry is worthwhile, with the then current
    /// [`headers`](Self::headers).
    fn refused<'a>(&'a self, to: Target<'a>, refusal: Refused<'a>, people: Asked<'a>) -> Retry<'a>;

    /// The response had this value of `DPoP-Nonce`.
    fn nonce(&self, to: Target<'_>, nonce: &str);
}

/// Called with `true` when a login begins to wait for a person, and `false` when it ends. Without
/// it, no person may be asked to log in.
pub type People<'a> = dyn Fn(bool) + Send + Sync + 'a;

/// Whether a person may be asked, and who is told so.
pub type Asked<'a> = Option<&'a People<'a>>;

/// Whether a refused request is worth sending once more.
pub type Retry<'a> = Pending<'a, Result<(), Denied>>;

/// Names in lower case, and values that are never shown.
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
    /// The headers it was sent with: another caller may have obtained newer credentials meanwhile.
    pub sent: &'a Headers,
    /// How often this request was refused, this time included.
    pub times: u32,
}

/// No credentials are available.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// In words, safe to show.
    pub why: String,
    /// Whether a person's login would help.
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
