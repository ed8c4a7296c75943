//! The demo behind a login: its own authorization server, and the gate that trusts it.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use trunkline::auth::HttpFetch;
use trunkline::server::protect::{Dpop, Hierarchy, JwtIssuer, Protect};
use trunkline::server::{Http, ServerBuilder};
use trunkline::{Principal, tool};
use trunkline_authority::{Authority, Client, Serving, Settings};

/// Who may log in to the demo, and how.
#[derive(clap::Args)]
pub(crate) struct Login {
    /// Lets in only those who log in, at a demonstration of an authorization server beside the
    /// demo. Not for production.
    #[arg(long, requires = "http")]
    auth: bool,
    /// The address of the authorization server. The default is the next port.
    #[arg(long, value_name = "ADDR", requires = "auth")]
    auth_address: Option<SocketAddr>,
    /// The name of a user who may log in. The default is `alice` and `bob`.
    #[arg(long, value_name = "NAME", requires = "auth")]
    auth_user: Vec<String>,
    /// Asks nobody: every login is approved at once, as this user.
    #[arg(long, value_name = "NAME", requires = "auth")]
    auth_approve: Option<String>,
    /// A program that may log in for itself, with its secret.
    #[arg(long, value_name = "ID:SECRET", requires = "auth")]
    auth_client: Vec<String>,
}

impl Login {
    pub(crate) fn is_on(&self) -> bool {
        self.auth
    }

    /// The users, including the one of `--auth-approve`.
    fn users(&self) -> Vec<String> {
        let mut users = self.auth_user.clone();
        if users.is_empty() {
            users = vec!["alice".to_owned(), "bob".to_owned()];
        }
        if let Some(user) = self.auth_approve.as_ref().filter(|it| !users.contains(it)) {
            users.push(user.clone());
        }
        users
    }

    fn settings(&self, resource: &str) -> Result<Settings> {
        let settings = Settings::new()
            .users(self.users())
            .scopes([ENTER, WRITE])
            .resource(resource)
            .client_documents();
        let mut settings = match &self.auth_approve {
            Some(user) => settings.approve_as(user),
            None => settings,
        };
        for client in &self.auth_client {
            let Some((id, secret)) = client.split_once(':') else {
                bail!("`--auth-client {client}` has no secret. Write it as `ID:SECRET`.");
            };
            let client = Client::new(id).secret(secret).redirect("http://127.0.0.1/callback");
            settings = settings.client(client);
        }
        Ok(settings)
    }
}

/// A demo behind a login.
pub(crate) struct Protected {
    pub(crate) http: Http,
    authority: Serving,
    users: Vec<String>,
    approves: Option<String>,
}

impl Protected {
    /// Starts an authorization server, and admits only its tokens. `asked` is the configured
    /// address of the demo, and `address` the actual one.
    pub(crate) async fn start(
        http: Http,
        (asked, address): (SocketAddr, SocketAddr),
        options: &Login,
    ) -> Result<Self> {
        let at = options.auth_address.unwrap_or_else(|| beside(asked));
        for address in [address, at] {
            if !address.ip().is_loopback() {
                bail!(
                    "`{address}` can be reached from other machines, and the demo's authorization \
                     server asks for no password. Serve both at `127.0.0.1`."
                );
            }
        }
        // It includes both paths, `/mcp` and `/sse`.
        let resource = format!("http://{address}/");
        let settings = options.settings(&resource)?;
        let listener = trunkline::server::bind(at).await.with_context(|| {
            format!(
                "The authorization server cannot listen at `{at}`; choose with `--auth-address`"
            )
        })?;
        let issuer = format!("http://{}", listener.local_addr()?);
        let protect = Protect::new(resource)
            .jwt(JwtIssuer::new(&*issuer).jwks_url(format!("{issuer}/jwks")))
            .scopes_required([ENTER])
            .scopes_supported([ENTER, WRITE])
            .hierarchy(Hierarchy::from([(WRITE, [ENTER])]))
            .dpop(Dpop::Accept)
            .name("The trunkline demo");
        let http = http.protect(protect)?;
        // Client metadata documents are fetched; a client on this machine may be fetched from it.
        let fetch = Arc::new(HttpFetch::for_server(&issuer));
        let authority = Serving::start(Authority::new(issuer, settings), listener, Some(fetch))?;
        let approves = options.auth_approve.clone();
        Ok(Self { http, authority, users: options.users(), approves })
    }

    /// Prints how to log in.
    pub(crate) fn announce(&self, resource: &str) {
        let (issuer, users) = (self.authority.issuer(), self.users.join("`, `"));
        let mut text = format!(
            "Log in with `trunkline login {resource}`, as `{users}`.\n\
             The authorization server {issuer} is a demonstration: not for production.\n"
        );
        if let Some(user) = &self.approves {
            text += &format!(
                "Every login is approved at once, as `{user}`: also one that a web page begins.\n"
            );
        }
        // A server does not end with the reader of its stderr.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Adds what only a protected demo can show.
pub(crate) fn register(server: ServerBuilder) -> ServerBuilder {
    server.tool(tool("whoami", whoami).about("Says who you are logged in as, and what you may do."))
}

async fn whoami(who: Principal) -> String {
    format!("{} may {}", who.subject, who.scopes.join(", "))
}

/// The next port, or any if the port is 0.
fn beside(address: SocketAddr) -> SocketAddr {
    let port = if address.port() == 0 { 0 } else { address.port().wrapping_add(1) };
    SocketAddr::new(address.ip(), port)
}

/// The scope that every client of the demo needs.
const ENTER: &str = "demo";
/// The scope that clients need in addition to notify others of changes.
pub(crate) const WRITE: &str = "demo:write";
