//! A URL and HTTP options → a client over HTTP.

#[cfg(feature = "auth")]
use std::sync::Arc;

#[cfg(feature = "auth")]
use trunkline_auth::address::{Guard, Reach};
#[cfg(feature = "auth")]
use trunkline_auth::client::ClientAuth;
#[cfg(feature = "auth")]
use trunkline_auth::credentials::Credentials;
#[cfg(feature = "http")]
use trunkline_transport::connection::Connection;
#[cfg(feature = "http")]
use trunkline_transport::http::client::HttpTarget;

#[cfg(feature = "http")]
use super::{Client, ClientBuilder, ConnectError, Responder, Transport};
#[cfg(feature = "auth")]
use crate::auth;

/// Options that only matter over HTTP.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub(super) struct Http {
    headers: Vec<(String, String)>,
    forgets: bool,
    /// PEM files.
    #[cfg(feature = "tls")]
    roots: Vec<Vec<u8>>,
    #[cfg(feature = "auth")]
    login_method: Option<LoginMethod>,
    /// The issuer that credentials are for.
    #[cfg(feature = "auth")]
    issuer: Option<String>,
    #[cfg(feature = "auth")]
    reach: Option<Reach>,
}

/// How a client authenticates.
#[cfg(feature = "auth")]
#[derive(Clone)]
enum LoginMethod {
    Given(Arc<dyn Credentials>),
    Person,
    Machine(ClientAuth),
}

impl std::fmt::Debug for Http {
    /// Omits the values of headers, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("Http");
        shown.field("headers", &headers);
        #[cfg(feature = "auth")]
        shown.field("credentials", &self.login_method.is_some());
        shown.finish_non_exhaustive()
    }
}

#[cfg(feature = "auth")]
impl Http {
    /// The credentials for the server at `url`.
    fn credentials(&self, name: &str, url: &str) -> Option<Arc<dyn Credentials>> {
        let login = match self.login_method.as_ref()? {
            LoginMethod::Given(credentials) => return Some(Arc::clone(credentials)),
            LoginMethod::Person => auth::oauth(url).client_name(name),
            LoginMethod::Machine(client) => auth::machine(url, client.clone()).client_name(name),
        };
        let login = login.fetch(Arc::new(self.fetch(url)));
        Some(Arc::new(match &self.issuer {
            Some(issuer) => login.for_issuer(issuer),
            None => login,
        }))
    }

    fn fetch(&self, url: &str) -> auth::HttpFetch {
        let guard = Guard::for_server(url).allow(self.reach.unwrap_or(Reach::Public));
        let fetch = auth::HttpFetch::new(guard);
        // A certificate trusted for the server is trusted for its authorization server too.
        #[cfg(feature = "tls")]
        let fetch = self.roots.iter().fold(fetch, |it, pem| it.root_certificate(pem.clone()));
        fetch
    }
}

