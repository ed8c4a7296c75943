//! An opaque token → the answer of its authorization server (RFC 7662), cached for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::protect::Introspection;
use crate::Principal;
use crate::fetch::{Ask, Fetch};
use crate::scope::Scopes;
use crate::url::{form, shown};

mod flights;
mod memory;

use flights::Flights;
use memory::{Memory, Name};

/// Introspects tokens.
pub(crate) struct Introspector {
    config: Introspection,
    /// Issuers whose tokens are checked otherwise.
    others: Vec<String>,
    /// Admitted tokens. Refused ones are cached separately (negative cache), because strangers can
    /// send any number.
    known: Mutex<Memory<Principal>>,
    refused: Mutex<Memory<&'static str>>,
    flights: Flights,
}

/// Why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// The token is invalid, for a reason that its bearer may know.
    Token(String),
    /// The token cannot be checked, for a reason that only the operator may know.
    Unknown(String),
}

impl Introspector {
    /// Tokens must be for one of the configured audiences: at least one. For `others` it vouches
    /// only if it was configured to.
    pub(crate) fn new(config: Introspection, others: Vec<String>) -> Self {
        let (known, refused) = (Memory::new(MOST), Memory::new(MOST));
        let (known, refused) = (Mutex::new(known), Mutex::new(refused));
        Self { config, others, known, refused, flights: Flights::default() }
    }

    pub(crate) async fn check(
        &self,
        token: &str,
        fetch: &dyn Fetch,
    ) -> Result<Principal, Unproven> {
        let (name, now) = (memory::name(token), fetch.now());
        if let Some(known) = lock(&self.known).get(&name, now) {
            return Ok(known.clone());
        }
        if let Some(why) = lock(&self.refused).get(&name, now) {
            return Err(Unproven::Token((*why).to_owned()));
        }
        let asked = self.flights.share(name, self.find_out(token, name, fetch)).await;
        asked.unwrap_or_else(|| {
            Err(Unproven::Unknown(format!(
                "`{}` is being asked about {} tokens already.",
                shown(&self.config.url),
                flights::MOST
            )))
        })
    }

    async fn find_out(
        &self,
        token: &str,
        name: Name,
        fetch: &dyn Fetch,
    ) -> Result<Principal, Unproven> {
        let said = self.ask(token, fetch).await?;
        let now = fetch.now();
        match self.judge(said, now) {
            Ok(principal) => {
                let longest = now + REMEMBERED;
                let until = principal.expires.map_or(longest, |it| it.min(longest));
                lock(&self.known).put(name, principal.clone(), until, now);
                Ok(principal)
            }
            Err(why) => {
                lock(&self.refused).put(name, why, now + REFUSED, now);
                Err(Unproven::Token(why.to_owned()))
            }
        }
    }

    async fn ask(&self, token: &str, fetch: &dyn Fetch) -> Result<Said, Unproven> {
        let Introspection { url, client_id, secret, .. } = &self.config;
        // Both are form-encoded before they are joined (RFC 6749 §2.3.1).
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
        // The parser's error may quote the response, so it is left out.
        serde_json::from_slice(&answer.body).map_err(|_| {
            Unproven::Unknown(format!(
                "`{shown}` answered a question about a token with something else."
            ))
        })
    }

    fn judge(&self, said: Said, now: SystemTime) -> Result<Principal, &'static str> {
        const NOT_VALID: &str = "The token is not valid.";
        const ANOTHER: &str = "The token is from another issuer.";
        if !said.active {
            return Err(NOT_VALID);
        }
        let audiences = said.aud.map(Audiences::list).unwrap_or_default();
        if !audiences.iter().any(|it| self.config.audiences.contains(it)) {
            return Err("The token is for another audience.");
        }
        let issuer = match (&self.config.issuer, said.iss) {
            (Some(ours), Some(theirs)) if *ours != theirs => return Err(ANOTHER),
            (Some(ours), _) => ours.clone(),
            // Otherwise this server could impersonate the users of another issuer.
            (None, Some(theirs)) if self.others.contains(&theirs) => return Err(ANOTHER),
            (None, Some(theirs)) => theirs,
            // The endpoint itself vouches: two servers may use one name for two people.
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

/// The thumbprint of the key that a token is bound to. An unknown binding cannot be checked.
fn key(cnf: Map<String, Value>) -> Result<String, &'static str> {
    match cnf.get("jkt") {
        Some(Value::String(jkt)) if cnf.len() == 1 => Ok(jkt.clone()),
        _ => Err("The token is bound in a way that is not known here."),
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

const REMEMBERED: Duration = Duration::from_secs(60);
/// How long an invalid token is remembered (negative cache): it may become valid.
const REFUSED: Duration = Duration::from_secs(10);
/// The capacity of each cache.
const MOST: usize = 1024;

#[cfg(test)]
mod tests;
