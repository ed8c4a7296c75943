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

/// What is protected, and what lets people in.
///
/// ```
/// use trunkline_auth::resource::{Dpop, JwtIssuer, Protect};
///
/// let protect = Protect::new("https://mcp.example/mcp")
///     .jwt(JwtIssuer::new("https://id.example/realms/one"))
///     .scopes_required(["mcp"])
///     .scopes_supported(["mcp", "files:read", "files:write"])
///     .hierarchy([("files:write", ["files:read"])])
///     .dpop(Dpop::Accept)
///     .documentation("https://mcp.example/docs");
/// assert!(format!("{protect:?}").starts_with("Protect"));
/// ```
#[derive(Clone, Debug)]
pub struct Protect {
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) documentation: Option<String>,
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) issuers: Vec<JwtIssuer>,
    pub(crate) introspection: Option<Introspection>,
    pub(crate) api_keys: Vec<ApiKey>,
    pub(crate) required: Scopes,
    pub(crate) supported: Scopes,
    pub(crate) hierarchy: Hierarchy,
    pub(crate) dpop: Dpop,
    pub(crate) nonces: bool,
    pub(crate) nonce_key: Option<NonceKey>,
    pub(crate) roots: Vec<String>,
}

impl Protect {
    /// Protects the resource at this URL, which is the one that clients use: it is the audience of
    /// their tokens.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let protect = Protect::new("https://mcp.example/mcp");
    /// ```
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            name: None,
            documentation: None,
            authorization_servers: Vec::new(),
            issuers: Vec::new(),
            introspection: None,
            api_keys: Vec::new(),
            required: Scopes::default(),
            supported: Scopes::default(),
            hierarchy: Hierarchy::default(),
            dpop: Dpop::Off,
            nonces: false,
            nonce_key: None,
            roots: Vec::new(),
        }
    }

    /// The URL of what is protected.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// assert_eq!(Protect::new("https://mcp.example/mcp").resource(), "https://mcp.example/mcp");
    /// ```
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Names an issuer where clients get tokens. Those of [`Self::jwt`] are named without.
    ///
    /// ```
    /// # use trunkline_auth::resource::{Introspection, Protect};
    /// let protect = Protect::new("https://mcp.example/mcp")
    ///     .authorization_server("https://id.example")
    ///     .introspection(Introspection::new("https://id.example/introspect", "mcp", "secret"));
    /// ```
    #[must_use]
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        if !self.authorization_servers.contains(&issuer) {
            self.authorization_servers.push(issuer);
        }
        self
    }

    /// Lets in the JWTs of this issuer.
    ///
    /// ```
    /// # use trunkline_auth::resource::{JwtIssuer, Protect};
    /// let protect = Protect::new("https://mcp.example/mcp")
    ///     .jwt(JwtIssuer::new("https://id.example"))
    ///     .jwt(JwtIssuer::new("https://partner.example"));
    /// ```
    #[must_use]
    pub fn jwt(mut self, issuer: JwtIssuer) -> Self {
        self = self.authorization_server(issuer.issuer.clone());
        self.issuers.push(issuer);
        self
    }

    /// Asks an authorization server about the tokens that are nobody's JWTs.
    ///
    /// ```
    /// # use trunkline_auth::resource::{Introspection, Protect};
    /// let ask = Introspection::new("https://id.example/introspect", "mcp", "secret");
    /// let protect = Protect::new("https://mcp.example/mcp").introspection(ask);
    /// ```
    #[must_use]
    pub fn introspection(mut self, introspection: Introspection) -> Self {
        self.introspection = Some(introspection);
        self
    }

    /// Lets in whoever sends this secret as a bearer token, under this name and with these scopes.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let protect = Protect::new("https://mcp.example/mcp")
    ///     .api_key("build-robot", "pQ7-lVhCgW2kXr9bTz4n", ["files:read"]);
    /// assert!(!format!("{protect:?}").contains("pQ7"), "secrets are never shown");
    /// ```
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
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let protect = Protect::new("https://mcp.example/mcp").scopes_required(["mcp"]);
    /// ```
    #[must_use]
    pub fn scopes_required<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.required = scopes.into_iter().collect();
        self
    }

    /// The scopes that clients are told to ask for at first; those required if this is not said.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let protect = Protect::new("https://mcp.example/mcp").scopes_supported(["mcp", "files:read"]);
    /// ```
    #[must_use]
    pub fn scopes_supported<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Self {
        self.supported = scopes.into_iter().collect();
        self
    }

    /// Which scopes imply others.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let protect = Protect::new("https://mcp.example/mcp")
    ///     .hierarchy([("admin", vec!["files"]), ("files", vec!["files:read", "files:write"])]);
    /// ```
    #[must_use]
    pub fn hierarchy(mut self, hierarchy: impl Into<Hierarchy>) -> Self {
        self.hierarchy = hierarchy.into();
        self
    }

    /// Whether tokens may, or must, be bound to a key of the client (RFC 9449).
    ///
    /// ```
    /// # use trunkline_auth::resource::{Dpop, Protect};
    /// let protect = Protect::new("https://mcp.example/mcp").dpop(Dpop::Require);
    /// ```
    #[must_use]
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.dpop = dpop;
        self
    }

    /// Whether proofs of such keys must hold a nonce that we gave out in the last minutes. A
    /// client's first request then takes two tries.
    ///
    /// ```
    /// # use trunkline_auth::resource::{Dpop, Protect};
    /// let protect = Protect::new("https://mcp.example/mcp").dpop(Dpop::Require).dpop_nonces(true);
    /// ```
    #[must_use]
    pub fn dpop_nonces(mut self, nonces: bool) -> Self {
        self.nonces = nonces;
        self
    }

    /// The key of the nonces: the same for every server behind one balancer, so that each takes
    /// the nonces of the others. Without it each process makes its own.
    ///
    /// Which proofs were used is remembered by each process for itself: one that is stolen on its
    /// way can be shown once more to another process, within two minutes and with its token. Let
    /// the balancer send one client to one server where that matters.
    ///
    /// ```
    /// # use trunkline_auth::resource::{Dpop, Protect};
    /// # let from_the_vault = [7; 32];
    /// let protect = Protect::new("https://mcp.example/mcp")
    ///     .dpop(Dpop::Require)
    ///     .dpop_nonces(true)
    ///     .nonce_key(from_the_vault);
    /// assert!(!format!("{protect:?}").contains("7, 7"), "secrets are never shown");
    /// ```
    #[must_use]
    pub fn nonce_key(mut self, key: [u8; 32]) -> Self {
        self.nonce_key = Some(NonceKey(key));
        self
    }

    /// Trusts certificates that these issued, one or more in PEM, beside those that browsers trust,
    /// where keys and introspections are fetched: for an issuer with a certificate of the company's
    /// own. It is for whoever makes the [`Fetch`](crate::fetch::Fetch) of the gate.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let pem = "-----BEGIN CERTIFICATE-----…";
    /// let protect = Protect::new("https://mcp.example/mcp").root_certificate(pem);
    /// assert_eq!(protect.root_certificates(), [pem]);
    /// ```
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<String>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// The certificates of [`Self::root_certificate`].
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// assert!(Protect::new("https://mcp.example/mcp").root_certificates().is_empty());
    /// ```
    pub fn root_certificates(&self) -> &[String] {
        &self.roots
    }

    /// The name of the resource, for people.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let protect = Protect::new("https://mcp.example/mcp").name("The file server");
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A page for developers.
    ///
    /// ```
    /// # use trunkline_auth::resource::Protect;
    /// let protect = Protect::new("https://mcp.example/mcp").documentation("https://mcp.example/docs");
    /// ```
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
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
///
/// ```
/// use trunkline_auth::resource::Dpop;
///
/// assert_eq!(Dpop::default(), Dpop::Off);
/// ```
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
///
/// ```
/// use trunkline_auth::resource::Misconfigured;
///
/// let why = Misconfigured("The issuer `a` is there twice; leave one.".to_owned());
/// assert_eq!(why.to_string(), "The issuer `a` is there twice; leave one.");
/// ```
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
