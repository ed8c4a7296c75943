//! JSON ⇄ public keys, and the signatures that a key can verify.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Algorithm, JoseError};

/// A public key. One that contains its private half is refused: every reader of it could sign.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
#[non_exhaustive]
pub struct Jwk {
    /// Its key id.
    pub kid: Option<String>,
    /// The one algorithm it is for.
    pub alg: Option<String>,
    /// What it is for: `sig`, or something else.
    pub use_: Option<String>,
    /// What it may be used for, such as `verify`.
    pub key_ops: Option<Vec<String>>,
    numbers: Numbers,
}

#[derive(Clone, PartialEq, Eq)]
enum Numbers {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Ec { curve: Curve, x: Vec<u8>, y: Vec<u8> },
    Ed25519 { x: Vec<u8> },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
}

/// How ring verifies a signature with a key.
enum Check<'a> {
    Rsa(&'static signature::RsaParameters, &'a [u8], &'a [u8]),
    Bytes(&'static dyn signature::VerificationAlgorithm, Vec<u8>),
}

impl Jwk {
    /// Reads a key.
    pub fn parse(value: &Value) -> Result<Self, JoseError> {
        let members = value.as_object().ok_or(key("It is not a JSON object."))?;
        if PRIVATE.iter().any(|it| members.contains_key(*it)) {
            return Err(JoseError::PrivateKey);
        }
        let numbers = match (text(members, "kty")?, text(members, "crv")?) {
            (Some("RSA"), _) => Numbers::Rsa { n: number(members, "n")?, e: number(members, "e")? },
            (Some("EC"), Some("P-256")) => Numbers::Ec {
                curve: Curve::P256,
                x: bytes(members, "x", 32)?,
                y: bytes(members, "y", 32)?,
            },
            (Some("EC"), Some("P-384")) => Numbers::Ec {
                curve: Curve::P384,
                x: bytes(members, "x", 48)?,
                y: bytes(members, "y", 48)?,
            },
            (Some("OKP"), Some("Ed25519")) => Numbers::Ed25519 { x: bytes(members, "x", 32)? },
            _ => return Err(key("Its type is not RSA, P-256, P-384 or Ed25519.")),
        };
        let owned = |name| Ok(text(members, name)?.map(str::to_owned));
        let key_ops = members.get("key_ops").map(|it| {
            let wrong = || key("`key_ops` is not a list of texts.");
            let list = it.as_array().ok_or_else(wrong)?.iter();
            list.map(|it| it.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        });
        Ok(Self {
            kid: owned("kid")?,
            alg: owned("alg")?,
            use_: owned("use")?,
            key_ops: key_ops.transpose()?,
            numbers,
        })
    }

    /// The thumbprint of the key (RFC 7638, SHA-256, base64url).
    pub fn thumbprint(&self) -> String {
        super::sha256(self.canonical().as_bytes())
    }

    /// The key without annotations, for the header of a DPoP proof.
    pub fn bare(&self) -> Value {
        serde_json::from_str(&self.canonical()).expect("the canonical form is JSON")
    }

    /// Whether the signature is valid; `None` if the key does not support this algorithm.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        let done = match self.check(algorithm)? {
            Check::Rsa(how, n, e) => {
                RsaPublicKeyComponents { n, e }.verify(how, message, signature)
            }
            Check::Bytes(how, key) => UnparsedPublicKey::new(how, key).verify(message, signature),
        };
        Some(done.is_ok())
    }

    pub(super) fn rsa(n: Vec<u8>, e: Vec<u8>) -> Self {
        Self::of(Numbers::Rsa { n, e })
    }

    /// From an uncompressed point: 4, x, y. `None` if it is on neither curve.
    pub(super) fn ec(point: &[u8]) -> Option<Self> {
        let (4, both) = point.split_first()? else { return None };
        let curve = match both.len() {
            64 => Curve::P256,
            96 => Curve::P384,
            _ => return None,
        };
        let (x, y) = both.split_at(both.len() / 2);
        Some(Self::of(Numbers::Ec { curve, x: x.to_vec(), y: y.to_vec() }))
    }

    pub(super) fn ed25519(x: &[u8]) -> Self {
        Self::of(Numbers::Ed25519 { x: x.to_vec() })
    }

    fn of(numbers: Numbers) -> Self {
        Self { kid: None, alg: None, use_: None, key_ops: None, numbers }
    }

    fn check(&self, algorithm: Algorithm) -> Option<Check<'_>> {
        let may = self.use_.as_deref().is_none_or(|it| it == "sig")
            && self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|it| it == "verify"))
            && self.alg.as_deref().is_none_or(|it| Algorithm::parse(it) == Some(algorithm));
        if !may {
            return None;
        }
        match &self.numbers {
            Numbers::Rsa { n, e } => {
                let how = match algorithm {
                    Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return None,
                };
                // ring rounds up to whole bytes; we do not.
                RSA_BITS.contains(&bits(n)).then_some(Check::Rsa(how, n, e))
            }
            Numbers::Ec { curve, x, y } => {
                let how: &'static dyn signature::VerificationAlgorithm = match (curve, algorithm) {
                    (Curve::P256, Algorithm::ES256) => &signature::ECDSA_P256_SHA256_FIXED,
                    (Curve::P384, Algorithm::ES384) => &signature::ECDSA_P384_SHA384_FIXED,
                    _ => return None,
                };
                Some(Check::Bytes(how, [&[4], &**x, &**y].concat()))
            }
            Numbers::Ed25519 { x } => (algorithm == Algorithm::EdDSA)
                .then(|| Check::Bytes(&signature::ED25519, x.clone())),
        }
    }

    /// The members of the key, in the order and form of RFC 7638.
    fn canonical(&self) -> String {
        let b64 = |it: &[u8]| URL_SAFE_NO_PAD.encode(it);
        match &self.numbers {
            Numbers::Rsa { n, e } => {
                format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, b64(e), b64(n))
            }
            Numbers::Ec { curve, x, y } => {
                let name = match curve {
                    Curve::P256 => "P-256",
                    Curve::P384 => "P-384",
                };
                format!(r#"{{"crv":"{name}","kty":"EC","x":"{}","y":"{}"}}"#, b64(x), b64(y))
            }
            Numbers::Ed25519 { x } => {
                format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, b64(x))
            }
        }
    }
}

