//! A client's login: discovery, registration, authorization, tokens, and their storage.
//!
//! [`OAuth`] is set up once per server and then used by the transport through
//! [`Credentials`](crate::credentials::Credentials). It gets its HTTP client, its storage and its
//! way to show a page: [`Fetch`](crate::fetch::Fetch), [`Vault`](vault::Vault) and
//! [`Browser`](browser::Browser).
//!
//! ```
//! use trunkline_auth::client::{ClientAuth, Grant, OAuth};
//!
//! // A person logs in, with whatever way of registration the authorization server has.
//! let person = OAuth::new("https://mcp.example/mcp").client_name("My editor");
//! // A machine has its own credentials.
//! let machine = OAuth::new("https://mcp.example/mcp")
//!     .grant(Grant::ClientCredentials(ClientAuth::secret("nightly-report", "…")));
//! assert_eq!(person.server_url(), machine.server_url());
//! ```

mod authorize;
mod authorize_request;
pub mod browser;
mod decide;
mod detached;
mod discovery;
mod error;
mod grant;
mod login;
mod machine;
mod oauth;
mod refresh;
mod register;
mod reuse;
mod store;
mod token;
pub mod vault;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use error::AuthError;
pub use grant::{ClientAuth, Enterprise, Grant, TokenSource};
pub use login::{Login, Reregistration, Step};
pub use oauth::OAuth;
use register::Client;

/// A stored login. It has no `Debug`: nearly all of it is secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    server: String,
    issuer: String,
    resource: String,
    client: Client,
    access: String,
    /// Whether the access token is bound to a key.
    is_bound: bool,
    refresh: Option<String>,
    /// When the access token expires, in seconds since 1970.
    expires: Option<u64>,
    /// When to refresh it: a little before.
    renew: Option<u64>,
    requested: String,
    granted: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    /// The DPoP key of this login: PKCS #8 in base64.
    key: Option<String>,
    subject: Option<String>,
}
