//! What an authorization server is told before it starts.

use std::sync::Arc;
use std::time::Duration;

use trunkline_auth::jose::Jwks;
use trunkline_auth::{setters, settings};

use crate::client::Client;

settings! {
    /// Who may log in, what may be asked for, and how long it is good.
    ///
    /// Unless said otherwise: the users are `alice` and `bob`, every scope is unknown, every resource
    /// is known, clients may register themselves, and a person is asked before anything is given out.
    #[derive(Clone, Debug)]
    pub struct Settings {
        users: Vec<String> = vec!["alice".to_owned(), "bob".to_owned()],
        approve_as: Option<String> = None,
        scopes: Vec<String> = Vec::new(),
        resources: Vec<String> = Vec::new(),
        clients: Vec<Client> = Vec::new(),
        registration: bool = true,
        documents: bool = false,
        opaque: bool = false,
        require_dpop: bool = false,
        dpop_nonces: bool = false,
        access: Duration = Duration::from_secs(3600),
        refresh: Duration = Duration::from_secs(30 * 24 * 3600),
        providers: Vec<Trusted> = Vec::new(),
        workloads: Vec<Trusted> = Vec::new(),
        exchanges: Vec<Exchange> = Vec::new(),
    }
}

/// Somebody else whose signatures are believed.
#[derive(Clone)]
pub(crate) struct Trusted {
    pub(crate) issuer: String,
    pub(crate) keys: Arc<Jwks>,
    /// The only subject believed; every one if there is none.
    pub(crate) subject: Option<String>,
}

impl std::fmt::Debug for Trusted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trusted").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// For which other authorization server, and under which name there, a client may have an
/// assertion.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) audience: String,
    pub(crate) client_here: String,
    pub(crate) client_there: String,
}

impl Settings {
    /// The settings that [`Settings`] describes.
    pub fn new() -> Self {
        Self::unset()
    }

    /// Who may log in, by name alone: there are no passwords.
    #[must_use]
    pub fn users<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.users = names.into_iter().map(Into::into).collect();
        self
    }

    /// Asks nobody: every authorization is approved at once, as this user.
    #[must_use]
    pub fn approve_as(mut self, user: impl Into<String>) -> Self {
        self.approve_as = Some(user.into());
        self
    }

    /// What may be asked for. `openid` among them adds ID tokens; with `offline_access` among them,
    /// refresh tokens are for those who ask for it.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    setters! {
        /// A resource that tokens can be for; others are then unknown. A request that names none means
        /// the first.
        resource(resource: impl Into<String>) { resources.push(resource.into()) }

        /// A client that need not register.
        client(client: Client) { clients.push(client) }

        /// Clients cannot register themselves.
        without_registration() { registration = false }

        /// A client may be a URL where its metadata is. Whoever runs the server then fetches what
        /// [`crate::Authority::wants`] names.
        client_documents() { documents = true }

        /// Access tokens say nothing by themselves; resource servers ask `/introspect`.
        opaque_tokens() { opaque = true }

        /// Every token is bound to a key of the client (RFC 9449). Unless said, those are whose
        /// request has a proof.
        require_dpop() { require_dpop = true }

        /// Proofs have to hold a value that this server gave out (RFC 9449 §8).
        dpop_nonces() { dpop_nonces = true }

        /// How long access tokens are good: an hour, unless said.
        access_lifetime(lifetime: Duration) { access = lifetime }

        /// How long a login lasts that nobody refreshes: thirty days, unless said.
        refresh_lifetime(lifetime: Duration) { refresh = lifetime }
    }

    /// An identity provider whose identity assertions (ID-JAG) are exchanged for access tokens.
    #[must_use]
    pub fn identity_provider(mut self, issuer: impl Into<String>, keys: Jwks) -> Self {
        let trusted = Trusted { issuer: issuer.into(), keys: Arc::new(keys), subject: None };
        self.providers.push(trusted);
        self
    }

    /// A platform whose signed statement that a workload is `subject` is exchanged for access
    /// tokens (RFC 7523).
    #[must_use]
    pub fn workload(
        mut self,
        issuer: impl Into<String>,
        keys: Jwks,
        subject: impl Into<String>,
    ) -> Self {
        let subject = Some(subject.into());
        self.workloads.push(Trusted { issuer: issuer.into(), keys: Arc::new(keys), subject });
        self
    }

    /// As an identity provider: the client known here as `client_here` may have assertions about
    /// its users for the authorization server `audience`, where it is `client_there`.
    #[must_use]
    pub fn exchange(
        mut self,
        audience: impl Into<String>,
        client_here: impl Into<String>,
        client_there: impl Into<String>,
    ) -> Self {
        self.exchanges.push(Exchange {
            audience: audience.into(),
            client_here: client_here.into(),
            client_there: client_there.into(),
        });
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