#[cfg(feature = "http")]
impl<H: Responder> ClientBuilder<H> {
    /// Sends a header with every HTTP request, such as `Authorization`. It is never sent to another
    /// origin, not even after a redirect.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.http.headers.push((name.into(), value.into()));
        self
    }

    /// Trusts this root certificate, such as a company's own, besides the public ones. One or more
    /// certificates in PEM. Connecting reports an invalid one.
    ///
    /// ```
    /// # use trunkline::Client; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let builder = Client::builder("example", "1.0.0").root_certificate(b"not a certificate");
    /// let error = builder.connect_http("https://127.0.0.1:9/mcp").await.unwrap_err();
    /// assert_eq!(error.stage(), "handshake");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[cfg(feature = "tls")]
    pub fn root_certificate(mut self, pem: &[u8]) -> Self {
        self.http.roots.push(pem.to_vec());
        self
    }

    /// Credentials for requests, asked again whenever the server refuses one: an
    /// [`OAuth`](crate::auth::OAuth), or your own. They are never sent to another origin.
    ///
    /// ```
    /// # use std::sync::Arc; use trunkline::{Client, auth};
    /// let login = auth::oauth("https://mcp.example/mcp").scopes(["files:read"]);
    /// let builder = Client::builder("example", "1.0.0").credentials(Arc::new(login));
    /// assert!(format!("{builder:?}").contains("credentials"));
    /// ```
    #[cfg(feature = "auth")]
    pub fn credentials(mut self, credentials: Arc<dyn Credentials>) -> Self {
        self.http.login_method = Some(LoginMethod::Given(credentials));
        self
    }

    /// Logs the user in when the server requires it: a browser opens, and the login is stored for
    /// the next time. See [`auth::oauth`](crate::auth::oauth), whose parts can be replaced.
    #[cfg(feature = "auth")]
    pub fn login(mut self) -> Self {
        self.http.login_method = Some(LoginMethod::Person);
        self
    }

    /// Logs in with this client's own credentials, without a person. They are sent only to the
    /// issuer that [`for_issuer`](Self::for_issuer) names. See
    /// [`auth::machine`](crate::auth::machine) for a login with a key instead of a secret.
    ///
    /// ```
    /// # use trunkline::Client;
    /// let builder = Client::builder("report", "1.0.0")
    ///     .client_credentials("report", "s3cret")
    ///     .for_issuer("https://id.example");
    /// assert!(!format!("{builder:?}").contains("s3cret"));
    /// ```
    #[cfg(feature = "auth")]
    pub fn client_credentials(
        mut self,
        client_id: impl Into<String>,
        client_secret: impl Into<String>,
    ) -> Self {
        self.http.login_method =
            Some(LoginMethod::Machine(ClientAuth::secret(client_id, client_secret)));
        self
    }

    /// The issuer that [`client_credentials`](Self::client_credentials) are for, or that a
    /// [`login`](Self::login) must use. A server that names another issuer is refused.
    #[cfg(feature = "auth")]
    pub fn for_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.http.issuer = Some(issuer.into());
        self
    }

    /// The least reach of a login's requests. The server names its authorization server, so these
    /// requests go to public addresses only, unless the URL itself leads to a private network or to
    /// this machine. A server whose public name resolves to a private address needs this.
    ///
    /// ```
    /// # use trunkline::Client;
    /// use trunkline::auth::address::Reach;
    ///
    /// let builder = Client::builder("My editor", "1.0.0").login().login_reach(Reach::Private);
    /// # let _ = builder;
    /// ```
    #[cfg(feature = "auth")]
    pub fn login_reach(mut self, reach: Reach) -> Self {
        self.http.reach = Some(reach);
        self
    }

    /// Probes the server again, whatever this process remembers of it. By default a server that
    /// turned out to be an old one is remembered as such for a day.
    pub fn ask_anew(mut self) -> Self {
        self.http.forgets = true;
        self
    }

    /// Connects to a server at a URL: over Streamable HTTP in the newest revision that it supports,
    /// or over the HTTP+SSE of 2024-11-05.
    ///
    /// ```
    /// # use trunkline::{Client, Server, server::bind};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("empty", "1.0.0").build();
    /// let listener = bind("127.0.0.1:0").await?;
    /// let url = format!("http://{}/mcp", listener.local_addr()?);
    /// tokio::spawn(server.http().serve(listener, std::future::pending()));
    /// let client = Client::builder("example", "1.0.0").connect_http(url).await?;
    /// assert_eq!(client.server_info().unwrap().name, "empty");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn connect_http(mut self, url: impl Into<String>) -> Result<Client, ConnectError> {
        self.observe.set_transport(Transport::Http);
        let whole: String = url.into();
        let mut target = HttpTarget::new(&*whole);
        let url = target.shown();
        for (name, value) in &self.http.headers {
            target = target.header(name, value);
        }
        #[cfg(feature = "tls")]
        for pem in &self.http.roots {
            target = target.root_certificate(pem.clone());
        }
        #[cfg(feature = "auth")]
        if let Some(credentials) = self.http.credentials(&self.info.name, &whole) {
            target = target.credentials(credentials);
        }
        if self.http.forgets {
            target = target.verdicts(None);
        }
        let (config, answers, ready) = self.prepare(self.revisions);
        let opened = Connection::open_http(config, answers, target, self.limits.clone()).await;
        let connection = opened.map_err(|error| ConnectError::http(error, &url))?;
        let client = ready.join(connection);
        client.begin(self.log_level).await;
        Ok(client)
    }
}

#[cfg(all(test, feature = "auth"))]
mod tests {
    use super::*;

    #[test]
    fn a_login_goes_where_the_url_leads_or_as_far_as_it_is_allowed() {
        for (url, reach, expected) in [
            ("https://mcp.corp.example/mcp", None, "Public"),
            ("https://mcp.corp.example/mcp", Some(Reach::Private), "Private"),
            ("https://10.0.0.7/mcp", None, "Private"),
            ("http://localhost:3000/mcp", Some(Reach::Private), "Local"),
        ] {
            let http = Http { reach, ..Http::default() };
            let guard = format!("{:?}", http.fetch(url));
            assert!(guard.contains(expected), "{url} {reach:?}: {guard}");
        }
    }
}
