//! Signed texts (JWS, compact) → what they say, once the signature is checked.
//!
//! Signatures are checked by public keys alone: `none` and the algorithms with a shared secret
//! cannot be named, so no key can be mistaken for one.
//!
//! ```
//! use serde_json::json;
//! use trunkline_auth::jose::{self, Algorithm, JoseError, Jwks, SigningKey};
//!
//! let key = SigningKey::generate().named("k1");
//! let keys = Jwks::new([key.public().clone()]);
//! let token = key.sign(json!({"typ": "JWT"}), &json!({"sub": "alice"}));
//! assert_eq!(jose::verify(&token, &keys, &[Algorithm::ES256])?.payload, br#"{"sub":"alice"}"#);
//! let refused = jose::verify(&token, &keys, &[Algorithm::RS256]);
//! assert_eq!(refused.unwrap_err(), JoseError::Algorithm);
//! # Ok::<(), JoseError>(())
//! ```

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

mod algorithm;
mod jwk;
mod sign;
#[cfg(test)]
pub(crate) mod tests;

pub use algorithm::Algorithm;
pub use jwk::{Jwk, Jwks};
pub use sign::SigningKey;

/// What a token says about itself. Nothing of it is proven before the signature is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// How it is signed, in its own words.
    pub alg: String,
    /// What kind of token it is.
    pub typ: Option<String>,
    /// The name of the key.
    pub kid: Option<String>,
    /// The key itself, as in DPoP proofs.
    pub jwk: Option<Jwk>,
    /// Whether it wants extensions understood. None is, here.
    pub has_crit: bool,
}

/// A token whose signature is good.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Its header.
    pub header: Header,
    /// What was signed.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Verified {
    /// Without the payload, which is nobody's business in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {} bytes", self.header, self.payload.len())
    }
}

/// Reads the header of a token, before anything is proven.
///
/// ```
/// use trunkline_auth::jose::{self, JoseError};
///
/// assert_eq!(jose::peek("an opaque token").unwrap_err(), JoseError::Malformed);
/// ```
pub fn peek(token: &str) -> Result<Header, JoseError> {
    Parts::of(token)?.header()
}

/// Reads what a token says, before anything is proven: to show it, or to find out whose it would
/// be. Never decide by it.
///
/// ```
/// use trunkline_auth::jose;
///
/// assert_eq!(jose::unverified_payload("eyJhbGciOiJub25lIn0.e30.")?, b"{}");
/// # Ok::<(), jose::JoseError>(())
/// ```
pub fn unverified_payload(token: &str) -> Result<Vec<u8>, JoseError> {
    decode(Parts::of(token)?.payload)
}

/// Checks a signature by the key the token names; by every key that fits if it names none.
pub fn verify(token: &str, keys: &Jwks, allowed: &[Algorithm]) -> Result<Verified, JoseError> {
    let parts = Parts::of(token)?;
    let header = parts.header()?;
    let named: Vec<_> = keys.named(header.kid.as_deref()).collect();
    parts.verified(header, &named, allowed)
}

/// Checks a signature by this key, whatever the token calls it.
pub fn verify_with(token: &str, key: &Jwk, allowed: &[Algorithm]) -> Result<Verified, JoseError> {
    let parts = Parts::of(token)?;
    let header = parts.header()?;
    parts.verified(header, &[key], allowed)
}

/// Why a token or a key is refused. Its words hold nothing of either.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoseError {
    /// Longer than any honest one.
    TooLong,
    /// Not three parts of base64url without padding, or not JSON where it should be.
    Malformed,
    /// It wants extensions understood (`crit`).
    Critical,
    /// Signed in a way that is not allowed, or that does not exist here.
    Algorithm,
    /// No key of this name.
    UnknownKey,
    /// The key is not for this algorithm, not for signatures, or too short.
    UnfitKey,
    /// The signature is wrong.
    Signature,
    /// A public key came with its private half.
    PrivateKey,
    /// A key cannot be read. In words.
    Key(String),
}

impl fmt::Display for JoseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "The text is too long to be a token or a key set.",
            Self::Malformed => "The text is not a signed token or a key set.",
            Self::Critical => "The token wants extensions understood that are not known here.",
            Self::Algorithm => "The token is signed with an algorithm that is not allowed here.",
            Self::UnknownKey => "The token is signed with a key that is not known here.",
            Self::UnfitKey => "The key is not one for the algorithm of the token.",
            Self::Signature => "The signature of the token is wrong.",
            Self::PrivateKey => "The key came with its private half, so it proves nothing.",
            Self::Key(why) => why,
        })
    }
}

impl std::error::Error for JoseError {}

/// A token cut at its dots.
struct Parts<'a> {
    header: &'a str,
    payload: &'a str,
    signature: &'a str,
    /// Header, dot and payload.
    signed: &'a str,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Result<Self, JoseError> {
        if token.len() > MOST_TOKEN {
            return Err(JoseError::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(JoseError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JoseError::Malformed)?;
        if payload.contains('.') {
            return Err(JoseError::Malformed);
        }
        Ok(Self { header, payload, signature, signed })
    }

    fn header(&self) -> Result<Header, JoseError> {
        let bytes = decode(self.header)?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| JoseError::Malformed)?;
        let members = value.as_object().ok_or(JoseError::Malformed)?;
        let text = |name| match members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(JoseError::Malformed),
        };
        Ok(Header {
            alg: text("alg")?.ok_or(JoseError::Malformed)?,
            typ: text("typ")?,
            kid: text("kid")?,
            jwk: members.get("jwk").map(Jwk::parse).transpose()?,
            has_crit: members.contains_key("crit"),
        })
    }

    /// The order is from the token's own faults to those of its keys.
    fn verified(
        &self,
        header: Header,
        keys: &[&Jwk],
        allowed: &[Algorithm],
    ) -> Result<Verified, JoseError> {
        let (payload, signature) = (decode(self.payload)?, decode(self.signature)?);
        if header.has_crit {
            return Err(JoseError::Critical);
        }
        let algorithm = Algorithm::parse(&header.alg).filter(|it| allowed.contains(it));
        let algorithm = algorithm.ok_or(JoseError::Algorithm)?;
        if keys.is_empty() {
            return Err(JoseError::UnknownKey);
        }
        let message = self.signed.as_bytes();
        let checks = keys.iter().filter_map(|it| it.verify(algorithm, message, &signature));
        let mut checks = checks.peekable();
        checks.peek().ok_or(JoseError::UnfitKey)?;
        if !checks.any(|is_good| is_good) {
            return Err(JoseError::Signature);
        }
        Ok(Verified { header, payload })
    }
}

/// Base64url without padding, without stray bits at its end.
fn decode(text: &str) -> Result<Vec<u8>, JoseError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| JoseError::Malformed)
}

/// What RFC 7638 and RFC 9449 name things by.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}

const MOST_TOKEN: usize = 16_384;
