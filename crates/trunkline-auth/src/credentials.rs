//! What lets the requests of a client in, as its transport sees it.

use std::fmt;

use crate::fetch::Pending;

/// Gives requests what lets them in, and finds more when that is refused.
///
/// ```
/// use trunkline_auth::credentials::{Credentials, Denied, Headers, People, Refused, Target};
/// use trunkline_auth::fetch::Pending;
///
/// /// A token that was handed out once and for all.
/// struct Badge(&'static str);
///
/// impl Credentials for Badge {
///     fn headers<'a>(&'a self, _: Target<'a>) -> Pending<'a, Result<Headers, Denied>> {
///         Box::pin(async { Ok(vec![("authorization", format!("Bearer {}", self.0))]) })
///     }
///     fn refused<'a>(
///         &'a self,
///         _: Target<'a>,
///         _: Refused<'a>,
///         _: Option<&'a People<'a>>,
///     ) -> Pending<'a, Result<(), Denied>> {
///         Box::pin(async { Err(Denied::new("The badge is no good.")) })
///     }
///     fn nonce(&self, _: Target<'_>, _: &str) {}
/// }
/// # let to = Target { method: "POST", url: "https://mcp.example/mcp" };
/// let _headers = Badge("b-1").headers(to);
/// ```
pub trait Credentials: Send + Sync + 'static {
    /// The headers of this request; none if nothing is known yet.
    ///
    /// ```
    /// # use trunkline_auth::credentials::{Credentials, Denied, Headers, Target};
    /// async fn before(who: &dyn Credentials) -> Result<Headers, Denied> {
    ///     who.headers(Target { method: "POST", url: "https://mcp.example/mcp" }).await
    /// }
    /// ```
    fn headers<'a>(&'a self, to: Target<'a>) -> Pending<'a, Result<Headers, Denied>>;

    /// The request came back with 401 or 403. `Ok` if it is worth sending once more, with the
    /// [`headers`](Self::headers) of then.
    ///
    /// ```
    /// # use trunkline_auth::credentials::{Credentials, Denied, Headers, Refused, Target};
    /// /// Tries once more, without asking anybody to log in.
    /// async fn after(who: &dyn Credentials, sent: &Headers) -> Result<(), Denied> {
    ///     let to = Target { method: "POST", url: "https://mcp.example/mcp" };
    ///     who.refused(to, Refused { status: 401, challenges: &[], sent, times: 1 }, None).await
    /// }
    /// ```
    fn refused<'a>(
        &'a self,
        to: Target<'a>,
        refusal: Refused<'a>,
        people: Option<&'a People<'a>>,
    ) -> Pending<'a, Result<(), Denied>>;

    /// The request came back with this value of `DPoP-Nonce`.
    ///
    /// ```
    /// # use trunkline_auth::credentials::{Credentials, Target};
    /// fn heard(who: &dyn Credentials) {
    ///     who.nonce(Target { method: "POST", url: "https://mcp.example/mcp" }, "n-2");
    /// }
    /// ```
    fn nonce(&self, to: Target<'_>, nonce: &str);
}

/// Is told `true` when a person is waited for, and `false` when no longer. Where there is none,
/// nobody may be asked to log in.
///
/// ```
/// # use trunkline_auth::credentials::People;
/// let people: &People<'_> = &|waits| assert!(waits);
/// people(true);
/// ```
pub type People<'a> = dyn Fn(bool) + Send + Sync + 'a;

/// Names in lower case, values that are never shown.
///
/// ```
/// # use trunkline_auth::credentials::Headers;
/// let headers: Headers = vec![("authorization", "Bearer b-1".to_owned())];
/// assert_eq!(headers.len(), 1);
/// ```
pub type Headers = Vec<(&'static str, String)>;

/// A request to the server.
///
/// ```
/// # use trunkline_auth::credentials::Target;
/// let to = Target { method: "POST", url: "https://mcp.example/mcp" };
/// assert_eq!(to.method, "POST");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// The whole URL.
    pub url: &'a str,
}

/// How a request was refused.
///
/// ```
/// # use trunkline_auth::credentials::Refused;
/// let challenges = ["Bearer".to_owned()];
/// let refused = Refused { status: 401, challenges: &challenges, sent: &Vec::new(), times: 1 };
/// assert_eq!(refused.status, 401);
/// ```
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
///
/// ```
/// # use trunkline_auth::credentials::Denied;
/// let denied = Denied::login("`https://mcp.example/mcp` wants a login.");
/// assert!(denied.needs_login);
/// assert_eq!(denied.to_string(), "`https://mcp.example/mcp` wants a login.");
/// ```
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
    ///
    /// ```
    /// # use trunkline_auth::credentials::Denied;
    /// assert!(!Denied::new("The badge is no good.").needs_login);
    /// ```
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs_login: false }
    }

    /// A person has to log in.
    ///
    /// ```
    /// # use trunkline_auth::credentials::Denied;
    /// assert!(Denied::login("Log in first.").needs_login);
    /// ```
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
