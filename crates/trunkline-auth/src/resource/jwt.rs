//! An access token that is a JWT → its claims, or exactly why it is refused.
//!
//! ```
//! use std::time::{Duration, UNIX_EPOCH};
//! use serde_json::json;
//! use trunkline_auth::jose::{Jwks, SigningKey};
//! use trunkline_auth::resource::jwt::{Rules, TokenError, check};
//!
//! let key = SigningKey::generate();
//! let keys = Jwks::new([key.public().clone()]);
//! let rules = Rules::new("https://id.example", ["https://mcp.example/mcp"]);
//! let mut claims = json!({
//!     "iss": "https://id.example", "aud": "https://mcp.example/mcp",
//!     "sub": "alice", "exp": 1_000, "scope": "files:read",
//! });
//! let now = UNIX_EPOCH + Duration::from_secs(990);
//! let alice = check(&key.sign(json!({"typ": "at+jwt"}), &claims), &keys, &rules, now)?;
//! assert_eq!((&*alice.subject, &*alice.scopes), ("alice", &["files:read".to_owned()][..]));
//!
//! claims["aud"] = json!("https://other.example/mcp");
//! let refused = check(&key.sign(json!({"typ": "at+jwt"}), &claims), &keys, &rules, now);
//! assert_eq!(refused.unwrap_err(), TokenError::WrongAudience);
//! # Ok::<(), TokenError>(())
//! ```

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use crate::jose::{self, Algorithm, JoseError, Jwks};

/// Which tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// The exact `iss`.
    pub issuer: String,
    /// The audiences of which `aud` must name one exactly.
    pub audiences: Vec<String>,
    /// The allowed algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The clock skew.
    pub leeway: Duration,
    /// The allowed `typ`.
    pub types: Types,
    /// Further claims to read: a name, and the claim that it stands for.
    pub claims: Vec<(String, String)>,
}

impl Rules {
    /// Every algorithm, a minute of clock skew, the usual types.
    pub fn new(
        issuer: impl Into<String>,
        audiences: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            issuer: issuer.into(),
            audiences: audiences.into_iter().map(Into::into).collect(),
            algorithms: Algorithm::ALL.to_vec(),
            leeway: Duration::from_secs(60),
            types: Types::Usual,
            claims: Vec::new(),
        }
    }
}

/// The allowed `typ`. Case and a leading `application/` do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Types {
    /// `at+jwt` (RFC 9068), and its predecessors: `JWT`, or none, if it does not look like an ID
    /// token.
    Usual,
    /// Only this.
    Only(String),
}

/// The claims of a verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claims {
    /// The issuer of the rules.
    pub issuer: String,
    /// The subject.
    pub subject: String,
    /// The client it was given to: `client_id`, or `azp`.
    pub client_id: Option<String>,
    /// The scopes in `scope` and `scp`, each a text or a list.
    pub scopes: Vec<String>,
    /// When it expires, without the leeway.
    pub expires: SystemTime,
    /// The key it is bound to (RFC 9449): without a proof by that key, it is stolen.
    pub jkt: Option<String>,
    /// All claims.
    pub all: Map<String, Value>,
}

/// Checks a token: first its signature, then its claims.
pub fn check(
    token: &str,
    keys: &Jwks,
    rules: &Rules,
    now: SystemTime,
) -> Result<Claims, TokenError> {
    let verified = jose::verify(token, keys, &rules.algorithms)?;
    let typ = verified.header.typ.as_deref();
    if !rules.types.allow(typ) {
        return Err(TokenError::WrongType);
    }
    let all: Map<String, Value> =
        serde_json::from_slice(&verified.payload).map_err(|_| TokenError::Malformed)?;
    let is_open = rules.types == Types::Usual && !typ.is_some_and(|it| is_type("at+jwt", it));
    if is_open && is_id_token(&all) {
        return Err(TokenError::WrongType);
    }
    if text(&all, "iss")?.ok_or(TokenError::Missing("iss"))? != rules.issuer {
        return Err(TokenError::WrongIssuer);
    }
    let audiences = texts(&all, "aud", |it| vec![it])?.ok_or(TokenError::Missing("aud"))?;
    if !rules.audiences.iter().any(|it| audiences.contains(&it.as_str())) {
        return Err(TokenError::WrongAudience);
    }
    let expires = date(&all, "exp")?.ok_or(TokenError::Missing("exp"))?;
    if now.duration_since(expires).is_ok_and(|late| late >= rules.leeway) {
        return Err(TokenError::Expired);
    }
    let early = date(&all, "nbf")?.and_then(|it| it.duration_since(now).ok());
    if early.is_some_and(|it| it > rules.leeway) {
        return Err(TokenError::NotYet);
    }
    let subject = text(&all, "sub")?.filter(|it| !it.is_empty());
    let subject = subject.ok_or(TokenError::Missing("sub"))?.to_owned();
    let client_id = match text(&all, "client_id")? {
        Some(id) => Some(id),
        None => text(&all, "azp")?,
    };
    Ok(Claims {
        issuer: rules.issuer.clone(),
        subject,
        client_id: client_id.map(str::to_owned),
        scopes: scopes(&all)?,
        expires,
        jkt: jkt(&all)?,
        all,
    })
}

