//! Private keys → signed tokens.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RsaEncoding, RsaKeyPair,
};
use serde_json::Value;

use super::{Algorithm, JoseError, Jwk};

/// A signing key. Its private half is never shown.
pub struct SigningKey {
    algorithm: Algorithm,
    pkcs8: Vec<u8>,
    pair: Pair,
    public: Jwk,
}

enum Pair {
    Rsa(Box<RsaKeyPair>, &'static dyn RsaEncoding),
    Ec(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

impl SigningKey {
    /// A new key for ES256.
    pub fn generate() -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(ES256, &random);
        let made = made.expect("the operating system hands out random bytes");
        Self::from_pkcs8(made.as_ref(), Algorithm::ES256).expect("a key just made is good")
    }

    /// Reads the first `PRIVATE KEY` block (PKCS #8) of a PEM text.
    pub fn from_pem(pem: &str, algorithm: Algorithm) -> Result<Self, JoseError> {
        let none = || JoseError::Key(NO_BLOCK.to_owned());
        let (_, rest) = pem.split_once(BEGIN).ok_or_else(none)?;
        let (body, _) = rest.split_once(END).ok_or_else(none)?;
        let body: String = body.split_ascii_whitespace().collect();
        Self::from_pkcs8(&STANDARD.decode(body).map_err(|_| none())?, algorithm)
    }

    /// Reads a private key: PKCS #8, as bytes.
    pub fn from_pkcs8(pkcs8: &[u8], algorithm: Algorithm) -> Result<Self, JoseError> {
        let unfit = |why: &dyn fmt::Display| {
            let name = algorithm.name();
            JoseError::Key(format!(
                "The private key cannot sign `{name}` ({why}); give a PKCS #8 key made for it."
            ))
        };
        let rsa = |how| {
            let pair = RsaKeyPair::from_pkcs8(pkcs8).map_err(|why| unfit(&why))?;
            let PublicKeyComponents::<Vec<u8>> { n, e } = pair.public().into();
            Ok((Pair::Rsa(Box::new(pair), how), Jwk::rsa(n, e)))
        };
        let ec = |how| {
            let pair = EcdsaKeyPair::from_pkcs8(how, pkcs8, &SystemRandom::new());
            let pair = pair.map_err(|why| unfit(&why))?;
            let public = Jwk::ec(pair.public_key().as_ref()).expect("ring writes whole points");
            Ok((Pair::Ec(Box::new(pair)), public))
        };
        let (pair, mut public) = match algorithm {
            Algorithm::RS256 => rsa(&signature::RSA_PKCS1_SHA256)?,
            Algorithm::RS384 => rsa(&signature::RSA_PKCS1_SHA384)?,
            Algorithm::RS512 => rsa(&signature::RSA_PKCS1_SHA512)?,
            Algorithm::PS256 => rsa(&signature::RSA_PSS_SHA256)?,
            Algorithm::PS384 => rsa(&signature::RSA_PSS_SHA384)?,
            Algorithm::PS512 => rsa(&signature::RSA_PSS_SHA512)?,
            Algorithm::ES256 => ec(ES256)?,
            Algorithm::ES384 => ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING)?,
            Algorithm::EdDSA => {
                // Openssl writes the first version, which has no public half to compare with.
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8);
                let pair = pair.map_err(|why| unfit(&why))?;
                let public = Jwk::ed25519(pair.public_key().as_ref());
                (Pair::Ed25519(Box::new(pair)), public)
            }
        };
        public.alg = Some(algorithm.name().to_owned());
        public.use_ = Some("sig".to_owned());
        Ok(Self { algorithm, pkcs8: pkcs8.to_vec(), pair, public })
    }

    /// Sets its key id, which every header then contains.
    #[must_use]
    pub fn named(mut self, kid: impl Into<String>) -> Self {
        self.public.kid = Some(kid.into());
        self
    }

    /// The private key, for secret storage.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public key, to be published.
    pub fn public(&self) -> &Jwk {
        &self.public
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Signs claims. `header` is an object of more members for the header, or null; `alg` and the
    /// key's name are added.
    pub fn sign(&self, header: Value, claims: &Value) -> String {
        let mut header = match header {
            Value::Object(members) => members,
            _ => serde_json::Map::new(),
        };
        header.insert("alg".to_owned(), self.algorithm.name().into());
        if let Some(kid) = &self.public.kid {
            header.insert("kid".to_owned(), kid.as_str().into());
        }
        let header = URL_SAFE_NO_PAD.encode(Value::Object(header).to_string());
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let signed = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.signature(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair, how) => {
                let mut out = vec![0; pair.public().modulus_len()];
                let done = pair.sign(*how, &random, message, &mut out);
                done.expect("the key is good and there are random bytes");
                out
            }
            Pair::Ec(pair) => {
                let done = pair.sign(&random, message);
                done.expect("the operating system hands out random bytes").as_ref().to_vec()
            }
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

impl fmt::Debug for SigningKey {
    /// Shows the public half only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, {:?})", self.algorithm.name(), self.public)
    }
}

static ES256: &EcdsaSigningAlgorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
const NO_BLOCK: &str = "The PEM text has no whole `PRIVATE KEY` block (PKCS #8, not encrypted); \
                        convert the key with `openssl pkcs8 -topk8 -nocrypt`.";

#[cfg(test)]
mod tests;