impl TryFrom<Value> for Jwk {
    type Error = JoseError;

    fn try_from(value: Value) -> Result<Self, JoseError> {
        Self::parse(&value)
    }
}

impl From<Jwk> for Value {
    fn from(key: Jwk) -> Self {
        let mut value = key.bare();
        for (name, text) in [("kid", key.kid), ("alg", key.alg), ("use", key.use_)] {
            if let Some(text) = text {
                value[name] = text.into();
            }
        }
        if let Some(ops) = key.key_ops {
            value["key_ops"] = ops.into();
        }
        value
    }
}

impl fmt::Debug for Jwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kid = self.kid.as_deref().unwrap_or_default();
        write!(f, "Jwk({kid:?}, {})", self.thumbprint())
    }
}

/// The published public keys of an issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Jwks {
    keys: Vec<Jwk>,
}

impl Jwks {
    /// These keys.
    pub fn new(keys: impl IntoIterator<Item = Jwk>) -> Self {
        Self { keys: keys.into_iter().collect() }
    }

    /// Parses a key set and skips unusable keys (RFC 7517 §5): of unknown types, broken, or
    /// published with their private half.
    pub fn parse(text: &[u8]) -> Result<Self, JoseError> {
        if text.len() > MOST_BYTES {
            return Err(JoseError::TooLong);
        }
        let document: Value = serde_json::from_slice(text).map_err(|_| JoseError::Malformed)?;
        let keys = document.get("keys").and_then(Value::as_array).ok_or(JoseError::Malformed)?;
        if keys.len() > MOST_KEYS {
            return Err(JoseError::TooLong);
        }
        Ok(Self::new(keys.iter().filter_map(|it| Jwk::parse(it).ok())))
    }

    /// The keys, in their order.
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// Whether there is a key of this id; without an id, whether there is any key.
    pub fn has(&self, kid: Option<&str>) -> bool {
        self.named(kid).next().is_some()
    }

    pub(super) fn named(&self, kid: Option<&str>) -> impl Iterator<Item = &Jwk> {
        self.keys.iter().filter(move |it| kid.is_none() || it.kid.as_deref() == kid)
    }
}

fn key(why: &str) -> JoseError {
    JoseError::Key(format!("The key cannot be used. {why}"))
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, JoseError> {
    let wrong = || key(&format!("`{name}` is not a text."));
    members.get(name).map(|it| it.as_str().ok_or_else(wrong)).transpose()
}

fn decoded(members: &Map<String, Value>, name: &str) -> Result<Vec<u8>, JoseError> {
    let text = text(members, name)?.ok_or_else(|| key(&format!("`{name}` is missing.")))?;
    URL_SAFE_NO_PAD.decode(text).map_err(|_| key(&format!("`{name}` is not base64url.")))
}

fn bytes(members: &Map<String, Value>, name: &str, length: usize) -> Result<Vec<u8>, JoseError> {
    let bytes = decoded(members, name)?;
    if bytes.len() != length {
        return Err(key(&format!("`{name}` has not {length} bytes.")));
    }
    Ok(bytes)
}

/// A number without leading zeros: some writers add one, which ring refuses.
fn number(members: &Map<String, Value>, name: &str) -> Result<Vec<u8>, JoseError> {
    let bytes = decoded(members, name)?;
    let start = bytes.iter().position(|it| *it != 0);
    let start = start.ok_or_else(|| key(&format!("`{name}` is zero.")))?;
    Ok(bytes[start..].to_vec())
}

/// Of a number without leading zeros.
fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |it| it.leading_zeros() as usize);
    number.len() * 8 - unused
}

/// The private members of keys (RFC 7518 §6.2.2, 6.3.2, 6.4.1).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
const MOST_BYTES: usize = 262_144;
const MOST_KEYS: usize = 64;

#[cfg(test)]
mod tests;
