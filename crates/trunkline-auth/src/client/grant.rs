//! By what right a token is asked for.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::fetch::Pending;
use crate::jose::SigningKey;

/// By what right a token is asked for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Grant {
    /// A person logs in and lets the client in.
    #[default]
    AuthorizationCode,
    /// The client acts for itself (`io.modelcontextprotocol/oauth-client-credentials`).
    ClientCredentials(ClientAuth),
    /// The company's identity provider decides
    /// (`io.modelcontextprotocol/enterprise-managed-authorization`).
    Enterprise(Enterprise),
    /// A token of the platform the client runs on stands for it: workload identity (RFC 7523).
    Assertion {
        /// The client, as the authorization server knows it.
        client: ClientAuth,
        /// The platform's token.
        assertion: TokenSource,
    },
}

impl Grant {
    /// What keeps logins of one kind apart from those of another in the same vault.
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

    /// The client as the authorization server knows it, where that is part of the grant.
    pub(super) fn client(&self) -> Option<&ClientAuth> {
        match self {
            Self::AuthorizationCode => None,
            Self::ClientCredentials(client) | Self::Assertion { client, .. } => Some(client),
            Self::Enterprise(it) => Some(&it.client),
        }
    }

    /// Whether it shows something that is worth as much to somebody else.
    pub(super) fn shows_secret(&self) -> bool {
        match self {
            Self::AuthorizationCode => false,
            Self::ClientCredentials(client) => matches!(client.proof, Proof::Secret(_)),
            Self::Enterprise(_) | Self::Assertion { .. } => true,
        }
    }

    /// Whether a person has to be there.
    pub(super) fn needs_person(&self) -> bool {
        matches!(self, Self::AuthorizationCode)
    }
}

/// How a client that was registered beforehand shows who it is.
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
    /// A client without a secret: its identifier says who it is.
    pub fn public(client_id: impl Into<String>) -> Self {
        Self { id: client_id.into(), proof: Proof::Nothing }
    }

    /// A client with a secret, sent by HTTP Basic where the authorization server takes that, and in
    /// the body where it does not.
    pub fn secret(client_id: impl Into<String>, client_secret: impl Into<String>) -> Self {
        Self { id: client_id.into(), proof: Proof::Secret(client_secret.into()) }
    }

    /// A client with a key of its own (`private_key_jwt`): nothing secret is ever sent. If
    /// the authorization server knows several of its keys, [name](SigningKey::named) this one.
    pub fn private_key(client_id: impl Into<String>, key: SigningKey) -> Self {
        Self { id: client_id.into(), proof: Proof::Key(Arc::new(key)) }
    }

    /// Its identifier.
    pub fn client_id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for ClientAuth {
    /// Without what proves it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proof = match self.proof {
            Proof::Nothing => "without a secret",
            Proof::Secret(_) => "with a secret",
            Proof::Key(_) => "with a key",
        };
        write!(f, "{} {proof}", self.id)
    }
}

/// The company's identity provider, and the client as both sides know it.
#[derive(Clone, Debug)]
pub struct Enterprise {
    pub(super) idp: String,
    pub(super) token_endpoint: Option<String>,
    pub(super) idp_client: ClientAuth,
    pub(super) id_token: TokenSource,
    pub(super) client: ClientAuth,
}

impl Enterprise {
    /// The identity provider by its issuer, the client as it knows it, the ID token of whoever
    /// signed in there, and the client as the MCP server's authorization server knows it.
    pub fn new(
        idp_issuer: impl Into<String>,
        idp_client: ClientAuth,
        id_token: TokenSource,
        client: ClientAuth,
    ) -> Self {
        let idp = idp_issuer.into();
        Self { idp, token_endpoint: None, idp_client, id_token, client }
    }

    /// Says where the identity provider exchanges tokens, so that it need not be found out.
    #[must_use]
    pub fn idp_token_endpoint(mut self, url: impl Into<String>) -> Self {
        self.token_endpoint = Some(url.into());
        self
    }
}

/// Where a token comes from that somebody else gives out.
#[derive(Clone)]
pub struct TokenSource(Arc<Ask>);

type Ask = dyn Fn(String) -> Pending<'static, Result<String, String>> + Send + Sync;

impl TokenSource {
    /// Asked each time a token is needed, with the issuer it will be shown to. An error is a
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
