//! What is protected, by whom and how: said once, checked once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::present::is_token;
use crate::jose::{Algorithm, Jwks};
use crate::metadata::{self, ProtectedResource};
use crate::resource::jwt::Rules;
use crate::scope::{Hierarchy, Scopes, is_scope};

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

    /// Whether it can work, and if not, why.
    pub(crate) fn check(&self) -> Result<(), Misconfigured> {
        let no = |why: String| Err(Misconfigured(why));
        let resource = &self.resource;
        let (origin, _) = metadata::split(resource).unwrap_or_default();
        let is_http = origin.starts_with("https://") || origin.starts_with("http://");
        if !is_http || origin.contains('@') || resource.contains('#') {
            return no(format!(
                "`{}` is not the URL of a resource; give the `https://` URL that clients use, without a user and without `#`.",
                crate::url::shown(resource)
            ));
        }
        if resource.contains(|it: char| it.is_ascii_control() || it == ' ' || !it.is_ascii()) {
            return no(
                "The URL of the resource has a character that URLs cannot have; percent-encode it."
                    .into(),
            );
        }
        if self.issuers.is_empty() && self.introspection.is_none() && self.api_keys.is_empty() {
            return no(format!(
                "Nobody could get in at `{resource}`; add an issuer with `jwt`, or `introspection`, or an `api_key`."
            ));
        }
        for (place, issuer) in self.issuers.iter().enumerate() {
            if self.issuers[..place].iter().any(|it| it.issuer == issuer.issuer) {
                return no(format!("The issuer `{}` is there twice; leave one.", issuer.issuer));
            }
            if issuer.rules.algorithms.is_empty() {
                return no(format!(
                    "No algorithm is allowed for the issuer `{}`; name one, such as `ES256`.",
                    issuer.issuer
                ));
            }
        }
        for (place, key) in self.api_keys.iter().enumerate() {
            if key.secret.len() < SHORTEST_KEY || !is_token(&key.secret) {
                return no(format!(
                    "The API key `{}` cannot be used; give it {SHORTEST_KEY} or more random letters and digits.",
                    key.name
                ));
            }
            if let Some(other) = self.api_keys[..place].iter().find(|it| it.secret == key.secret) {
                return no(format!(
                    "The API keys `{}` and `{}` are the same; give each its own.",
                    other.name, key.name
                ));
            }
            if self.dpop == Dpop::Require {
                return no(format!(
                    "The API key `{}` cannot be bound to a key of the client; use `Dpop::Accept`, or leave it out.",
                    key.name
                ));
            }
        }
        let keys = self.api_keys.iter().map(|it| &it.scopes);
        let scopes = [&self.required, &self.supported].into_iter().chain(keys);
        if let Some(bad) = scopes.flat_map(Scopes::as_slice).find(|it| !is_scope(it)) {
            return no(format!(
                "`{bad}` is not a scope; give scopes one by one, without spaces, quotes and backslashes."
            ));
        }
        if self.required.contains(OFFLINE) || self.supported.contains(OFFLINE) {
            return no(format!(
                "`{OFFLINE}` is not for a resource to ask for; leave it out, clients ask by themselves."
            ));
        }
        Ok(())
    }
}

