//! Checks a server at a URL: name resolution, connection, TLS, login, handshake and lists.

use std::sync::Arc;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use trunkline::Limits;
use trunkline::client::{Client, ClientBuilder, ConnectCause, OpenError};
use trunkline_auth::url::shown;
use trunkline_gateway::catalog::plan::{Outward, Reach, ServerPlan};

use super::stages::Stages;
use super::{identity, offers};
use crate::logins::{Logins, StoredLogin, certificate};
use crate::words::as_word;

pub(super) async fn check(server: &ServerPlan, stages: &mut Stages) {
    let Reach::Http { url, headers, roots, auth } = &server.reach else { return };
    let Some((is_secure, host, port)) = authority(url) else {
        return stages.bad(
            "url",
            format!("`{}` is no URL.", shown(url)),
            "Write https://HOST/PATH.",
        );
    };
    if !reach(&host, port, stages).await {
        return;
    }
    let limits =
        Limits::default().init_deadline(server.timeouts.start).call_deadline(server.timeouts.call);
    let mut builder = Client::builder("trunkline-doctor", env!("CARGO_PKG_VERSION"))
        .limits(limits)
        .protocols(server.revisions);
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    for file in roots {
        builder = match certificate(file) {
            Ok(pem) => builder.root_certificate(&pem),
            Err(failure) => return stages.bad("tls", failure.cause, "Check `rootCertificates`."),
        };
    }
    let builder = match credentials(builder, url, auth).await {
        Ok(builder) => builder,
        Err((why, advice)) => return stages.bad("auth", why, advice),
    };
    stages.begin();
    let client = match builder.connect_http(url).await {
        Ok(client) => client,
        Err(error) => {
            let advice = error.advice().unwrap_or_default();
            let ConnectCause::Handshake(cause) = &error.cause else {
                return stages.bad("handshake", format!("{:?}", error.cause), advice);
            };
            return refused(url, is_secure, !headers.is_empty(), cause, advice, stages);
        }
    };
    if is_secure {
        stages.fine("tls", "its certificate is in order");
    }
    stages.fine("http", "it answers");
    stages.fine("auth", let_in(auth, headers));
    stages.fine("handshake", identity(&client));
    offers(&client, stages).await;
    stages.begin();
    let _ = client.close().await;
    stages.fine("stop", "the session is over");
}

/// Resolves the name and opens a connection; whether that succeeded.
async fn reach(host: &str, port: u16, stages: &mut Stages) -> bool {
    stages.begin();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<_> = match timeout(PATIENCE, lookup_host((bare, port))).await {
        Ok(Ok(found)) => found.collect(),
        Ok(Err(error)) => {
            let why = format!("`{host}` has no address: {error}.");
            stages.bad("dns", why, "Check the name, and that this machine has a network.");
            return false;
        }
        Err(_) => {
            stages.bad("dns", "Nobody answered in time.", "Check the name server of this machine.");
            return false;
        }
    };
    let texts: Vec<_> = found.iter().map(|it| it.ip().to_string()).collect();
    stages.fine("dns", texts.join(", "));
    let mut last = "there is no address".to_owned();
    for address in found {
        match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(_)) => {
                stages.fine("tcp", address.to_string());
                return true;
            }
            Ok(Err(error)) => last = format!("{address}: {error}"),
            Err(_) => last = format!("{address}: nobody answered in time"),
        }
    }
    stages.bad("tcp", format!("{last}."), "Check the port, and that the server is running.");
    false
}

/// A failed connection: the stage that failed, and the stages before it.
fn refused(
    url: &str,
    is_secure: bool,
    has_headers: bool,
    cause: &OpenError,
    advice: &str,
    stages: &mut Stages,
) {
    let login = format!(
        "`trunkline login {}`, and `auth: {{ type: login }}` in the catalog.",
        as_word(url)
    );
    if let (OpenError::Unreachable(why), true) = (cause, is_secure) {
        return stages.bad("tls", why, advice);
    }
    if is_secure {
        stages.fine("tls", "its certificate is in order");
    }
    match cause {
        OpenError::Http(error) if matches!(error.status, 401 | 403) => {
            stages.fine("http", format!("status {}", error.status));
            let advice = match has_headers {
                true => format!("Check the headers in the catalog, or {login}"),
                false => login,
            };
            stages.bad("auth", error.to_string(), advice);
        }
        OpenError::Http(error) => stages.bad("http", error.to_string(), advice),
        OpenError::Credentials(why) => {
            stages.fine("http", "it answers");
            stages.bad("auth", why, login);
        }
        OpenError::Unreachable(why) => stages.bad("http", why, advice),
        other => {
            stages.fine("http", "it answers");
            stages.bad("handshake", other.to_string(), advice);
        }
    }
}

async fn credentials(
    builder: ClientBuilder,
    url: &str,
    auth: &Outward,
) -> Result<ClientBuilder, (String, String)> {
    match auth {
        Outward::Headers => Ok(builder),
        Outward::ClientCredentials { client_id, client_secret, .. } => {
            Ok(builder.client_credentials(client_id, client_secret))
        }
        Outward::Login | Outward::PerUser(_) => {
            let fail = |why: String| (why, format!("`trunkline login {}`", as_word(url)));
            let logins = Logins::open().map_err(|it| fail(it.cause))?;
            let Some(profile) = logins.find(url).await.map_err(|it| fail(it.cause))? else {
                return Err(fail(format!("Nobody is logged in to `{}`.", shown(url))));
            };
            let oauth = logins.way_in(&profile).await.map_err(|it| fail(it.cause))?;
            Ok(builder.credentials(Arc::new(StoredLogin::new(oauth)) as _))
        }
    }
}

fn let_in(auth: &Outward, headers: &[(String, String)]) -> &'static str {
    match auth {
        Outward::Login => "by a login",
        Outward::PerUser(_) => "by a login of each user's own; this one is the operator's",
        Outward::ClientCredentials { .. } => "as a machine",
        Outward::Headers if headers.is_empty() => "it asks for nothing",
        Outward::Headers => "with the headers of the catalog",
    }
}

/// Whether it is https, the host and the port.
fn authority(url: &str) -> Option<(bool, String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let is_secure = scheme.eq_ignore_ascii_case("https");
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let usual = if is_secure { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    (!host.is_empty()).then(|| (is_secure, host.to_owned(), port))
}

/// The time-out of name resolution and connecting.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::authority;

    #[test]
    fn hosts_and_ports_are_found_in_urls() {
        for (url, expected) in [
            ("https://a.example/mcp", Some((true, "a.example", 443))),
            ("http://a.example:8080?x", Some((false, "a.example", 8080))),
            ("http://[::1]:1/", Some((false, "[::1]", 1))),
            ("http://[::1]/", Some((false, "[::1]", 80))),
            ("https://me:pw@a.example", Some((true, "a.example", 443))),
            ("http://a:x/", None),
            ("a.example", None),
        ] {
            let expected = expected.map(|(secure, host, port)| (secure, host.to_owned(), port));
            assert_eq!(authority(url), expected, "{url}");
        }
    }
}
