//! Signed tokens (JWS, compact serialization) → their payload, once the signature is verified.
//!
//! Only public keys verify signatures: `none` and the algorithms with a shared secret cannot be
//! expressed, so no key can be confused with one.
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

/// The header of a token. Untrusted until the signature is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The algorithm, as written.
    pub alg: String,
    /// The type of the token.
    pub typ: Option<String>,
    /// The key id.
    pub kid: Option<String>,
    /// The key itself, as in DPoP proofs.
    pub jwk: Option<Jwk>,
    /// Whether it has critical extensions (`crit`). None is supported here.
    pub has_crit: bool,
}

/// A token with a valid signature.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Its header.
    pub header: Header,
    /// The signed payload.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Verified {
    /// Omits the payload, which does not belong in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {} bytes", self.header, self.payload.len())
    }
}

/// Parses the header of a token, unverified.
///
/// ```
/// use trunkline_auth::jose::{self, JoseError};
///
/// assert_eq!(jose::peek("an opaque token").unwrap_err(), JoseError::Malformed);
/// ```
pub fn peek(token: &str) -> Result<Header, JoseError> {
    Parts::of(token)?.header()
}

/// Parses the payload of a token, unverified: to display it, or to find its issuer. Never base a
/// decision on it.
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

/// Verifies a signature with the key that the token names, or with every suitable key if it names
/// none.
pub fn verify(token: &str, keys: &Jwks, allowed: &[Algorithm]) -> Result<Verified, JoseError> {
    let parts = Parts::of(token)?;
    let header = parts.header()?;
    let named: Vec<_> = keys.named(header.kid.as_deref()).collect();
    parts.verified(header, &named, allowed)
}

/// Verifies a signature with this key, whatever key id the token has.
pub fn verify_with(token: &str, key: &Jwk, allowed: &[Algorithm]) -> Result<Verified, JoseError> {
    let parts = Parts::of(token)?;
    let header = parts.header()?;
    parts.verified(header, &[key], allowed)
}

/// Why a token or a key is refused. The text contains nothing of either.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoseError {
    /// Longer than any legitimate one.
    TooLong,
    /// Not three parts of base64url without padding, or not JSON where it should be.
    Malformed,
    /// It has critical extensions (`crit`).
    Critical,
    /// Its algorithm is not allowed or not supported.
    Algorithm,
    /// No key has this id.
    UnknownKey,
    /// The key is not for this algorithm, not for signatures, or too short.
    UnfitKey,
    /// The signature is wrong.
    Signature,
    /// A public key that contains its private half.
    PrivateKey,
    /// A key cannot be parsed. In words.
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

/// A token split at its dots.
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

    /// Checked in this order: first the token's own faults, then those of its keys.
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

/// Base64url without padding and without trailing bits.
fn decode(text: &str) -> Result<Vec<u8>, JoseError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| JoseError::Malformed)
}

/// The digest of RFC 7638 and RFC 9449.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}

const MOST_TOKEN: usize = 16_384;
