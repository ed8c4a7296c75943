//! A request's head → its principal, or exactly why it is denied.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::hmac;
use ring::rand::SystemRandom;

use super::answer::{Admission, Denied};
use super::api_keys::ApiKeys;
use super::introspect::{Introspector, Unproven};
use super::jwt::{self, Rules, TokenError};
use super::keys::Keys;
use super::present::{self, HeadView, Scheme};
use super::protect::{Dpop, Misconfigured, NonceKey, Protect};
use super::replays::SharedReplays;
use super::target::seen_by_client;
use crate::Principal;
use crate::challenge::Challenge;
use crate::dpop::{Checker, DpopError, Expect};
use crate::fetch::Fetch;
use crate::jose::{self, Algorithm};
use crate::metadata::{self, PROTECTED_RESOURCE};
use crate::scope::{Scopes, missing};

/// Admits requests, or says why not. One per server, for every revision and transport.
pub struct Gate {
    protect: Protect,
    fetch: Arc<dyn Fetch>,
    metadata_url: String,
    metadata_path: String,
    document: String,
    issuers: Vec<(Rules, Keys)>,
    introspector: Option<Introspector>,
    api_keys: ApiKeys,
    proofs: Checker,
    nonces: hmac::Key,
}

impl Gate {
    /// A gate with this configuration, if it is valid.
    pub fn new(mut protect: Protect, fetch: Arc<dyn Fetch>) -> Result<Self, Misconfigured> {
        protect.check()?;
        let audience = protect.resource.clone();
        let ours =
            |given: Vec<String>| if given.is_empty() { vec![audience.clone()] } else { given };
        let names = protect.issuers.iter().map(|it| it.issuer.clone()).collect();
        let issuers = std::mem::take(&mut protect.issuers).into_iter().map(|mut it| {
            it.rules.audiences = ours(it.rules.audiences);
            (it.rules, Keys::new(it.issuer, it.source))
        });
        let issuers = issuers.collect();
        let introspector = protect.introspection.take().map(|mut it| {
            it.audiences = ours(it.audiences);
            Introspector::new(it, names)
        });
        let (_, path) = metadata::split(&protect.resource).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let metadata_path = format!("{PROTECTED_RESOURCE}{}", if path == "/" { "" } else { path });
        let document = serde_json::to_string(&protect.document()).expect("a document is texts");
        Ok(Self {
            metadata_url: metadata::protected_resource_url(&protect.resource).unwrap_or_default(),
            metadata_path,
            document,
            issuers,
            introspector,
            api_keys: ApiKeys::new(std::mem::take(&mut protect.api_keys)),
            proofs: Checker::new(PROOF_LIFE),
            nonces: nonce_key(protect.nonce_key.take()),
            protect,
            fetch,
        })
    }

    /// The URL of the protected resource.
    pub fn resource(&self) -> &str {
        &self.protect.resource
    }

    /// The protected resource metadata, if it is at this path: at the well-known path, with and
    /// without the resource's path behind it (RFC 9728).
    pub fn document(&self, path: &str) -> Option<&str> {
        (path == PROTECTED_RESOURCE || path == self.metadata_path).then_some(&*self.document)
    }

    /// Admits a request, or says why not.
    pub async fn admit(&self, head: HeadView<'_>) -> Result<Admission, Denied> {
        let presented = present::token(&head)
            .map_err(|why| self.denied(401, Some("invalid_request"), why, self.offered()))?;
        let Some((scheme, token)) = presented.filter(|(scheme, _)| self.takes(*scheme)) else {
            let why = match self.protect.dpop {
                Dpop::Require => "A token is needed; send one with the `DPoP` scheme and a proof.",
                _ => "A token is needed; send one in the `Authorization` header.",
            };
            return Err(self.denied(401, None, why, self.offered()));
        };
        let principal = self.bearer(scheme, token).await?;
        let wrong = |why| Err(self.denied(401, Some("invalid_token"), why, scheme.into()));
        let nonce = match (scheme, &principal.key) {
            (Scheme::Bearer, None) => None,
            (Scheme::Dpop, Some(key)) => self.prove(&head, token, key).await?,
            (Scheme::Bearer, Some(_)) => {
                return wrong(
                    "The token is bound to a key; send it with the `DPoP` scheme and a proof.",
                );
            }
            (Scheme::Dpop, None) => {
                return wrong(
                    "The token is not bound to a key; the `DPoP` scheme is for one that is.",
                );
            }
        };
        self.needs(&principal, &[])?;
        Ok(Admission { principal, nonce })
    }

