//! An opaque token → what its authorization server says about it (RFC 7662), remembered for a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::protect::Introspection;
use crate::Principal;
use crate::fetch::{Ask, Fetch};
use crate::scope::Scopes;
use crate::url::{form, shown};

/// Asks about tokens.
pub(crate) struct Introspector {
    config: Introspection,
    known: Mutex<HashMap<[u8; 32], Known>>,
}

struct Known {
    principal: Principal,
    until: SystemTime,
}

/// Why nobody is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// The token is bad, for a reason that its bearer may know.
    Token(String),
    /// Nobody can say, for a reason that is for who runs the server.
    Unknown(String),
}

impl Introspector {
    /// Tokens must be for one of the audiences of the configuration: at least one.
    pub(crate) fn new(config: Introspection) -> Self {
        Self { config, known: Mutex::default() }
    }

    pub(crate) async fn check(
        &self,
        token: &str,
        fetch: &dyn Fetch,
    ) -> Result<Principal, Unproven> {
        // Of the token itself nothing is kept.
        let name: [u8; 32] =
            digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("a SHA-256 has 32 bytes");
        let now = fetch.now();
        if let Some(known) = self.known().get(&name).filter(|it| now < it.until) {
            return Ok(known.principal.clone());
        }
        let said = self.ask(token, fetch).await?;
        let now = fetch.now();
        let principal = self.judge(said, now).map_err(|why| Unproven::Token(why.to_owned()))?;
        let until = principal.expires.map_or(now + REMEMBERED, |it| it.min(now + REMEMBERED));
        self.remember(name, Known { principal: principal.clone(), until }, now);
        Ok(principal)
    }

    async fn ask(&self, token: &str, fetch: &dyn Fetch) -> Result<Said, Unproven> {
        let Introspection { url, client_id, secret, .. } = &self.config;
        // Both are encoded like a form before they are put together (RFC 6749 §2.3.1).
        let pair = form(&[(client_id, secret)]).replacen('=', ":", 1);
        let ask = Ask::form(url, &[("token", token), ("token_type_hint", "access_token")])
            .header("authorization", format!("Basic {}", STANDARD.encode(pair)));
        let shown = shown(url);
        let answer = match fetch.fetch(ask).await {
            Ok(answer) if answer.is_ok() => answer,
            Ok(answer) => {
                let why =
                    format!("`{shown}` answered a question about a token with {}.", answer.status);
                return Err(Unproven::Unknown(why));
            }
            Err(why) => {
                return Err(Unproven::Unknown(format!("`{shown}` cannot be asked: {why}")));
            }
        };
        // What it says of a token may be in the error, so that is left out.
        serde_json::from_slice(&answer.body).map_err(|_| {
            Unproven::Unknown(format!(
                "`{shown}` answered a question about a token with something else."
            ))
        })
    }

    fn judge(&self, said: Said, now: SystemTime) -> Result<Principal, &'static str> {
        const NOT_VALID: &str = "The token is not valid.";
        if !said.active {
            return Err(NOT_VALID);
        }
        let audiences = said.aud.map(Audiences::list).unwrap_or_default();
        if !audiences.iter().any(|it| self.config.audiences.contains(it)) {
            return Err("The token is for another audience.");
        }
        let issuer = match (&self.config.issuer, said.iss) {
            (Some(ours), Some(theirs)) if *ours != theirs => {
                return Err("The token is from another issuer.");
            }
            (Some(ours), _) => ours.clone(),
            (None, Some(theirs)) => theirs,
            // Whoever answers vouches: two servers may know two people by one name.
            (None, None) => self.config.url.clone(),
        };
        let expires = said.exp.map(date).transpose()?;
        if expires.is_some_and(|it| it <= now) {
            return Err("The token has expired.");
        }
        if said.nbf.map(date).transpose()?.is_some_and(|it| it > now) {
            return Err("The token is not valid yet.");
        }
        let some = |it: Option<String>| it.filter(|it| !it.is_empty());
        let client_id = some(said.client_id);
        let subject = some(said.sub).or_else(|| client_id.clone()).ok_or(NOT_VALID)?;
        let mut principal = Principal::new(subject).issued_by(issuer);
        principal.scopes = Scopes::parse(&said.scope.unwrap_or_default()).as_slice().to_vec();
        principal.client_id = client_id;
        principal.expires = expires;
        principal.key = said.cnf.map(key).transpose()?;
        Ok(principal)
    }

    fn remember(&self, name: [u8; 32], it: Known, now: SystemTime) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.retain(|_, it| now < it.until);
        }
        if known.len() >= MOST {
            let first = known.iter().min_by_key(|(_, it)| it.until).map(|(name, _)| *name);
            first.map(|name| known.remove(&name));
        }
        known.insert(name, it);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<[u8; 32], Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct Said {
    active: bool,
    scope: Option<String>,
    client_id: Option<String>,
    sub: Option<String>,
    iss: Option<String>,
    aud: Option<Audiences>,
    exp: Option<f64>,
    nbf: Option<f64>,
    cnf: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Many(Vec<String>),
}

impl Audiences {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

fn date(seconds: f64) -> Result<SystemTime, &'static str> {
    let date = Duration::try_from_secs_f64(seconds).ok().and_then(|it| UNIX_EPOCH.checked_add(it));
    date.ok_or("The token has a date that there is not.")
}

/// The thumbprint of the key that a token is bound to. A way of binding that is not understood is
/// one that cannot be checked.
fn key(cnf: Map<String, Value>) -> Result<String, &'static str> {
    match cnf.get("jkt") {
        Some(Value::String(jkt)) if cnf.len() == 1 => Ok(jkt.clone()),
        _ => Err("The token is bound in a way that is not known here."),
    }
}

const REMEMBERED: Duration = Duration::from_secs(60);
const MOST: usize = 1024;

#[cfg(test)]
mod tests;
