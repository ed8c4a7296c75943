//! Proofs of possession: of the verifier behind a challenge (PKCE), of a key (DPoP).

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use trunkline_auth::dpop::{DpopError, Expect};
use trunkline_auth::jose;

use crate::desk::Desk;
use crate::fault::Fault;
use crate::message::Request;

/// Whether `challenge` was made of `verifier` (RFC 7636, `S256`).
pub(crate) fn fits(challenge: &str, verifier: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    (43..=128).contains(&verifier.len())
        && verifier.bytes().all(is_allowed)
        && URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())) == challenge
}

impl Desk {
    /// The key that a request proves to have, if it does.
    pub(crate) fn bound(&self, request: &Request) -> Result<Option<String>, Fault> {
        let invalid =
            |why: &str| self.with_nonce(Fault::new("invalid_dpop_proof", why), request.now);
        let mut proofs = request.all("dpop");
        let (proof, more) = (proofs.next(), proofs.next());
        if more.is_some() {
            return Err(invalid("`DPoP` is there twice; send it once."));
        }
        let Some(proof) = proof else {
            return match self.settings.require_dpop {
                true => Err(invalid("Tokens are bound to a key here; send a proof in `DPoP`.")),
                false => Ok(None),
            };
        };
        let nonces = [self.nonce(request.now, 0), self.nonce(request.now, 1)];
        // A value lasts until the one after it is old, so nobody loses a race against the change.
        let nonce = self.settings.dpop_nonces.then(|| match said(proof) {
            Some(said) if said == nonces[1] => &*nonces[1],
            _ => &*nonces[0],
        });
        let url = self.url("/token");
        let expected = Expect { method: "POST", url: &url, token: None, nonce, now: request.now };
        match self.checker.check(proof, expected) {
            Ok(key) => Ok(Some(key)),
            Err(DpopError::WrongNonce) => {
                let why = "The proof has to hold the value of `DPoP-Nonce`.";
                Err(self.with_nonce(Fault::new("use_dpop_nonce", why), request.now))
            }
            Err(DpopError::Replayed) => Err(invalid("The proof was used before.")),
            Err(error) => Err(invalid(&error.to_string())),
        }
    }

    /// The value that proofs hold now; `ago` counts how many changes back.
    pub(crate) fn nonce(&self, now: SystemTime, ago: u64) -> String {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / NONCE_SECONDS;
        let tag = self.nonces.scope("dpop-nonce").tag(&since.saturating_sub(ago).to_be_bytes());
        format!("{tag:016x}")
    }

    fn with_nonce(&self, fault: Fault, now: SystemTime) -> Fault {
        match self.settings.dpop_nonces {
            true => fault.with("dpop-nonce", self.nonce(now, 0)),
            false => fault,
        }
    }
}

/// The nonce that a proof holds, before anything of it is proven.
fn said(proof: &str) -> Option<String> {
    let claims: Value = serde_json::from_slice(&jose::unverified_payload(proof).ok()?).ok()?;
    claims["nonce"].as_str().map(str::to_owned)
}

/// How often the nonce changes.
const NONCE_SECONDS: u64 = 300;

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn the_challenge_is_the_one_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert!(fits(challenge, verifier));
        assert!(!fits(verifier, verifier), "`plain` is not S256");
        assert!(!fits(challenge, &verifier[1..]));
        assert!(!fits(challenge, ""));
    }
}
