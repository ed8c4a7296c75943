//! A server over HTTP behind a gate: it checks the token before it reads anything else of a
//! request, in every revision and on every path.
//!
//! ```
//! use trunkline::server::protect::{JwtIssuer, Protect};
//! use trunkline::{Principal, Server, tool};
//!
//! let whoami = tool("whoami", async |who: Principal| who.subject);
//! let delete = tool("delete", async || "It is gone.").scopes(["files:write"]);
//! let server = Server::builder("files", "1.0.0").tool(whoami).tool(delete).build();
//! let protect = Protect::new("https://mcp.example/mcp")
//!     .jwt(JwtIssuer::new("https://id.example/realms/files"))
//!     .scopes_required(["mcp"]);
//! let http = server.http().allow_host("mcp.example").protect(protect)?;
//! # let _ = http;
//! # Ok::<(), trunkline::server::protect::Misconfigured>(())
//! ```
//!
//! - An admitted caller is a [`Principal`](crate::Principal). Handlers take it, `visible` gets it,
//!   and sessions, streams, tasks, cursors and sealed states belong to it. For other callers they
//!   do not exist.
//! - A refused caller learns how to get in from a challenge (401, or 403 for scopes) and from the
//!   metadata at `/.well-known/oauth-protected-resource`, with and without the path of the resource
//!   (RFC 9728 §3).
//! - Tokens are read from the `Authorization` header only. They never reach handlers, servers
//!   behind this one, or logs.
//! - [Pages](super::Http::page) need no token.

use std::sync::Arc;

use trunkline_auth::address::{Guard, Reach};
pub use trunkline_auth::jose::{Algorithm, Jwks};
pub use trunkline_auth::resource::{
    Dpop, Gate, Introspection, JwtIssuer, Misconfigured, Protect, Replays,
};
pub use trunkline_auth::scope::Hierarchy;
use trunkline_transport::auth::HttpFetch;

use super::Http;

impl Http {
    /// Admits only requests with a valid token. Keys and introspection results are fetched from the
    /// issuers named here, also on a private network or on this machine, because only this
    /// configuration names them. For an issuer with a private certificate authority, set
    /// [`Protect::root_certificate`]. [`Self::gate`] takes a gate with another way to fetch.
    ///
    /// ```
    /// # use trunkline::{Server, server::protect::Protect};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let protect = Protect::new("http://localhost/mcp")
    ///     .api_key("build-robot", "pQ7-lVhCgW2kXr9bTz4n", ["files:read"]);
    /// let http = Server::builder("files", "1.0.0").build().http().protect(protect)?;
    /// let request = http::Request::get("http://localhost/mcp").body(String::new())?;
    /// let answer = http.service().answer(request).await;
    /// assert_eq!(answer.status(), 401);
    /// assert_eq!(
    ///     answer.headers()["www-authenticate"],
    ///     "Bearer resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\"",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn protect(self, protect: Protect) -> Result<Self, Misconfigured> {
        #[cfg(feature = "replicas")]
        let protect = match &self.server.0.0.replicas {
            Some(replicas) => replicas.share_proofs(protect),
            None => protect,
        };
        let fetch = HttpFetch::new(Guard::new(Reach::Local));
        let roots = protect.root_certificates().iter();
        let fetch = roots.fold(fetch, |fetch, pem| fetch.root_certificate(pem.as_str()));
        Ok(self.gate(Gate::new(protect, Arc::new(fetch))?))
    }

    /// Admits only the requests that this gate admits.
    pub fn gate(mut self, gate: impl Into<Arc<Gate>>) -> Self {
        self.settings.gate = Some(gate.into());
        self
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use trunkline_auth::resource::HeadView;

    use super::*;
    use crate::Server;

    #[tokio::test]
    async fn issuers_are_asked_with_the_certificates_of_the_company() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("https://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        let ask = Introspection::new(format!("{origin}/introspect"), "mcp", "secret");
        let protect = Protect::new("https://mcp.example/mcp").introspection(ask);
        let with_root = protect.clone().root_certificate("no certificate");
        let missing = "a root file that was given holds no certificate";
        for (protect, is_read) in [(protect, false), (with_root, true)] {
            let http = Server::builder("files", "1").build().http().protect(protect).unwrap();
            let headers = [("authorization", &b"Bearer opaque"[..])];
            let head = HeadView::new("POST", "/mcp", None, headers);
            let denied = http.settings.gate.unwrap().admit(head).await.unwrap_err();
            let cause = denied.cause.unwrap();
            assert!(cause.contains(&format!("Connecting to `{origin}` failed")), "{cause}");
            assert_eq!(cause.contains(missing), is_read, "{cause}");
        }
    }
}
