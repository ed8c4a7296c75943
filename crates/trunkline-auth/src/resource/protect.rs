//! What is protected, by whom and how: said once, checked once.

use std::fmt;

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
    /// What is protected, and what lets people in.
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
        roots: Vec<String> = Vec::new(),
    }
}

impl Protect {
    /// Protects the resource at this URL, which is the one that clients use: it is the audience of
    /// their tokens.
    pub fn new(resource: impl Into<String>) -> Self {
        Self { resource: resource.into(), ..Self::unset() }
    }

    /// The URL of what is protected.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Names an issuer where clients get tokens. Those of [`Self::jwt`] are named without.
    #[must_use]
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        if !self.authorization_servers.contains(&issuer) {
            self.authorization_servers.push(issuer);
        }
        self
    }

    /// Lets in the JWTs of this issuer.
    #[must_use]
    pub fn jwt(mut self, issuer: JwtIssuer) -> Self {
        self = self.authorization_server(issuer.issuer.clone());
        self.issuers.push(issuer);
        self
    }

    /// Asks an authorization server about the tokens that are nobody's JWTs.
    #[must_use]
    pub fn introspection(mut self, introspection: Introspection) -> Self {
        self.introspection = Some(introspection);
        self
    }

    /// Lets in whoever sends this secret as a bearer token, under this name and with these scopes.
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

    /// The scopes that clients are told to ask for at first; those required if this is not said.
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

        /// Whether proofs of such keys must hold a nonce that we gave out in the last minutes. A
        /// client's first request then takes two tries.
        dpop_nonces(nonces: bool) { nonces = nonces }

        /// The key of the nonces: the same for every server behind one balancer, so that each takes
        /// the nonces of the others. Without it each process makes its own.
        ///
        /// Which proofs were used is remembered by each process for itself: one that is stolen on its
        /// way can be shown once more to another process, within two minutes and with its token. Let
        /// the balancer send one client to one server where that matters.
        nonce_key(key: [u8; 32]) { nonce_key = Some(NonceKey(key)) }

        /// Trusts certificates that these issued, one or more in PEM, beside those that browsers trust,
        /// where keys and introspections are fetched: for an issuer with a certificate of the company's
        /// own. It is for whoever makes the [`Fetch`](crate::fetch::Fetch) of the gate.
        root_certificate(pem: impl Into<String>) { roots.push(pem.into()) }
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

    /// What the resource says about itself.
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

/// Whether tokens are bound to a key of the client, which proves that it has it (RFC 9449). A token
/// that is bound is never let in without its proof, whatever this says.
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

/// Why a gate cannot work as it was told. In words, with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misconfigured(pub String);

impl fmt::Display for Misconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misconfigured {}

/// A secret of ours that lets somebody in.
#[derive(Clone)]
pub(crate) struct ApiKey {
    pub(crate) name: String,
    pub(crate) secret: String,
    pub(crate) scopes: Scopes,
}

impl fmt::Debug for ApiKey {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.scopes)
    }
}

/// What nonces are made with.
#[derive(Clone)]
pub(crate) struct NonceKey(pub(crate) [u8; 32]);

impl fmt::Debug for NonceKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests;