/// An issuer whose JWTs are let in.
///
/// ```
/// use std::time::Duration;
/// use trunkline_auth::jose::Algorithm;
/// use trunkline_auth::resource::JwtIssuer;
///
/// let issuer = JwtIssuer::new("https://id.example/realms/one")
///     .jwks_url("https://id.example/realms/one/certs")
///     .audience("mcp")
///     .algorithms([Algorithm::ES256])
///     .leeway(Duration::from_secs(10));
/// ```
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
    ///
    /// ```
    /// # use trunkline_auth::resource::JwtIssuer;
    /// let issuer = JwtIssuer::new("https://id.example");
    /// ```
    pub fn new(issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        let rules = Rules::new(&*issuer, [] as [String; 0]);
        Self { issuer, source: Source::Discovered, rules }
    }

    /// Its keys are here.
    ///
    /// ```
    /// # use trunkline_auth::resource::JwtIssuer;
    /// let issuer = JwtIssuer::new("https://id.example").jwks_url("https://id.example/keys");
    /// ```
    #[must_use]
    pub fn jwks_url(mut self, url: impl Into<String>) -> Self {
        self.source = Source::At(url.into());
        self
    }

    /// Its keys are these, and never change.
    ///
    /// ```
    /// # use trunkline_auth::{jose::{Jwks, SigningKey}, resource::JwtIssuer};
    /// let keys = Jwks::new([SigningKey::generate().public().clone()]);
    /// let issuer = JwtIssuer::new("https://id.example").jwks(keys);
    /// ```
    #[must_use]
    pub fn jwks(mut self, keys: Jwks) -> Self {
        self.source = Source::Known(Arc::new(keys));
        self
    }

    /// Its keys are where its own metadata says (RFC 8414, OpenID Connect Discovery). This is so
    /// from the beginning.
    ///
    /// ```
    /// # use trunkline_auth::resource::JwtIssuer;
    /// let issuer = JwtIssuer::new("https://id.example").discover();
    /// ```
    #[must_use]
    pub fn discover(mut self) -> Self {
        self.source = Source::Discovered;
        self
    }

    /// Its tokens are for this audience, and no longer for the resource's URL. Said again, either
    /// will do.
    ///
    /// ```
    /// # use trunkline_auth::resource::JwtIssuer;
    /// let issuer = JwtIssuer::new("https://id.example").audience("api://mcp");
    /// ```
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.rules.audiences.push(audience.into());
        self
    }

    /// Its tokens are signed with one of these.
    ///
    /// ```
    /// # use trunkline_auth::{jose::Algorithm, resource::JwtIssuer};
    /// let issuer = JwtIssuer::new("https://id.example").algorithms([Algorithm::RS256]);
    /// ```
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.rules.algorithms = algorithms.into_iter().collect();
        self
    }

    /// How far its clock and ours may differ.
    ///
    /// ```
    /// # use trunkline_auth::resource::JwtIssuer;
    /// let issuer = JwtIssuer::new("https://id.example").leeway(std::time::Duration::ZERO);
    /// ```
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.rules.leeway = leeway;
        self
    }
}

/// An authorization server that is asked about tokens (RFC 7662). What it says is remembered for a
/// minute at most.
///
/// ```
/// use trunkline_auth::resource::Introspection;
///
/// let ask = Introspection::new("https://id.example/introspect", "mcp", "our secret")
///     .issuer("https://id.example")
///     .audience("mcp");
/// assert!(!format!("{ask:?}").contains("our secret"));
/// ```
#[derive(Clone)]
pub struct Introspection {
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) secret: String,
    pub(crate) issuer: Option<String>,
    pub(crate) audiences: Vec<String>,
}

impl Introspection {
    /// Asks at this URL, as this client.
    ///
    /// ```
    /// # use trunkline_auth::resource::Introspection;
    /// let ask = Introspection::new("https://id.example/introspect", "mcp", "our secret");
    /// ```
    pub fn new(
        url: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let (url, client_id, secret) = (url.into(), client_id.into(), secret.into());
        Self { url, client_id, secret, issuer: None, audiences: Vec::new() }
    }

    /// It speaks for this issuer, and for no other.
    ///
    /// ```
    /// # use trunkline_auth::resource::Introspection;
    /// let ask = Introspection::new("https://id.example/introspect", "mcp", "our secret")
    ///     .issuer("https://id.example");
    /// ```
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Tokens are for this audience, and no longer for the resource's URL. Said again, either will
    /// do.
    ///
    /// ```
    /// # use trunkline_auth::resource::Introspection;
    /// let ask = Introspection::new("https://id.example/introspect", "mcp", "our secret")
    ///     .audience("mcp");
    /// ```
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }
}

impl fmt::Debug for Introspection {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Introspection at {} as {}", crate::url::shown(&self.url), self.client_id)
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

const SHORTEST_KEY: usize = 16;
const OFFLINE: &str = "offline_access";

#[cfg(test)]
mod tests;
