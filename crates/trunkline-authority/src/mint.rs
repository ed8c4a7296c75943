//! What was granted → tokens that say so.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use trunkline_auth::tag::random_name;

use crate::desk::{Desk, Terms, Token};
use crate::fault::Fault;
use crate::message::Response;

impl Desk {
    /// Gives out an access token.
    pub(crate) fn mint(&mut self, terms: &Terms, family: Option<&str>, now: SystemTime) -> String {
        let id = random_name();
        let expires = now + self.settings.access;
        let token =
            Token { terms: terms.clone(), family: family.map(str::to_owned), issued: now, expires };
        let text = match self.settings.opaque {
            true => id.clone(),
            false => {
                let mut claims = self.claims(&token, &id);
                claims["aud"] = terms.resource.as_str().into();
                self.sign("at+jwt", &claims)
            }
        };
        // A token that is not remembered is good all the same; only introspection does not know it.
        drop(self.tokens.put(id, token, expires, now));
        self.stats.tokens += 1;
        text
    }

    /// What a token says, and introspection about it.
    pub(crate) fn claims(&self, token: &Token, id: &str) -> Value {
        let Token { terms, issued, expires, .. } = token;
        let mut claims = json!({
            "iss": self.issuer,
            "sub": terms.subject,
            "aud": terms.resource,
            "client_id": terms.client,
            "scope": terms.scopes.join(" "),
            "iat": seconds(*issued),
            "exp": seconds(*expires),
            "jti": id,
        });
        if let Some(jkt) = &terms.jkt {
            claims["cnf"] = json!({ "jkt": jkt });
        }
        claims
    }

    pub(crate) fn id_token(
        &self,
        user: &str,
        client: &str,
        nonce: Option<&str>,
        now: SystemTime,
    ) -> String {
        let mut claims = json!({
            "iss": self.issuer,
            "sub": user,
            "aud": client,
            "name": user,
            "iat": seconds(now),
            "auth_time": seconds(now),
            "exp": seconds(now + Duration::from_secs(3600)),
            "jti": random_name(),
        });
        if let Some(nonce) = nonce {
            claims["nonce"] = nonce.into();
        }
        self.sign("JWT", &claims)
    }

    pub(crate) fn sign(&self, typ: &str, claims: &Value) -> String {
        self.signing[0].sign(json!({ "typ": typ }), claims)
    }

    /// The answer that carries an access token.
    pub(crate) fn granted(
        &mut self,
        terms: &Terms,
        family: Option<&str>,
        now: SystemTime,
    ) -> Value {
        let access = self.mint(terms, family, now);
        let mut answer = json!({
            "access_token": access,
            "token_type": if terms.jkt.is_some() { "DPoP" } else { "Bearer" },
            "expires_in": self.settings.access.as_secs(),
        });
        if !terms.scopes.is_empty() {
            answer["scope"] = terms.scopes.join(" ").into();
        }
        answer
    }

    /// The resource that a request means: the one it names, if it is known here.
    pub(crate) fn resource<'a>(
        &self,
        mut named: impl Iterator<Item = &'a str>,
    ) -> Result<String, Fault> {
        let wrong = |why: &str| Err(Fault::new("invalid_target", why));
        let Some(first) = named.next() else {
            let first = self.settings.resources.first();
            return Ok(first.unwrap_or(&self.issuer).clone());
        };
        if named.any(|it| it != first) {
            return wrong("A token is for one `resource`; ask for one at a time.");
        }
        let is_known = match &*self.settings.resources {
            [] => crate::redirect::Parts::of(first).is_some_and(|it| !it.host.is_empty()),
            known => known.iter().any(|it| it == first),
        };
        match is_known {
            true => Ok(first.to_owned()),
            false => wrong("The `resource` is not one of this server's."),
        }
    }
}

/// An answer that nobody may keep.
pub(crate) fn unkept(answer: &Value) -> Response {
    Response::of(200, answer).unkept()
}

pub(crate) fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
