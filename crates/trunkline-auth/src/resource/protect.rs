//! The configuration of a gate.

use std::fmt;
use std::sync::Arc;

use super::replays::{Replays, SharedReplays};
use crate::jose::Algorithm;
use crate::metadata::ProtectedResource;
use crate::scope::{Hierarchy, Scopes};

mod asking;
mod check;
mod issuer;

pub use asking::Introspection;
pub(crate) use check::is_safe;
pub use issuer::JwtIssuer;
pub(crate) use issuer::Source;

settings! {
    /// What is protected, and which credentials grant access.
    #[derive(Clone, Debug)]
    pub struct Protect {
        resource: String = String::new(),
        name: Option<String> = None,
        documentation: Option<String> = None,
        authorization_servers: Vec<String> = Vec::new(),
        issuers: Vec<JwtIssuer> = Vec::new(),
        introspection: Option<Introspection> = None,
        api_keys: Vec<ApiKey> = Vec::new(),
        required: Scopes = Scopes::default(),
        supported: Scopes = Scopes::default(),
        hierarchy: Hierarchy = Hierarchy::default(),
        dpop: Dpop = Dpop::Off,
        nonces: bool = false,
        nonce_key: Option<NonceKey> = None,
        replays: Option<SharedReplays> = None,
        roots: Vec<String> = Vec::new(),
    }
}

impl Protect {
    /// Protects the resource at this URL, by which clients know it: it is the audience of their
    /// tokens.
    pub fn new(resource: impl Into<String>) -> Self {
        Self { resource: resource.into(), ..Self::unset() }
    }

    /// The URL of the protected resource.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Names an issuer where clients get tokens. Those of [`Self::jwt`] are included automatically.
    #[must_use]
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        if !self.authorization_servers.contains(&issuer) {
            self.authorization_servers.push(issuer);
        }
        self
    }

    /// Accepts the JWTs of this issuer.
    #[must_use]
    pub fn jwt(mut self, issuer: JwtIssuer) -> Self {
        self = self.authorization_server(issuer.issuer.clone());
        self.issuers.push(issuer);
        self
    }

    /// Introspects the tokens that are not JWTs of a known issuer.
    #[must_use]
    pub fn introspection(mut self, introspection: Introspection) -> Self {
        self.introspection = Some(introspection);
        self
    }

    /// Accepts this secret as a bearer token, for this principal and with these scopes.
    #[must_use]
    pub fn api_key<S: Into<String>>(
        mut self,
        name: impl Into<String>,
        secret: impl Into<String>,
        scopes: impl IntoIterator<Item = S>,
    ) -> Self {
        let (name, secret) = (name.into(), secret.into());
        self.api_keys.push(ApiKey { name, secret, scopes: scopes.into_iter().collect() });
        self
    }

    /// The scopes that every request needs.
    #[must_use]
    pub fn scopes_required<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.required = scopes.into_iter().collect();
        self
    }

    /// The scopes that clients are told to request first; by default the required ones.
    #[must_use]
    pub fn scopes_supported<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Self {
        self.supported = scopes.into_iter().collect();
        self
    }

    setters! {
        /// Which scopes imply others.
        hierarchy(hierarchy: impl Into<Hierarchy>) { hierarchy = hierarchy.into() }

        /// Whether tokens may, or must, be bound to a key of the client (RFC 9449).
        dpop(dpop: Dpop) { dpop = dpop }

        /// Whether DPoP proofs must contain a nonce that we issued in the last minutes. A client's
        /// first request then needs two attempts.
        dpop_nonces(nonces: bool) { nonces = nonces }

        /// The key of the nonces: the same for every server behind one load balancer, so that each
        /// accepts the nonces of the others. By default each process makes its own.
        ///
        /// Each process has its own replay cache: a stolen proof can be replayed once at another
        /// process, within two minutes and with its token, unless they share [`Self::replays`].
        nonce_key(key: [u8; 32]) { nonce_key = Some(NonceKey(key)) }

        /// Where the servers behind one load balancer remember which DPoP proofs were used. By default
        /// each process remembers its own.
        replays(replays: Arc<dyn Replays>) { replays = Some(SharedReplays(replays)) }

        /// Trusts these root certificates, one or more in PEM, besides the public ones, when keys are
        /// fetched and tokens introspected: for an issuer with a private certificate authority. The
        /// creator of the gate's [`Fetch`](crate::fetch::Fetch) applies them.
        root_certificate(pem: impl Into<String>) { roots.push(pem.into()) }
    }

    /// For servers that share a store and a key: sets [`Self::replays`] and [`Self::nonce_key`] unless that was
    /// done.
    #[must_use]
    pub fn shared(mut self, replays: Arc<dyn Replays>, key: [u8; 32]) -> Self {
        self.replays.get_or_insert(SharedReplays(replays));
        self.nonce_key.get_or_insert(NonceKey(key));
        self
    }

    /// The certificates of [`Self::root_certificate`].
    pub fn root_certificates(&self) -> &[String] {
        &self.roots
    }

    setters! {
        /// The name of the resource, for people.
        name(name: impl Into<String>) { name = Some(name.into()) }

        /// A page for developers.
        documentation(url: impl Into<String>) { documentation = Some(url.into()) }
    }

    /// The metadata of the resource.
    pub(crate) fn document(&self) -> ProtectedResource {
        let supported = if self.supported.is_empty() { &self.required } else { &self.supported };
        let mut document = ProtectedResource::new(&*self.resource);
        document.authorization_servers = self.authorization_servers.clone();
        document.scopes_supported = supported.as_slice().to_vec();
        document.bearer_methods_supported = vec!["header".to_owned()];
        document.resource_name = self.name.clone();
        document.resource_documentation = self.documentation.clone();
        if self.dpop != Dpop::Off {
            document.dpop_signing_alg_values_supported =
                Algorithm::ALL.iter().map(|it| it.name().to_owned()).collect();
        }
        document.dpop_bound_access_tokens_required = self.dpop == Dpop::Require;
        document
    }
}

/// Whether tokens are bound to a key of the client (RFC 9449). A bound token is never accepted
/// without its proof, whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dpop {
    /// They are not.
    #[default]
    Off,
    /// They may be.
    Accept,
    /// They must be.
    Require,
}

/// Why a gate's configuration is invalid. In words, with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misconfigured(pub String);

crate::error_in_words!(Misconfigured);

/// An API key.
#[derive(Clone)]
pub(crate) struct ApiKey {
    pub(crate) name: String,
    pub(crate) secret: String,
    pub(crate) scopes: Scopes,
}

impl fmt::Debug for ApiKey {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.scopes)
    }
}

/// The key that nonces are derived from.
#[derive(Clone)]
pub(crate) struct NonceKey(pub(crate) [u8; 32]);

impl fmt::Debug for NonceKey {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests;
