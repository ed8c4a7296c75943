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

    setters! {
        /// Its keys are here.
        jwks_url(url: impl Into<String>) { source = Source::At(url.into()) }

        /// Its keys are these, and never change.
        jwks(keys: Jwks) { source = Source::Known(Arc::new(keys)) }

        /// Its keys are where its own metadata says (RFC 8414, OpenID Connect Discovery). This is so
        /// from the beginning.
        discover() { source = Source::Discovered }

        /// What a claim of its tokens says is kept in [`Principal::claims`](crate::Principal::claims), under this
        /// name. A claim within another is written `realm_access.roles`.
        claim(name: impl Into<String>, claim: impl Into<String>) {
            rules.claims.push((name.into(), claim.into()))
        }

        /// Its tokens are for this audience, and no longer for the resource's URL. Said again, either
        /// will do.
        audience(audience: impl Into<String>) { rules.audiences.push(audience.into()) }

        /// Its tokens are signed with one of these.
        algorithms(algorithms: impl IntoIterator<Item = Algorithm>) {
            rules.algorithms = algorithms.into_iter().collect()
        }

        /// Its tokens say this `typ`, and no other: `at+jwt` where it follows RFC 9068, which keeps
        /// every other kind of its JWTs out. Unless this is said, `JWT` and nothing will also do, for
        /// that is what many issuers say; of those, what looks like an ID token is refused.
        token_type(typ: impl Into<String>) { rules.types = Types::Only(typ.into()) }

        /// How far its clock and ours may differ.
        leeway(leeway: Duration) { rules.leeway = leeway }
    }
}
