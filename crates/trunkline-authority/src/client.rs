//! Who may ask for tokens: configured clients, registered ones, and those that are a URL.

use std::fmt;
use std::sync::Arc;

use trunkline_auth::digest::sha256;
use trunkline_auth::jose::Jwks;
use trunkline_auth::setters;

use crate::fields::words;
use crate::redirect;

/// A client that is known without registering: see [`crate::Settings::client`].
///
/// Without a secret or keys it is public: a program on somebody's machine, which can keep none.
#[derive(Clone)]
pub struct Client {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) proof: Proof,
    pub(crate) redirects: Vec<String>,
    /// What it may ask for; everything, if it was not said.
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) introspects: bool,
}

/// How a client shows that it is the one.
#[derive(Clone)]
pub(crate) enum Proof {
    /// It cannot.
    None,
    /// By a secret, of which the digest is kept; and how it is sent, if that was agreed on.
    Secret { digest: String, method: Option<Method> },
    /// By signing with one of these keys.
    Keys(Arc<Jwks>),
}

/// How a secret is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Basic,
    Post,
}

/// What can be exchanged for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    Code,
    Refresh,
    ClientCredentials,
    JwtBearer,
    Exchange,
}

impl Grant {
    pub(crate) const ALL: [Self; 5] =
        [Self::Code, Self::Refresh, Self::ClientCredentials, Self::JwtBearer, Self::Exchange];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Code => "authorization_code",
            Self::Refresh => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            Self::Exchange => "urn:ietf:params:oauth:grant-type:token-exchange",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl Client {
    /// A public client that may use every grant.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: None,
            proof: Proof::None,
            redirects: Vec::new(),
            scopes: None,
            grants: Grant::ALL.to_vec(),
            introspects: false,
        }
    }

    setters! {
        /// What people know it by.
        name(name: impl Into<String>) { name = Some(name.into()) }

        /// It shows who it is by a secret, sent in the header or in the body.
        secret(secret: &str) {
            proof = Proof::Secret { digest: sha256(secret.as_bytes()), method: None }
        }

        /// It shows who it is by signing with one of these keys (`private_key_jwt`).
        keys(keys: Jwks) { proof = Proof::Keys(Arc::new(keys)) }

        /// Where its users may be sent back to. On the user's own machine the port is free.
        redirect(uri: impl Into<String>) { redirects.push(uri.into()) }

        /// What it may ask for, words between spaces; everything, unless said.
        scope(scopes: &str) { scopes = Some(words(scopes)) }

        /// It is a resource server: it may ask what tokens are worth.
        introspects() { introspects = true }
    }

    /// Whether it can show who it is.
    pub(crate) fn is_confidential(&self) -> bool {
        !matches!(self.proof, Proof::None)
    }

    /// Whether its users may be sent there.
    pub(crate) fn may_redirect(&self, uri: &str) -> bool {
        self.redirects.iter().any(|registered| redirect::matches(registered, uri))
    }

    /// The name of its way to show who it is.
    pub(crate) fn method(&self) -> &'static str {
        match &self.proof {
            Proof::None => "none",
            Proof::Secret { method: Some(Method::Post), .. } => "client_secret_post",
            Proof::Secret { .. } => "client_secret_basic",
            Proof::Keys(_) => "private_key_jwt",
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("method", &self.method())
            .field("redirects", &self.redirects)
            .field("scopes", &self.scopes)
            .field("introspects", &self.introspects)
            .finish_non_exhaustive()
    }
}
