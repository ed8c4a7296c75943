//! The OAuth grants.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::fetch::Pending;
use crate::jose::SigningKey;

/// The grant by which tokens are requested.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Grant {
    /// A person logs in and consents.
    #[default]
    AuthorizationCode,
    /// The client acts for itself (`io.modelcontextprotocol/oauth-client-credentials`).
    ClientCredentials(ClientAuth),
    /// The company's identity provider decides
    /// (`io.modelcontextprotocol/enterprise-managed-authorization`).
    Enterprise(Enterprise),
    /// The identity token of the client's platform authenticates it: workload identity (RFC 7523).
    Assertion {
        /// The client's registration at the authorization server.
        client: ClientAuth,
        /// The platform's token.
        assertion: TokenSource,
    },
}

impl Grant {
    /// Keeps logins of different kinds apart in one vault.
    pub(super) fn label(&self, client_id: Option<&str>) -> String {
        match self {
            Self::AuthorizationCode => match client_id {
                Some(id) => format!("person:{id}"),
                None => "person".to_owned(),
            },
            Self::ClientCredentials(client) => format!("machine:{}", client.client_id()),
            Self::Enterprise(it) => format!("enterprise:{}", it.client.client_id()),
            Self::Assertion { client, .. } => format!("workload:{}", client.client_id()),
        }
    }

    /// The client's registration, where that is part of the grant.
    pub(super) fn client(&self) -> Option<&ClientAuth> {
        match self {
            Self::AuthorizationCode => None,
            Self::ClientCredentials(client) | Self::Assertion { client, .. } => Some(client),
            Self::Enterprise(it) => Some(&it.client),
        }
    }

    /// Whether it sends something that others could use.
    pub(super) fn shows_secret(&self) -> bool {
        match self {
            Self::AuthorizationCode => false,
            Self::ClientCredentials(client) => matches!(client.proof, Proof::Secret(_)),
            Self::Enterprise(_) | Self::Assertion { .. } => true,
        }
    }

    /// Whether a person is needed.
    pub(super) fn needs_person(&self) -> bool {
        matches!(self, Self::AuthorizationCode)
    }
}

/// How a pre-registered client authenticates.
#[derive(Clone)]
pub struct ClientAuth {
    id: String,
    pub(super) proof: Proof,
}

#[derive(Clone)]
pub(super) enum Proof {
    Nothing,
    Secret(String),
    Key(Arc<SigningKey>),
}

impl ClientAuth {
    /// A public client, with an identifier only.
    pub fn public(client_id: impl Into<String>) -> Self {
        Self { id: client_id.into(), proof: Proof::Nothing }
    }

    /// A client with a secret, sent by HTTP Basic if the authorization server supports that, and in
    /// the body otherwise.
    pub fn secret(client_id: impl Into<String>, client_secret: impl Into<String>) -> Self {
        Self { id: client_id.into(), proof: Proof::Secret(client_secret.into()) }
    }

    /// A client with its own key (`private_key_jwt`): no secret is ever sent. If the authorization
    /// server knows several of its keys, [name](SigningKey::named) this one.
    pub fn private_key(client_id: impl Into<String>, key: SigningKey) -> Self {
        Self { id: client_id.into(), proof: Proof::Key(Arc::new(key)) }
    }

    /// Its identifier.
    pub fn client_id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for ClientAuth {
    /// Omits the secret or key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proof = match self.proof {
            Proof::Nothing => "without a secret",
            Proof::Secret(_) => "with a secret",
            Proof::Key(_) => "with a key",
        };
        write!(f, "{} {proof}", self.id)
    }
}

/// The company's identity provider, and the client's registrations at both sides.
#[derive(Clone, Debug)]
pub struct Enterprise {
    pub(super) idp: String,
    pub(super) token_endpoint: Option<String>,
    pub(super) idp_client: ClientAuth,
    pub(super) id_token: TokenSource,
    pub(super) client: ClientAuth,
}

impl Enterprise {
    /// The identity provider by its issuer, the client's registration there, the ID token of the
    /// signed-in user, and the client's registration at the MCP server's authorization server.
    pub fn new(
        idp_issuer: impl Into<String>,
        idp_client: ClientAuth,
        id_token: TokenSource,
        client: ClientAuth,
    ) -> Self {
        let idp = idp_issuer.into();
        Self { idp, token_endpoint: None, idp_client, id_token, client }
    }

    /// Sets the token endpoint of the identity provider, which skips discovery.
    #[must_use]
    pub fn idp_token_endpoint(mut self, url: impl Into<String>) -> Self {
        self.token_endpoint = Some(url.into());
        self
    }
}

/// The source of an external token.
#[derive(Clone)]
pub struct TokenSource(Arc<Ask>);

type Ask = dyn Fn(String) -> Pending<'static, Result<String, String>> + Send + Sync;

impl TokenSource {
    /// Called each time a token is needed, with the issuer that will get it. An error is a
    /// sentence.
    pub fn new<F, R>(source: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self(Arc::new(move |issuer| Box::pin(source(issuer))))
    }

    /// Always the same token.
    pub fn fixed(token: impl Into<String>) -> Self {
        let token = token.into();
        Self::new(move |_| std::future::ready(Ok(token.clone())))
    }

    pub(super) async fn token(&self, issuer: &str) -> Result<String, String> {
        (self.0)(issuer.to_owned()).await
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}
