//! Logins: the credentials that a client sends to servers that require them.
//!
//! A server that requires a login says where; the rest is automatic. [`oauth`] makes a login with
//! everything that a program on a user's machine needs:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use trunkline::{Client, auth};
//!
//! let url = "https://mcp.example/mcp";
//! let login = auth::oauth(url).client_name("My editor").scopes(["files:read"]);
//! let client = Client::builder("editor", "1.0.0").credentials(Arc::new(login)).connect_http(url).await?;
//! # Ok(()) }
//! ```
//!
//! The first refused request opens a browser. The login is stored for the next time and refreshed
//! as long as the authorization server allows. `Client::builder(..).login()` is a shorthand for it.
//!
//! - **Without a user**: [`Grant::ClientCredentials`], or
//!   [`client_credentials`](crate::client::ClientBuilder::client_credentials) for short; with a key
//!   instead of a secret: [`ClientAuth::private_key`]. [`Grant::Assertion`] presents the platform's
//!   token for a workload, [`Grant::Enterprise`] the identity token of a company's single sign-on.
//! - **Where logins are stored**: [`FileVault`], [`KeyringVault`], [`MemoryVault`], or a [`Vault`]
//!   of yours.
//! - **How pages are shown**: [`Loopback`], or a [`Browser`](browser::Browser) of yours.
//! - **Where requests may go**: a server names the URLs of its login. URLs on this machine or on a
//!   private network are refused unless the server is there itself: [`address::Guard`].
//! - **Whom secrets are for**: the issuer that [`OAuth::for_issuer`] names, and no other.
//! - **Without OAuth**: [`Credentials`](credentials::Credentials) of yours, or a
//!   [`header`](crate::client::ClientBuilder::header).
//!
//! A server that checks tokens is made with [`server::protect`](crate::server::protect).

use std::sync::Arc;

pub use trunkline_auth::client::{
    AuthError, ClientAuth, Enterprise, Grant, Login, OAuth, Reregistration, Step, TokenSource,
};
pub use trunkline_auth::client::{browser, vault};
pub use trunkline_auth::fetch::Pending;
pub use trunkline_auth::{address, credentials, fetch, jose};
pub use trunkline_transport::auth::{FileVault, HttpFetch, KeyringVault, Loopback, MemoryVault};

use vault::{Vault, VaultError};

/// The login of a program on a user's machine: it opens a browser and stores the login in
/// [`FileVault::usual`]. Each part can be replaced.
///
/// ```
/// use std::sync::Arc;
/// use trunkline::auth::{self, Loopback, MemoryVault};
///
/// let login = auth::oauth("https://mcp.example/mcp")
///     .client_name("My editor")
///     .vault(Arc::new(MemoryVault::new()))
///     .browser(Arc::new(Loopback::new().tell(|url| eprintln!("Log in at {url}"))));
/// assert!(login.needs_person());
/// ```
pub fn oauth(url: impl Into<String>) -> OAuth {
    let url = url.into();
    let vault: Arc<dyn Vault> = match FileVault::usual() {
        Ok(vault) => Arc::new(vault),
        Err(error) => Arc::new(NoVault(error)),
    };
    let fetch = Arc::new(HttpFetch::for_server(&url));
    OAuth::new(url).fetch(fetch).vault(vault).browser(Arc::new(Loopback::new()))
}

/// The login of a program that has its own credentials. It is kept in memory only, because the
/// program can log in again at any time. The server names its issuer, so a secret needs
/// [`for_issuer`](OAuth::for_issuer) to say which issuer may get it.
///
/// ```
/// use trunkline::auth::{self, ClientAuth};
///
/// let login = auth::machine("https://mcp.example/mcp", ClientAuth::secret("report", "s3cret"))
///     .for_issuer("https://id.example");
/// assert!(!login.needs_person() && !format!("{login:?}").contains("s3cret"));
/// ```
pub fn machine(url: impl Into<String>, client: ClientAuth) -> OAuth {
    let url = url.into();
    let fetch = Arc::new(HttpFetch::for_server(&url));
    OAuth::new(url)
        .fetch(fetch)
        .vault(Arc::new(MemoryVault::new()))
        .grant(Grant::ClientCredentials(client))
}

/// The vault of a user without a folder for logins: every use is an error that says so.
struct NoVault(VaultError);

impl NoVault {
    fn refuse<T: Send + 'static>(&self) -> Pending<'_, Result<T, VaultError>> {
        Box::pin(async { Err(self.0.clone()) })
    }
}

impl Vault for NoVault {
    fn get<'a>(&'a self, _: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        self.refuse()
    }

    fn put<'a>(&'a self, _: &'a str, _: &'a str) -> Pending<'a, Result<(), VaultError>> {
        self.refuse()
    }

    fn remove<'a>(&'a self, _: &'a str) -> Pending<'a, Result<(), VaultError>> {
        self.refuse()
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        self.refuse()
    }

    fn lock<'a>(&'a self, _: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        self.refuse()
    }
}
