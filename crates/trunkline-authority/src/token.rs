//! The token endpoint: something that was granted → tokens.

mod assertion;
mod code;
mod exchange;
mod refresh;

use serde_json::Value;

use crate::client::{Client, Grant};
use crate::desk::{Desk, Terms};
use crate::fault::Fault;
use crate::fields::Fields;
use crate::message::{Request, Response};
use crate::mint::unkept;

/// A token request whose client and key are known.
struct Asked<'a> {
    request: &'a Request,
    fields: &'a Fields,
    /// None where an assertion speaks for itself.
    client: Option<Client>,
    /// The key that the tokens will be bound to.
    jkt: Option<String>,
}

impl Desk {
    pub(crate) fn token(&mut self, request: &Request) -> Result<Response, Fault> {
        self.stats.token_requests += 1;
        let fields = form(request)?;
        let name = fields.need("grant_type")?;
        let grant = Grant::parse(name).filter(|it| self.grants().contains(it));
        let Some(grant) = grant else {
            let why = "This `grant_type` is not offered here.";
            return Err(Fault::new("unsupported_grant_type", why));
        };
        let client = self.identify(request, &fields)?;
        if let Some(client) = &client {
            let needs_proof = matches!(grant, Grant::ClientCredentials | Grant::Exchange);
            if !client.grants.contains(&grant) || (needs_proof && !client.is_confidential()) {
                let why = format!("The client may not use `{}`.", grant.name());
                return Err(Fault::new("unauthorized_client", why));
            }
        } else if grant != Grant::JwtBearer {
            return Err(Fault::client("The client does not say who it is; send `client_id`."));
        }
        // Before anything is spent: the answer may be to come again with another proof.
        let jkt = self.bound(request)?;
        let asked = Asked { request, fields: &fields, client, jkt };
        let mut answer = match grant {
            Grant::Code => self.code(&asked)?,
            Grant::Refresh => self.refresh(&asked)?,
            Grant::ClientCredentials => self.client_credentials(&asked)?,
            Grant::JwtBearer => self.jwt_bearer(&asked)?,
            Grant::Exchange => self.exchange(&asked)?,
        };
        // Whoever asked for scopes and got none has to hear it (RFC 6749 §5.1).
        if fields.one("scope")?.is_some() && answer.get("scope").is_none() {
            answer["scope"] = "".into();
        }
        let response = unkept(&answer);
        Ok(match self.settings.dpop_nonces {
            true => response.with("dpop-nonce", self.nonce(request.now, 0)),
            false => response,
        })
    }

    /// A client speaks for itself.
    fn client_credentials(&mut self, asked: &Asked<'_>) -> Result<Value, Fault> {
        let client = asked.client()?;
        let scopes = self.allowed(client, asked.fields.one("scope")?)?;
        let terms = Terms {
            client: client.id.clone(),
            // A client may be called as a user is, and is not that user.
            subject: format!("client:{}", client.id),
            scopes,
            resource: self.resource(asked.resources())?,
            jkt: asked.jkt.clone(),
        };
        Ok(self.granted(&terms, None, asked.request.now))
    }
}

impl Asked<'_> {
    fn client(&self) -> Result<&Client, Fault> {
        let missing = || Fault::client("The client does not say who it is; send `client_id`.");
        self.client.as_ref().ok_or_else(missing)
    }

    fn resources(&self) -> impl Iterator<Item = &str> {
        self.fields.all("resource").filter(|it| !it.is_empty())
    }

    /// Refuses a resource other than the one of the login.
    fn same_resource(&self, resource: &str) -> Result<(), Fault> {
        match self.resources().all(|it| it == resource) {
            true => Ok(()),
            false => {
                let why = "The `resource` is another than the one that was authorized.";
                Err(Fault::new("invalid_target", why))
            }
        }
    }
}

/// The fields of a POST.
pub(crate) fn form(request: &Request) -> Result<Fields, Fault> {
    let content = request.first("content-type").unwrap_or_default();
    let content = content.split(';').next().unwrap_or_default().trim();
    if !content.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(Fault::request("The body has to be `application/x-www-form-urlencoded`."));
    }
    Fields::parse(&request.body)
}
