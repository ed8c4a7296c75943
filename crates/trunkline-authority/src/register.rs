//! Metadata of a client → a client that is known from now on (RFC 7591).

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use trunkline_auth::digest::sha256;
use trunkline_auth::jose::Jwks;
use trunkline_auth::tag::random_name;

use crate::client::{Client, Grant, Method, Proof};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::message::{Request, Response};
use crate::redirect;

impl Desk {
    /// Registers a client that asks for it.
    pub(crate) fn register(&mut self, request: &Request) -> Result<Response, Fault> {
        let content = request.first("content-type").unwrap_or_default();
        if !content.starts_with("application/json") {
            return Err(wrong("The metadata has to be `application/json`."));
        }
        // What is kept is never more than this; what is ignored counts all the same.
        if request.body.len() > LARGEST {
            let why = format!("The metadata is longer than {LARGEST} bytes; say less.");
            return Err(wrong(why));
        }
        let metadata: Value = serde_json::from_slice(&request.body)
            .map_err(|_| wrong("The metadata is not JSON."))?;
        let id = format!("client-{}", random_name());
        let mut client = self.client_of(&id, &metadata, "client_secret_basic")?;
        let mut secret = None;
        if let Proof::Secret { digest, .. } = &mut client.proof {
            let made = format!("{}{}", random_name(), random_name());
            *digest = sha256(made.as_bytes());
            secret = Some(made);
        }
        let now = request.now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut answer = json!({
            "client_id": id,
            "client_id_issued_at": now,
            "redirect_uris": client.redirects,
            "token_endpoint_auth_method": client.method(),
            "grant_types": client.grants.iter().map(|it| it.name()).collect::<Vec<_>>(),
            "response_types": ["code"],
        });
        for member in ["client_name", "client_uri", "application_type", "jwks"] {
            if let Some(value) = metadata.get(member) {
                answer[member] = value.clone();
            }
        }
        if let Some(scopes) = &client.scopes {
            answer["scope"] = scopes.join(" ").into();
        }
        if let Some(secret) = secret {
            answer["client_secret"] = secret.into();
            answer["client_secret_expires_at"] = 0.into();
        }
        let until = request.now + REMEMBERED;
        self.clients.put(id, Some(client), until, request.now)?;
        self.stats.registrations += 1;
        Ok(Response::of(201, &answer).unkept())
    }

    /// The client that metadata describes. It may use codes and refresh tokens, nothing that works
    /// without a person.
    pub(crate) fn client_of(
        &self,
        id: &str,
        metadata: &Value,
        method: &str,
    ) -> Result<Client, Fault> {
        if !metadata.is_object() {
            return Err(wrong("The metadata is not a JSON object."));
        }
        let kind = text(metadata, "application_type")?;
        if kind.is_some_and(|kind| !matches!(kind, "native" | "web")) {
            return Err(wrong("`application_type` is neither `native` nor `web`."));
        }
        let redirects = texts(metadata, "redirect_uris")?.unwrap_or_default();
        if redirects.is_empty() || redirects.len() > 20 {
            let why = "`redirect_uris` has to be a list of one to twenty URIs.";
            return Err(Fault::new("invalid_redirect_uri", why));
        }
        for uri in &redirects {
            redirect::acceptable(uri, kind)
                .map_err(|why| Fault::new("invalid_redirect_uri", why))?;
        }
        let asked = texts(metadata, "grant_types")?;
        let asked = asked.unwrap_or_else(|| vec![Grant::Code.name().to_owned()]);
        let grants = [Grant::Code, Grant::Refresh];
        let grants: Vec<_> =
            grants.into_iter().filter(|it| asked.iter().any(|asked| asked == it.name())).collect();
        if !grants.contains(&Grant::Code) {
            return Err(wrong("`grant_types` has to hold `authorization_code`."));
        }
        if texts(metadata, "response_types")?.is_some_and(|it| it.iter().all(|it| it != "code")) {
            return Err(wrong("`response_types` has to hold `code`."));
        }
        let proof = match text(metadata, "token_endpoint_auth_method")?.unwrap_or(method) {
            "none" => Proof::None,
            "client_secret_basic" => secret(Method::Basic),
            "client_secret_post" => secret(Method::Post),
            "private_key_jwt" => Proof::Keys(Arc::new(keys(metadata)?)),
            _ => return Err(wrong("`token_endpoint_auth_method` is none that this server has.")),
        };
        // Whoever registers chooses: a limit of its own would protect nobody, and a client that later
        // needs more could not ask for it. So it may ask for everything, and the answer says so.
        let scopes = text(metadata, "scope")?.map(|_| self.settings.scopes.clone());
        let name = text(metadata, "client_name")?.map(redirect::shown);
        let id = id.to_owned();
        Ok(Client { id, name, proof, redirects, scopes, grants, introspects: false })
    }
}

fn secret(method: Method) -> Proof {
    Proof::Secret { digest: String::new(), method: Some(method) }
}

fn keys(metadata: &Value) -> Result<Jwks, Fault> {
    let keys = metadata.get("jwks").map(Value::to_string);
    let keys = keys.and_then(|it| Jwks::parse(it.as_bytes()).ok());
    keys.filter(|it| !it.keys().is_empty()).ok_or_else(|| {
        wrong("`private_key_jwt` needs `jwks` with at least one key; `jwks_uri` is not fetched.")
    })
}

fn text<'a>(metadata: &'a Value, name: &str) -> Result<Option<&'a str>, Fault> {
    match metadata.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_str().map(Some).ok_or_else(|| wrong(format!("`{name}` is not a text.")))
        }
    }
}

fn texts(metadata: &Value, name: &str) -> Result<Option<Vec<String>>, Fault> {
    let wrong = || wrong(format!("`{name}` is not a list of texts."));
    match metadata.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let list = value.as_array().ok_or_else(wrong)?.iter();
            let list = list.map(|it| it.as_str().map(str::to_owned).ok_or_else(wrong));
            list.collect::<Result<_, _>>().map(Some)
        }
    }
}

fn wrong(why: impl Into<String>) -> Fault {
    Fault::new("invalid_client_metadata", why)
}

/// The longest metadata, so that all clients together fit into memory.
const LARGEST: usize = 8 * 1024;
/// How long a registered client is known.
const REMEMBERED: Duration = Duration::from_secs(90 * 24 * 3600);
