//! The configuration of an issuer: its keys, and the required claims of its JWTs.

use std::sync::Arc;
use std::time::Duration;

use crate::jose::{Algorithm, Jwks};
use crate::resource::jwt::{Rules, Types};

/// An issuer whose JWTs are accepted.
#[derive(Clone, Debug)]
pub struct JwtIssuer {
    pub(crate) issuer: String,
    pub(crate) source: Source,
    pub(crate) rules: Rules,
}

/// The source of an issuer's keys.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The URL in the issuer's own metadata.
    Discovered,
    /// This URL.
    At(String),
    /// These keys.
    Known(Arc<Jwks>),
}

impl JwtIssuer {
    /// An issuer by its identifier, exactly as in `iss`. By default its keys come from its
    /// metadata, its tokens must be for the resource's URL, the clock skew is a minute, and every
    /// algorithm with a public key is allowed.
    pub fn new(issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        let rules = Rules::new(&*issuer, [] as [String; 0]);
        Self { issuer, source: Source::Discovered, rules }
    }

    /// Sets the URL of its keys.
    #[must_use]
    pub fn jwks_url(mut self, url: impl Into<String>) -> Self {
        self.source = Source::At(url.into());
        self
    }

    /// Sets its keys, which never change.
    #[must_use]
    pub fn jwks(mut self, keys: Jwks) -> Self {
        self.source = Source::Known(Arc::new(keys));
        self
    }

    /// Takes its keys from its own metadata (RFC 8414, OpenID Connect Discovery). This is the
    /// default.
    #[must_use]
    pub fn discover(mut self) -> Self {
        self.source = Source::Discovered;
        self
    }

    /// Copies a claim of its tokens to [`Principal::claims`](crate::Principal::claims), under this
    /// name. A nested claim is written `realm_access.roles`.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, claim: impl Into<String>) -> Self {
        self.rules.claims.push((name.into(), claim.into()));
        self
    }

    /// Requires this audience instead of the resource's URL. May be repeated to allow several.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.rules.audiences.push(audience.into());
        self
    }

    /// Allows only these algorithms.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.rules.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Requires this `typ`: `at+jwt` if it follows RFC 9068, which excludes every other kind of its
    /// JWTs. By default `JWT` and a missing `typ` are accepted too, because many issuers use them;
    /// of those, tokens that look like ID tokens are refused.
    #[must_use]
    pub fn token_type(mut self, typ: impl Into<String>) -> Self {
        self.rules.types = Types::Only(typ.into());
        self
    }

    /// Sets the allowed clock skew.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.rules.leeway = leeway;
        self
    }
}