    /// Whether a principal has these scopes and those that every request needs. If not, one
    /// challenge names all of them.
    pub fn needs(&self, principal: &Principal, needed: &[String]) -> Result<(), Denied> {
        let needed = self.protect.required.union(&needed.iter().collect());
        let granted = principal.scopes.iter().collect();
        let lacking = missing(&granted, &needed, &self.protect.hierarchy);
        if lacking.is_empty() {
            return Ok(());
        }
        let noun = if lacking.as_slice().len() == 1 { "scope" } else { "scopes" };
        let why = format!("The token lacks the {noun} `{lacking}`.");
        let offer = if principal.key.is_some() { Offer::Dpop } else { self.offered() };
        Err(self.refusal(403, Some("insufficient_scope"), &why, offer, &needed))
    }

    fn takes(&self, scheme: Scheme) -> bool {
        match scheme {
            Scheme::Bearer => self.protect.dpop != Dpop::Require,
            Scheme::Dpop => self.protect.dpop != Dpop::Off,
        }
    }

    /// The principal of the token: by an API key, by a JWT of a known issuer, or else by
    /// introspection.
    async fn bearer(&self, scheme: Scheme, token: &str) -> Result<Principal, Denied> {
        let found = match self.api_keys.find(token) {
            Some(key) => Ok(key),
            None => match (self.issuer_of(token), &self.introspector) {
                (Some((rules, keys)), _) => self.claims(token, rules, keys).await,
                (None, Some(introspector)) => introspector.check(token, &*self.fetch).await,
                (None, None) => {
                    Err(Unproven::Token("The token is not one of an issuer known here.".into()))
                }
            },
        };
        match found {
            Ok(principal) => Ok(self.with_implied(principal)),
            Err(Unproven::Token(why)) => {
                Err(self.denied(401, Some("invalid_token"), &why, scheme.into()))
            }
            Err(Unproven::Unknown(cause)) => {
                let why = "The token cannot be checked at the moment; try again later.";
                Err(Denied { cause: Some(cause), ..busy(why) })
            }
        }
    }

    /// Handlers call `may`, which does not know the hierarchy.
    fn with_implied(&self, mut principal: Principal) -> Principal {
        let granted = principal.scopes.into_iter().collect();
        principal.scopes = self.protect.hierarchy.all(&granted).as_slice().to_vec();
        principal
    }

    /// The issuer that the token claims to be from, if it is one of ours. Nothing is believed yet.
    fn issuer_of(&self, token: &str) -> Option<&(Rules, Keys)> {
        #[derive(serde::Deserialize)]
        struct Claimed {
            iss: String,
        }
        let payload = jose::unverified_payload(token).ok()?;
        let claimed: Claimed = serde_json::from_slice(&payload).ok()?;
        self.issuers.iter().find(|(rules, _)| rules.issuer == claimed.iss)
    }

    async fn claims(&self, token: &str, rules: &Rules, keys: &Keys) -> Result<Principal, Unproven> {
        let fetch = &*self.fetch;
        let known = keys.current(fetch).await.map_err(Unproven::Unknown)?;
        let mut checked = jwt::check(token, &known, rules, fetch.now());
        // The issuer may have rotated its keys, and may have reused a key id.
        if let Err(TokenError::UnknownKey | TokenError::Signature) = checked
            && let Some(newer) = keys.newer(fetch, &known).await
        {
            checked = jwt::check(token, &newer, rules, fetch.now());
        }
        let claims = checked.map_err(|why| Unproven::Token(why.to_string()))?;
        let mut principal = Principal::new(claims.subject).issued_by(claims.issuer);
        principal.scopes = claims.scopes;
        principal.client_id = claims.client_id;
        principal.expires = Some(claims.expires);
        principal.key = claims.jkt;
        if !rules.claims.is_empty() {
            let read = rules.claims.iter();
            let read = read.map(|(name, claim)| (name.clone(), jwt::values(&claims.all, claim)));
            principal.claims = Arc::new(read.collect());
        }
        Ok(principal)
    }

    /// Whether the request has a fresh proof of this key. If so, a newer nonce to issue.
    async fn prove(
        &self,
        head: &HeadView<'_>,
        token: &str,
        key: &str,
    ) -> Result<Option<String>, Denied> {
        let bad = |why: &str| self.denied(401, Some("invalid_dpop_proof"), why, Offer::Dpop);
        let proof = present::proof(head).map_err(bad)?;
        // Before the proof is remembered: a thief of a token must not fill the cache with proofs of
        // another key.
        let theirs = jose::peek(proof).ok().and_then(|it| it.jwk).map(|it| it.thumbprint());
        if theirs.as_deref() != Some(key) {
            return Err(bad("The proof is not by the key that the token is bound to."));
        }
        let now = self.fetch.now();
        let (current, before) = (self.nonce(now, 0), self.nonce(now, 1));
        let is_before = self.protect.nonces && claims_nonce(proof, &before);
        let nonce = if is_before { &before } else { &current };
        let url = seen_by_client(&self.protect.resource, head.own, head.path);
        let expect = Expect {
            method: head.method,
            url: &url,
            token: Some(token),
            nonce: self.protect.nonces.then_some(&**nonce),
            now,
        };
        match self.proofs.check_named(proof, expect) {
            Ok((_, name)) => match self.is_first(&name).await {
                Some(true) => Ok(is_before.then_some(current)),
                Some(false) => Err(bad(&DpopError::Replayed.to_string())),
                None => Err(busy("The proof cannot be checked at the moment; try again later.")),
            },
            Err(DpopError::WrongNonce) => {
                let why = "The proof needs the nonce of the `DPoP-Nonce` header.";
                let denied = self.denied(401, Some("use_dpop_nonce"), why, Offer::Dpop);
                Err(Denied { nonce: Some(current), ..denied })
            }
            // The proof is not at fault: another token or proof would not help.
            Err(DpopError::Full) => Err(busy(&DpopError::Full.to_string())),
            Err(why) => Err(bad(&why.to_string())),
        }
    }

