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

    setters! {
        /// Sets the URL of its keys.
        jwks_url(url: impl Into<String>) { source = Source::At(url.into()) }

        /// Sets its keys, which never change.
        jwks(keys: Jwks) { source = Source::Known(Arc::new(keys)) }

        /// Takes its keys from its own metadata (RFC 8414, OpenID Connect Discovery). This is the
        /// default.
        discover() { source = Source::Discovered }

        /// Copies a claim of its tokens to [`Principal::claims`](crate::Principal::claims), under this
        /// name. A nested claim is written `realm_access.roles`.
        claim(name: impl Into<String>, claim: impl Into<String>) {
            rules.claims.push((name.into(), claim.into()))
        }

        /// Requires this audience instead of the resource's URL. May be repeated to allow several.
        audience(audience: impl Into<String>) { rules.audiences.push(audience.into()) }

        /// Allows only these algorithms.
        algorithms(algorithms: impl IntoIterator<Item = Algorithm>) {
            rules.algorithms = algorithms.into_iter().collect()
        }

        /// Requires this `typ`: `at+jwt` if it follows RFC 9068, which excludes every other kind of its
        /// JWTs. By default `JWT` and a missing `typ` are accepted too, because many issuers use them;
        /// of those, tokens that look like ID tokens are refused.
        token_type(typ: impl Into<String>) { rules.types = Types::Only(typ.into()) }

        /// Sets the allowed clock skew.
        leeway(leeway: Duration) { rules.leeway = leeway }
    }
}
