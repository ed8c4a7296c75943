//! The suite's protected servers → a client that is let in by its own right.
//!
//! No person is there: the page that would be shown is fetched, and says where it leads at once.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline::auth::browser::{Browser, Visit};
use trunkline::auth::jose::{Algorithm, SigningKey};
use trunkline::auth::{
    ClientAuth, Enterprise, Grant, HttpFetch, MemoryVault, OAuth, Pending, TokenSource,
};
use trunkline::client::Client;

use super::{Failure, Order, tools};

/// What lets the client in, set up with what the scenario gives it.
pub(super) fn credentials(order: &Order) -> Result<OAuth, Failure> {
    let given = |name: &str| text(&order.context, name);
    // Most scenarios do not say whose clients they give: whoever the server names has to do.
    let oauth = OAuth::new(&order.url)
        .trust_first_issuer()
        .client_name("trunkline-conformance")
        .fetch(Arc::new(HttpFetch::for_server(&order.url)))
        .vault(Arc::new(MemoryVault::new()))
        .browser(Arc::new(Nobody));
    // Nobody can fetch that document, and there the suite looks at what a client registers with.
    let oauth = match order.scenario.starts_with("auth/offline-access") {
        true => oauth,
        false => oauth.client_metadata_url(METADATA),
    };
    Ok(match order.scenario.as_str() {
        "auth/pre-registration" => {
            let oauth = oauth.client_id(given("client_id")?).client_secret(given("client_secret")?);
            // Older suites do not say whose client it is.
            match given("issuer") {
                Ok(issuer) => oauth.for_issuer(issuer),
                Err(_) => oauth,
            }
        }
        "auth/client-credentials-basic" => {
            let client = ClientAuth::secret(given("client_id")?, given("client_secret")?);
            oauth.grant(Grant::ClientCredentials(client))
        }
        "auth/client-credentials-jwt" => {
            let name = given("signing_algorithm")?;
            let algorithm = Algorithm::parse(&name)
                .ok_or_else(|| Failure::new(format!("`{name}` is no algorithm of ours.")))?;
            let key = SigningKey::from_pem(&given("private_key_pem")?, algorithm)
                .map_err(|error| Failure::new(error.to_string()))?;
            let client = ClientAuth::private_key(given("client_id")?, key);
            oauth.grant(Grant::ClientCredentials(client))
        }
        "auth/enterprise-managed-authorization" => {
            let enterprise = Enterprise::new(
                given("idp_issuer")?,
                ClientAuth::public(given("idp_client_id")?),
                TokenSource::fixed(given("idp_id_token")?),
                ClientAuth::secret(given("client_id")?, given("client_secret")?),
            );
            let enterprise = enterprise.idp_token_endpoint(given("idp_token_endpoint")?);
            oauth.grant(Grant::Enterprise(enterprise))
        }
        "auth/wif-jwt-bearer" => oauth.grant(Grant::Assertion {
            client: ClientAuth::public(given("client_id")?),
            assertion: TokenSource::fixed(given("valid_jwt")?),
        }),
        _ => oauth,
    })
}

/// Uses the server, so that every check of the scenario has something to look at.
pub(super) async fn play(client: &Client) -> Result<(), Failure> {
    tools::list(client).await?;
    tools::call(client, "test-tool").await?;
    // By now the server may have moved to another authorization server.
    tools::list(client).await?;
    tools::call(client, "test-tool").await
}

fn text(context: &Value, name: &str) -> Result<String, Failure> {
    let value = context[name].as_str().map(str::to_owned);
    value.ok_or_else(|| Failure::new(format!("The suite gives no `{name}`.")))
}

/// Looks at the page and says yes.
struct Nobody;

impl Browser for Nobody {
    fn prepare<'a>(
        &'a self,
        redirect_uris: &'a [String],
    ) -> Pending<'a, Result<Box<dyn Visit>, String>> {
        let uri = redirect_uris.first().map_or(REDIRECT, String::as_str).to_owned();
        Box::pin(async move { Ok(Box::new(Look(uri)) as Box<dyn Visit>) })
    }
}

struct Look(String);

impl Visit for Look {
    fn redirect_uri(&self) -> &str {
        &self.0
    }

    fn go(self: Box<Self>, url: String) -> Pending<'static, Result<String, String>> {
        Box::pin(async move {
            let location = location(&url).await.map_err(|error| format!("{url}: {error}."))?;
            let location = location.ok_or("The page leads nowhere.")?;
            let query = location.split_once('?').map(|(_, query)| query.to_owned());
            query.ok_or_else(|| "The page leads back without a word.".to_owned())
        })
    }
}

/// Where a page of this machine redirects to.
async fn location(url: &str) -> std::io::Result<Option<String>> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let mut stream = TcpStream::connect(authority).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(64 << 10).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let fields = answer.lines().take_while(|line| !line.is_empty());
    let found = fields.filter_map(|line| line.split_once(':'));
    let found = found.filter(|(name, _)| name.eq_ignore_ascii_case("location"));
    Ok(found.map(|(_, value)| value.trim().to_owned()).next())
}

const METADATA: &str = "https://conformance-test.local/client-metadata.json";
const REDIRECT: &str = "http://127.0.0.1:3000/callback";
