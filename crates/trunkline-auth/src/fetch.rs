//! The one effect of this crate: an HTTP request that its user makes.
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

/// A boxed future.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes requests. It decides itself what it may reach.
pub trait Fetch: Send + Sync + 'static {
    /// Makes one request and reads the whole response, within its own limits. Follows redirects for
    /// GET only, and checks each hop like the first.
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>>;

    /// The time of day.
    fn now(&self) -> SystemTime;

    /// Spawns `work`, which runs to its end even if the returned future is dropped: the response to
    /// a token request must be stored even if its caller was cancelled. The returned future ends
    /// with the work. The default implementation spawns nothing: then the work ends with its
    /// caller.
    fn detach(&self, work: Pending<'static, ()>) -> Pending<'static, ()> {
        work
    }
}

/// A request to be made.
#[derive(Clone, PartialEq, Eq)]
pub struct Ask {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The URL as it was found: not normalized.
    pub url: String,
    /// Names in any case.
    pub headers: Vec<(&'static str, String)>,
    /// Empty for a GET.
    pub body: Vec<u8>,
}

impl Ask {
    /// A GET for a JSON document.
    pub fn get(url: impl Into<String>) -> Self {
        let headers = vec![("accept", "application/json".to_owned())];
        Self { method: "GET", url: url.into(), headers, body: Vec::new() }
    }

    /// A POST of a form.
    pub fn form(url: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        Self::post(url, "application/x-www-form-urlencoded", url::form(fields))
    }

    /// A POST of JSON.
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
    /// Omits headers and body, which contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, url::shown(&self.url))
    }
}

/// A response.
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
    /// A response without headers.
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
    /// Omits the body, which may contain tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The address may not be reached: refused before any connection. In words.
    Forbidden(String),
    /// The connection failed, or the response was truncated or too long. In words.
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