    /// Whether no server that shares our memory has seen this proof.
    async fn is_first(&self, name: &[u8; 32]) -> Option<bool> {
        let Some(SharedReplays(replays)) = &self.protect.replays else { return Some(true) };
        let name: String = name.iter().map(|it| format!("{it:02x}")).collect();
        // A proof from the future is valid until twice its life from now.
        replays.is_first(&name, PROOF_LIFE * 2).await
    }

    /// The nonce of this period, or of an earlier one.
    fn nonce(&self, now: SystemTime, before: u64) -> String {
        let time = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / NONCE_LIFE;
        let time = time.saturating_sub(before);
        let tag = hmac::sign(&self.nonces, format!("DPoP-Nonce {time}").as_bytes());
        tag.as_ref()[..8].iter().map(|it| format!("{it:02x}")).collect()
    }

    /// The schemes to offer to a request without credentials.
    fn offered(&self) -> Offer {
        match self.protect.dpop {
            Dpop::Off => Offer::Bearer,
            Dpop::Accept => Offer::Both,
            Dpop::Require => Offer::Dpop,
        }
    }

    fn denied(&self, status: u16, error: Option<&'static str>, why: &str, offer: Offer) -> Denied {
        self.refusal(status, error, why, offer, &self.protect.required)
    }

    fn refusal(
        &self,
        status: u16,
        error: Option<&'static str>,
        why: &str,
        offer: Offer,
        scopes: &Scopes,
    ) -> Denied {
        let algorithms = Algorithm::ALL.map(Algorithm::name).join(" ");
        let mut challenge = Challenge::new(if offer == Offer::Dpop { "DPoP" } else { "Bearer" });
        if let Some(error) = error {
            challenge = challenge.with("error", error);
        }
        if !scopes.is_empty() {
            challenge = challenge.with("scope", scopes.to_string());
        }
        challenge = challenge.with("resource_metadata", &*self.metadata_url);
        // Without credentials there is no error (RFC 6750 §3.1).
        if error.is_some() {
            challenge = challenge.with("error_description", why);
        }
        if offer == Offer::Dpop {
            challenge = challenge.with("algs", &*algorithms);
        }
        let mut line = challenge.to_string();
        if offer == Offer::Both {
            line = format!("{line}, {}", Challenge::new("DPoP").with("algs", algorithms));
        }
        Denied {
            status,
            error,
            description: why.to_owned(),
            challenge: Some(line),
            nonce: None,
            cause: None,
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("resource", &self.protect.resource).finish_non_exhaustive()
    }
}

/// The schemes that a challenge names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    Bearer,
    Dpop,
    Both,
}

impl From<Scheme> for Offer {
    /// A request that used one scheme is told about that scheme.
    fn from(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Bearer => Self::Bearer,
            Scheme::Dpop => Self::Dpop,
        }
    }
}

/// For a client that did nothing wrong, and should retry.
fn busy(why: &str) -> Denied {
    let description = why.to_owned();
    Denied { status: 503, error: None, description, challenge: None, nonce: None, cause: None }
}

fn nonce_key(given: Option<NonceKey>) -> hmac::Key {
    match given {
        Some(NonceKey(key)) => hmac::Key::new(hmac::HMAC_SHA256, &key),
        None => hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .expect("the operating system hands out random bytes"),
    }
}

fn claims_nonce(proof: &str, nonce: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Claimed {
        nonce: String,
    }
    let payload = jose::unverified_payload(proof).unwrap_or_default();
    serde_json::from_slice(&payload).is_ok_and(|it: Claimed| it.nonce == nonce)
}

/// The longest age of a proof.
const PROOF_LIFE: Duration = Duration::from_secs(120);
/// For how many seconds a nonce is issued; it is valid for as many more.
const NONCE_LIFE: u64 = 120;

#[cfg(test)]
mod tests;
