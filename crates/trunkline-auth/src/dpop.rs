//! A key ⇄ proofs that its holder made a request (DPoP, RFC 9449).
//!
//! ```
//! use std::time::{Duration, UNIX_EPOCH};
//! use trunkline_auth::dpop::{Checker, DpopError, Expect, prove};
//! use trunkline_auth::jose::SigningKey;
//!
//! let (key, now) = (SigningKey::generate(), UNIX_EPOCH + Duration::from_secs(1_000));
//! let proof = prove(&key, "POST", "https://mcp.example/mcp?x=1", Some("token"), None, now);
//!
//! let checker = Checker::new(Duration::from_secs(60));
//! let url = "https://mcp.example/mcp";
//! let expect = Expect { method: "POST", url, token: Some("token"), nonce: None, now };
//! assert_eq!(checker.check(&proof, expect)?, key.public().thumbprint());
//! assert_eq!(checker.check(&proof, expect), Err(DpopError::Replayed));
//! # Ok::<(), DpopError>(())
//! ```

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use crate::jose::{self, Algorithm, SigningKey};
use crate::tag;

mod htu;
mod seen;
#[cfg(test)]
mod tests;

use htu::same_target;
use seen::{Name, Seen, Sight};

/// Proves that the holder of `key` makes this request now. The query and the fragment of `url` are
/// left out.
///
/// ```
/// use std::time::UNIX_EPOCH;
/// use trunkline_auth::{dpop, jose};
///
/// let key = jose::SigningKey::generate();
/// let proof = dpop::prove(&key, "POST", "https://id.example/token", None, Some("n-1"), UNIX_EPOCH);
/// assert_eq!(jose::peek(&proof)?.typ.as_deref(), Some("dpop+jwt"));
/// # Ok::<(), jose::JoseError>(())
/// ```
pub fn prove(
    key: &SigningKey,
    method: &str,
    url: &str,
    token: Option<&str>,
    nonce: Option<&str>,
    now: SystemTime,
) -> String {
    let mut claims = json!({
        "jti": tag::random_name(),
        "htm": method,
        "htu": htu::bare(url),
        "iat": now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
    });
    if let Some(token) = token {
        claims["ath"] = jose::sha256(token.as_bytes()).into();
    }
    if let Some(nonce) = nonce {
        claims["nonce"] = nonce.into();
    }
    key.sign(json!({"typ": "dpop+jwt", "jwk": key.public().bare()}), &claims)
}

/// Checks proofs, and remembers them as long as they could be replayed.
pub struct Checker {
    window: Duration,
    seen: Mutex<Seen>,
}

/// The request that a proof must be for.
#[derive(Clone, Copy)]
pub struct Expect<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// Its URL, as the client sees it. A query does not matter.
    pub url: &'a str,
    /// The access token of the request, if it has one.
    pub token: Option<&'a str>,
    /// The nonce it must have, if one was issued.
    pub nonce: Option<&'a str>,
    /// The time.
    pub now: SystemTime,
}

impl Checker {
    /// Accepts proofs whose `iat` is at most this far from now, in either direction.
    pub fn new(window: Duration) -> Self {
        // A proof from the future is valid until twice the window from now.
        let seen = Seen::new(window.saturating_mul(2), MOST_SEEN, MOST_SHARE);
        Self { window, seen: Mutex::new(seen) }
    }

    /// Checks one proof and returns the thumbprint of its key, which must be the one the token is
    /// bound to. Check the token first: a valid proof takes memory until it can no longer be
    /// replayed.
    pub fn check(&self, proof: &str, expect: Expect<'_>) -> Result<String, DpopError> {
        self.check_named(proof, expect).map(|(jkt, _)| jkt)
    }

    /// As [`Self::check`]; also returns a name of the proof, by which others can remember it.
    pub(crate) fn check_named(
        &self,
        proof: &str,
        expect: Expect<'_>,
    ) -> Result<(String, Name), DpopError> {
        if proof.len() > MOST_PROOF {
            return invalid("The proof is too long.");
        }
        let header = jose::peek(proof).map_err(unread)?;
        if !header.typ.is_some_and(|it| it.eq_ignore_ascii_case("dpop+jwt")) {
            return invalid("The proof is not of the type `dpop+jwt`.");
        }
        let Some(key) = header.jwk else {
            return invalid("The proof has no key in its header.");
        };
        let payload = jose::verify_with(proof, &key, &Algorithm::ALL).map_err(unread)?.payload;
        let Ok(claims) = serde_json::from_slice::<Map<String, Value>>(&payload) else {
            return invalid("The proof says nothing.");
        };
        let text = |name| claims.get(name).and_then(Value::as_str);
        let Some(jti) = text("jti").filter(|it| !it.is_empty()) else {
            return invalid("The proof has no `jti`.");
        };
        if text("htm") != Some(expect.method) {
            return invalid("The proof is for another method.");
        }
        if !text("htu").is_some_and(|it| same_target(it, expect.url)) {
            return invalid("The proof is for another URL.");
        }
        let Some(made) = claims.get("iat").and_then(Value::as_f64) else {
            return invalid("The proof has no `iat`.");
        };
        let now = expect.now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        if (now - made).abs() > self.window.as_secs_f64() {
            return invalid("The proof was not made just now; the clocks may differ.");
        }
        if expect.token.is_some_and(|it| text("ath") != Some(&*jose::sha256(it.as_bytes()))) {
            return invalid("The proof is for another token.");
        }
        if expect.nonce.is_some_and(|it| text("nonce") != Some(it)) {
            return Err(DpopError::WrongNonce);
        }
        let jkt = key.thumbprint();
        // Thumbprints have a fixed length, so no two pairs share a name.
        let name = digest(&SHA256, format!("{jkt}{jti}").as_bytes());
        let name: Name = name.as_ref().try_into().expect("a SHA-256 has 32 bytes");
        let mut seen = self.seen.lock().unwrap_or_else(|broken| broken.into_inner());
        match seen.see(&jkt, name, expect.now) {
            Sight::First => Ok((jkt, name)),
            Sight::Again => Err(DpopError::Replayed),
            Sight::Full => Err(DpopError::Full),
        }
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checker({:?})", self.window)
    }
}

/// Why a proof is refused. The text contains nothing of the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpopError {
    /// It is invalid, or for something else. In words.
    Invalid(String),
    /// It is a replay.
    Replayed,
    /// It lacks the required nonce: issue one, and a retry may succeed.
    WrongNonce,
    /// The replay cache is full. The proof may be valid.
    Full,
}

impl fmt::Display for DpopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid(why) => why,
            Self::Replayed => "The proof was used before.",
            Self::WrongNonce => "The proof lacks the nonce this server handed out.",
            Self::Full => "Too many proofs came in the last minutes; try again later.",
        })
    }
}

impl std::error::Error for DpopError {}

fn invalid<T>(why: &str) -> Result<T, DpopError> {
    Err(DpopError::Invalid(why.to_owned()))
}

fn unread(why: jose::JoseError) -> DpopError {
    DpopError::Invalid(format!("The proof cannot be accepted. {why}"))
}

const MOST_PROOF: usize = 8_192;
/// Per generation: about 9 MB if an attacker fills it.
const MOST_SEEN: usize = 229_376;
/// One key's share. With a window of two minutes: 239 requests per second, continuously.
const MOST_SHARE: usize = 57_344;
