//! What a token is worth (RFC 7662), and giving one back (RFC 7009).

use std::time::SystemTime;

use serde_json::{Value, json};
use trunkline_auth::jose::{self, Algorithm};

use crate::desk::{Desk, Token};
use crate::fault::Fault;
use crate::message::{Request, Response};
use crate::mint::unkept;
use crate::token::form;

impl Desk {
    pub(crate) fn introspect(&mut self, request: &Request) -> Result<Response, Fault> {
        let fields = form(request)?;
        let client = self.identify(request, &fields)?;
        let client = client.filter(|it| it.is_confidential());
        let client = client.ok_or_else(|| Fault::client("Only those who authenticate may ask."))?;
        let token = fields.need("token")?;
        self.stats.introspections += 1;
        let found = self.active(token, request.now);
        let found = found.filter(|(_, it)| client.introspects || it.terms.client == client.id);
        let Some((id, found)) = found else {
            // Why it is worth nothing is nobody's business (RFC 7662 §2.2).
            return Ok(unkept(&json!({ "active": false })));
        };
        let mut answer = self.claims(found, &id);
        answer["active"] = true.into();
        answer["username"] = found.terms.subject.as_str().into();
        answer["token_type"] = if found.terms.jkt.is_some() { "DPoP" } else { "Bearer" }.into();
        Ok(unkept(&answer))
    }

    pub(crate) fn revoke(&mut self, request: &Request) -> Result<Response, Fault> {
        let (fields, now) = (form(request)?, request.now);
        let client = self.identify(request, &fields)?;
        let client = client.ok_or_else(|| Fault::client("The client does not say who it is."))?;
        let token = fields.need("token")?;
        let others = || {
            let why = "The token was given to another client.";
            Err(Fault::new("unauthorized_client", why))
        };
        if let Some((id, found)) = self.active(token, now) {
            if found.terms.client != client.id {
                return others();
            }
            self.tokens.take(&id, now);
            self.stats.revocations += 1;
        } else if let Some((family, _)) = token.split_once('.')
            && let Some(found) = self.families.get(family, now)
        {
            if found.terms.client != client.id {
                return others();
            }
            self.families.take(family, now);
            self.stats.revocations += 1;
        }
        // One that is not known is as good as revoked (RFC 7009 §2.2).
        Ok(Response::new(200).unkept())
    }

    /// An access token that is good, and its name.
    fn active(&self, token: &str, now: SystemTime) -> Option<(String, &Token)> {
        let id = match self.settings.opaque {
            true => token.to_owned(),
            false => {
                let verified = jose::verify(token, &self.jwks(), &[Algorithm::ES256]).ok()?;
                let claims: Value = serde_json::from_slice(&verified.payload).ok()?;
                claims["jti"].as_str()?.to_owned()
            }
        };
        let found = self.tokens.get(&id, now)?;
        let login = found.family.as_ref();
        let is_over = login.is_some_and(|family| self.families.get(family, now).is_none());
        (!is_over).then_some((id, found))
    }
}
