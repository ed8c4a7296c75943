//! A request of a client → which client it is, proven as was agreed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use trunkline_auth::digest::sha256;
use trunkline_auth::jose;

use crate::assertion::Expected;
use crate::client::{Client, Method, Proof};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::fields::{Fields, decode};
use crate::message::Request;

/// What a client says about itself.
enum Claim {
    Name(String),
    Secret { id: String, secret: String, method: Method },
    Signed { assertion: String, id: Option<String> },
}

impl Desk {
    /// The client that sent a request. `None` if it says nothing about itself.
    pub(crate) fn identify(
        &mut self,
        request: &Request,
        fields: &Fields,
    ) -> Result<Option<Client>, Fault> {
        let Some(claim) = claim(request, fields)? else { return Ok(None) };
        let by_header = request.first("authorization").is_some();
        self.prove(claim, request).map(Some).map_err(|why| {
            let fault = Fault::client(why);
            match by_header {
                true => fault.with("www-authenticate", "Basic realm=\"trunkline-authority\""),
                false => fault,
            }
        })
    }

    fn prove(&mut self, claim: Claim, request: &Request) -> Result<Client, String> {
        let known = |desk: &Self, id: &str| {
            let client = desk.client(id, request.now);
            client.ok_or_else(|| "The client is not known here; register it.".to_owned())
        };
        match claim {
            Claim::Name(id) => {
                let client = known(self, &id)?;
                match client.proof {
                    Proof::None => Ok(client),
                    _ => Err(format!("The client has to authenticate by `{}`.", client.method())),
                }
            }
            Claim::Secret { id, secret, method } => {
                let client = known(self, &id)?;
                match &client.proof {
                    Proof::Secret { method: Some(agreed), .. } if *agreed != method => {
                        Err(format!("The client has to authenticate by `{}`.", client.method()))
                    }
                    // Digests are compared, so that the time it takes says nothing of the secret.
                    Proof::Secret { digest, .. } if *digest == sha256(secret.as_bytes()) => {
                        Ok(client)
                    }
                    Proof::Secret { .. } => Err("The secret is wrong.".to_owned()),
                    _ => Err(format!("The client has to authenticate by `{}`.", client.method())),
                }
            }
            Claim::Signed { assertion, id: named } => {
                let claims = jose::unverified_payload(&assertion).ok();
                let claims = claims.and_then(|it| serde_json::from_slice(&it).ok());
                let claims: serde_json::Value = claims.ok_or("The assertion is not a JWT.")?;
                let id = claims["sub"].as_str().ok_or("`sub` is missing.")?;
                if named.is_some_and(|named| named != id) {
                    return Err("`sub` is another than `client_id`.".to_owned());
                }
                let client = known(self, id)?;
                let Proof::Keys(keys) = &client.proof else {
                    return Err(format!(
                        "The client has to authenticate by `{}`.",
                        client.method()
                    ));
                };
                let audience = self.issuer.clone();
                let expected = Expected { issuer: id, audience: &audience, once: true };
                self.believe(&assertion, keys, &expected, request.now)?;
                Ok(client)
            }
        }
    }
}

/// What a request says of its client, in one way and no other.
fn claim(request: &Request, fields: &Fields) -> Result<Option<Claim>, Fault> {
    let mut headers = request.all("authorization");
    let header = headers.next();
    if headers.next().is_some() {
        return Err(Fault::request("`Authorization` is there twice; send it once."));
    }
    let (id, secret) = (fields.one("client_id")?, fields.one("client_secret")?);
    let assertion = fields.one("client_assertion")?;
    let claim = match (header, secret, assertion) {
        (Some(header), None, None) => {
            let (id, secret) = basic(header).ok_or_else(|| {
                let fault =
                    Fault::client("`Authorization` is not `Basic` with a name and a secret.");
                fault.with("www-authenticate", "Basic realm=\"trunkline-authority\"")
            })?;
            Claim::Secret { id, secret, method: Method::Basic }
        }
        (None, Some(secret), None) => {
            let id = fields.need("client_id")?.to_owned();
            Claim::Secret { id, secret: secret.to_owned(), method: Method::Post }
        }
        (None, None, Some(assertion)) => {
            if fields.need("client_assertion_type")? != ASSERTION {
                return Err(Fault::request(format!(
                    "`client_assertion_type` is not `{ASSERTION}`."
                )));
            }
            Claim::Signed { assertion: assertion.to_owned(), id: id.map(str::to_owned) }
        }
        (None, None, None) => match id {
            Some(id) => Claim::Name(id.to_owned()),
            None => return Ok(None),
        },
        _ => return Err(Fault::request("The client authenticates in two ways; use one.")),
    };
    let named = match &claim {
        Claim::Name(id) | Claim::Secret { id, .. } => Some(&**id),
        Claim::Signed { .. } => None,
    };
    if named.is_some() && id.is_some() && id != named {
        return Err(Fault::request("`client_id` is another than in `Authorization`."));
    }
    Ok(Some(claim))
}

/// `Basic` → a name and a secret, each form-encoded before (RFC 6749 §2.3.1).
fn basic(header: &str) -> Option<(String, String)> {
    let (scheme, rest) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((decode(id)?, decode(secret)?))
}

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
