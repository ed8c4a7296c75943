//! An issuer: whose JWTs are let in, where its keys are, and what they must say.

use std::sync::Arc;
use std::time::Duration;

use crate::jose::{Algorithm, Jwks};
use crate::resource::jwt::{Rules, Types};

/// An issuer whose JWTs are let in.
#[derive(Clone, Debug)]
pub struct JwtIssuer {
    pub(crate) issuer: String,
    pub(crate) source: Source,
    pub(crate) rules: Rules,
}

/// Where an issuer's keys come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// From where the issuer's own document says.
    Discovered,
    /// From here.
    At(String),
    /// They are known.
    Known(Arc<Jwks>),
}

impl JwtIssuer {
    /// An issuer by its identifier, byte for byte what `iss` says. Its keys are found through its
    /// metadata, its tokens must be for the resource's URL, a minute of leeway is given, and every
    /// algorithm with a public key is allowed.
    pub fn new(issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        let rules = Rules::new(&*issuer, [] as [String; 0]);
        Self { issuer, source: Source::Discovered, rules }
    }

    /// Its keys are here.
    #[must_use]
    pub fn jwks_url(mut self, url: impl Into<String>) -> Self {
        self.source = Source::At(url.into());
        self
    }

    /// Its keys are these, and never change.
    #[must_use]
    pub fn jwks(mut self, keys: Jwks) -> Self {
        self.source = Source::Known(Arc::new(keys));
        self
    }

    /// Its keys are where its own metadata says (RFC 8414, OpenID Connect Discovery). This is so
    /// from the beginning.
    #[must_use]
    pub fn discover(mut self) -> Self {
        self.source = Source::Discovered;
        self
    }

    /// What a claim of its tokens says is kept in [`Principal::claims`](crate::Principal::claims), under this
    /// name. A claim within another is written `realm_access.roles`.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, claim: impl Into<String>) -> Self {
        self.rules.claims.push((name.into(), claim.into()));
        self
    }

    /// Its tokens are for this audience, and no longer for the resource's URL. Said again, either
    /// will do.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.rules.audiences.push(audience.into());
        self
    }

    /// Its tokens are signed with one of these.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.rules.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Its tokens say this `typ`, and no other: `at+jwt` where it follows RFC 9068, which keeps
    /// every other kind of its JWTs out. Unless this is said, `JWT` and nothing will also do, for
    /// that is what many issuers say; of those, what looks like an ID token is refused.
    #[must_use]
    pub fn token_type(mut self, typ: impl Into<String>) -> Self {
        self.rules.types = Types::Only(typ.into());
        self
    }

    /// How far its clock and ours may differ.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.rules.leeway = leeway;
        self
    }
}
