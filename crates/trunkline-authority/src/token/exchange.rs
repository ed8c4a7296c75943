//! An ID token → an identity assertion for another authorization server (RFC 8693): the part of an
//! identity provider.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_auth::tag::random_name;

use super::Asked;
use super::assertion::ID_JAG;
use crate::assertion::Expected;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::fields::words;
use crate::mint::seconds;

impl Desk {
    pub(super) fn exchange(&mut self, asked: &Asked<'_>) -> Result<Value, Fault> {
        let (fields, now) = (asked.fields, asked.request.now);
        let client = asked.client()?;
        if fields.need("requested_token_type")? != ID_JAG_TYPE {
            return Err(Fault::request(format!(
                "`requested_token_type` has to be `{ID_JAG_TYPE}`."
            )));
        }
        if fields.need("subject_token_type")? != ID_TOKEN_TYPE {
            return Err(Fault::request(format!(
                "`subject_token_type` has to be `{ID_TOKEN_TYPE}`."
            )));
        }
        let (audience, resource) = (fields.need("audience")?, fields.need("resource")?);
        let mut known = self.settings.exchanges.iter();
        let known = known.find(|it| it.client_here == client.id && it.audience == audience);
        let Some(known) = known.cloned() else {
            let why = "The client may not have assertions for this `audience`.";
            return Err(Fault::new("invalid_target", why));
        };
        let (issuer, keys) = (self.issuer.clone(), self.jwks());
        let expected = Expected { issuer: &issuer, audience: &client.id, once: false };
        let token = fields.need("subject_token")?;
        let subject = self
            .believe(token, &keys, &expected, now)
            .map_err(|why| Fault::grant(format!("The `subject_token` is not good. {why}")))?;
        let mut claims = json!({
            "iss": issuer,
            "sub": subject["sub"],
            "aud": known.audience,
            "resource": resource,
            "client_id": known.client_there,
            "iat": seconds(now),
            "exp": seconds(now + LIFETIME),
            "jti": random_name(),
        });
        let scopes = words(fields.one("scope")?.unwrap_or_default());
        if !scopes.is_empty() {
            claims["scope"] = scopes.join(" ").into();
        }
        self.stats.tokens += 1;
        let mut answer = json!({
            "issued_token_type": ID_JAG_TYPE,
            "access_token": self.sign(ID_JAG, &claims),
            "token_type": "N_A",
            "expires_in": LIFETIME.as_secs(),
        });
        if let Some(scope) = claims.get("scope") {
            answer["scope"] = scope.clone();
        }
        Ok(answer)
    }
}

const ID_JAG_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
const LIFETIME: Duration = Duration::from_secs(300);
