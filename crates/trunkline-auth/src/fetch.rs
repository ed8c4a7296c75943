//! The one effect of this crate: a request that somebody else makes.
//!
//! ```
//! use trunkline_auth::fetch::{Answer, Ask};
//!
//! let ask = Ask::form("https://id.example/token", &[("grant_type", "refresh_token")]);
//! assert_eq!(ask.body, b"grant_type=refresh_token");
//! let answer = Answer::new(200, "{}").header("DPoP-Nonce", "n-1");
//! assert_eq!(answer.first("dpop-nonce"), Some("n-1"));
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::SystemTime;

use crate::url;

/// Something that will be there later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes requests. What it may reach is its own business.
pub trait Fetch: Send + Sync + 'static {
    /// Makes one request and reads the whole answer, within bounds of its own. Redirects are
    /// followed for GET alone, and each hop is checked like the first.
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>>;

    /// The time of day.
    fn now(&self) -> SystemTime;

    /// Begins `work`, which goes on to its end even if what comes back is dropped: a token that
    /// was asked for is kept, though nobody waits for it any more. What comes back ends when the
    /// work has. Whoever cannot do this leaves it as it is: then the work ends with its caller.
    fn detach(&self, work: Pending<'static, ()>) -> Pending<'static, ()> {
        work
    }
}

/// A request to be made.
#[derive(Clone, PartialEq, Eq)]
pub struct Ask {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Where, as it was found: not normalised.
    pub url: String,
    /// Names in any case.
    pub headers: Vec<(&'static str, String)>,
    /// Empty for a GET.
    pub body: Vec<u8>,
}

impl Ask {
    /// Asks for a JSON document.
    pub fn get(url: impl Into<String>) -> Self {
        let headers = vec![("accept", "application/json".to_owned())];
        Self { method: "GET", url: url.into(), headers, body: Vec::new() }
    }

    /// Sends a form.
    pub fn form(url: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        Self::post(url, "application/x-www-form-urlencoded", url::form(fields))
    }

    /// Sends a JSON text.
    pub fn json(url: impl Into<String>, text: impl Into<String>) -> Self {
        Self::post(url, "application/json", text.into())
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn post(url: impl Into<String>, content: &str, body: String) -> Self {
        let headers =
            vec![("accept", "application/json".to_owned()), ("content-type", content.to_owned())];
        Self { method: "POST", url: url.into(), headers, body: body.into_bytes() }
    }
}

impl fmt::Debug for Ask {
    /// Without headers and body, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, url::shown(&self.url))
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer without headers.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// The first header of this name, which is in lower case.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| &**value)
    }

    /// Whether the status is one of success.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for Answer {
    /// Without the body, which may hold tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The address may not be reached: refused before anybody was called. In words.
    Forbidden(String),
    /// Nobody was reached, or the answer broke off or was too long. In words.
    Failed(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for FetchError {}