/// Why a token is refused. The text is safe in an `error_description`: it contains nothing of the
/// token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenError {
    /// Not a signed token, or without the claims of one.
    Malformed,
    /// Its algorithm is not allowed: `none` and shared secrets among them.
    Algorithm,
    /// It has critical extensions (`crit`).
    Critical,
    /// The key is unknown: fetching the issuer's newest keys may help.
    UnknownKey,
    /// The key does not support this algorithm.
    UnfitKey,
    /// The signature is wrong.
    Signature,
    /// Not an access token: by its `typ`, or by claims that only ID tokens have.
    WrongType,
    /// Another issuer's.
    WrongIssuer,
    /// For another audience.
    WrongAudience,
    /// Too old.
    Expired,
    /// Not valid yet.
    NotYet,
    /// A claim is missing: this one.
    Missing(&'static str),
    /// Bound to something other than a DPoP key, such as a certificate: it must not pass as an
    /// unbound token.
    Bound,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "The token is not a well-formed signed token.",
            Self::Algorithm => "The token is signed with an algorithm that is not allowed here.",
            Self::Critical => "The token wants extensions understood that are not known here.",
            Self::UnknownKey => "The token is signed with a key that is not known here.",
            Self::UnfitKey => "The token is signed with a key that is not one for its algorithm.",
            Self::Signature => "The signature of the token is wrong.",
            Self::WrongType => "The token is not an access token.",
            Self::WrongIssuer => "The token is from another issuer.",
            Self::WrongAudience => "The token is for another audience.",
            Self::Expired => "The token has expired.",
            Self::NotYet => "The token is not valid yet.",
            Self::Missing(name) => return write!(f, "The token has no `{name}`."),
            Self::Bound => "The token is bound to something that cannot be checked here.",
        })
    }
}

impl std::error::Error for TokenError {}

impl From<JoseError> for TokenError {
    fn from(error: JoseError) -> Self {
        match error {
            JoseError::Algorithm => Self::Algorithm,
            JoseError::Critical => Self::Critical,
            JoseError::UnknownKey => Self::UnknownKey,
            JoseError::UnfitKey => Self::UnfitKey,
            JoseError::Signature => Self::Signature,
            JoseError::TooLong
            | JoseError::Malformed
            | JoseError::PrivateKey
            | JoseError::Key(_) => Self::Malformed,
        }
    }
}

impl Types {
    fn allow(&self, typ: Option<&str>) -> bool {
        match (self, typ) {
            (Self::Usual, None) => true,
            (Self::Usual, Some(typ)) => is_type("at+jwt", typ) || is_type("JWT", typ),
            (Self::Only(_), None) => false,
            (Self::Only(it), Some(typ)) => is_type(it, typ),
        }
    }
}

fn is_type(one: &str, other: &str) -> bool {
    bare(one).eq_ignore_ascii_case(bare(other))
}

/// Whether the claims are those of an ID token, which tells a client who logged in and grants no
/// access. Keycloak marks the kind in a claim, and before version 25 it put the `nonce` into both.
fn is_id_token(all: &Map<String, Value>) -> bool {
    match all.get("typ").and_then(Value::as_str) {
        Some("ID") => true,
        Some("Bearer" | "DPoP") => all.contains_key("at_hash"),
        _ => all.contains_key("nonce") || all.contains_key("at_hash"),
    }
}

/// RFC 7515 §4.1.9: `application/` may be left out.
fn bare(typ: &str) -> &str {
    match typ.split_at_checked(APPLICATION.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(APPLICATION) => rest,
        _ => typ,
    }
}

fn text<'a>(all: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, TokenError> {
    all.get(name).map(|it| it.as_str().ok_or(TokenError::Malformed)).transpose()
}

/// A list of texts, or the parts of one text.
fn texts<'a>(
    all: &'a Map<String, Value>,
    name: &str,
    cut: fn(&'a str) -> Vec<&'a str>,
) -> Result<Option<Vec<&'a str>>, TokenError> {
    let list = match all.get(name) {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(cut(text))),
        Some(Value::Array(list)) => list.iter(),
        Some(_) => return Err(TokenError::Malformed),
    };
    list.map(|it| it.as_str().ok_or(TokenError::Malformed)).collect::<Result<_, _>>().map(Some)
}

/// The values of a claim: of one by this name, or else of a nested one, as `realm_access.roles`.
/// Values that are not texts are skipped; a single text is a list of one.
pub(super) fn values(all: &Map<String, Value>, claim: &str) -> Vec<String> {
    let nested = || {
        let mut parts = claim.split('.');
        let first = all.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    };
    match all.get(claim).or_else(nested) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).take(VALUES).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// How many values of a claim are read.
const VALUES: usize = 1024;

fn scopes(all: &Map<String, Value>) -> Result<Vec<String>, TokenError> {
    let mut scopes: Vec<String> = Vec::new();
    for name in ["scope", "scp"] {
        for scope in
            texts(all, name, |it| it.split_ascii_whitespace().collect())?.unwrap_or_default()
        {
            if !scopes.iter().any(|it| it == scope) {
                scopes.push(scope.to_owned());
            }
        }
    }
    Ok(scopes)
}

/// Seconds since 1970, possibly with a fraction (RFC 7519 §2).
fn date(all: &Map<String, Value>, name: &str) -> Result<Option<SystemTime>, TokenError> {
    let Some(value) = all.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|it| SECONDS.contains(it)).ok_or(TokenError::Malformed)?;
    Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds)))
}

fn jkt(all: &Map<String, Value>) -> Result<Option<String>, TokenError> {
    let Some(cnf) = all.get("cnf") else { return Ok(None) };
    match cnf.get("jkt") {
        Some(Value::String(jkt)) => Ok(Some(jkt.clone())),
        Some(_) => Err(TokenError::Malformed),
        None => Err(TokenError::Bound),
    }
}

const APPLICATION: &str = "application/";
/// Until the year 9999: later dates overflow on some systems.
const SECONDS: std::ops::RangeInclusive<f64> = 0.0..=253_402_300_799.0;

#[cfg(test)]
mod tests;
