//! What a gate says of a request: who is let in, or why nobody is.

use std::fmt;

use crate::Principal;

/// A request that is let in.
///
/// ```
/// use trunkline_auth::{Principal, resource::Admission};
///
/// let admission = Admission::new(Principal::new("alice"));
/// assert_eq!((&*admission.principal.subject, admission.nonce), ("alice", None));
/// ```
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
    ///
    /// ```
    /// # use trunkline_auth::{Principal, resource::Admission};
    /// assert_eq!(Admission::new(Principal::new("alice")).principal, Principal::new("alice"));
    /// ```
    pub fn new(principal: Principal) -> Self {
        Self { principal, nonce: None }
    }
}

/// Why a request is not let in, and how it could be.
///
/// ```
/// # use std::sync::Arc; use trunkline_auth::{Principal, resource::{Gate, Protect}};
/// # use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
/// # struct Nobody;
/// # impl Fetch for Nobody {
/// #     fn fetch(&self, _: Ask) -> Pending<'_, Result<Answer, FetchError>> { unreachable!() }
/// #     fn now(&self) -> std::time::SystemTime { std::time::SystemTime::now() }
/// # }
/// # let protect = Protect::new("https://a.example/mcp").api_key("x", "0123456789abcdef", ["a"]);
/// # let gate = Gate::new(protect, Arc::new(Nobody)).unwrap();
/// let denied = gate.needs(&Principal::new("alice"), &["write".to_owned()]).unwrap_err();
/// assert_eq!((denied.status, denied.error), (403, Some("insufficient_scope")));
/// assert_eq!(denied.to_string(), "The token lacks the scope `write`.");
/// ```
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
