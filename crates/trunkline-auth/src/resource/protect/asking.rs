//! The configuration of token introspection.

use std::fmt;

/// An authorization server that introspects tokens (RFC 7662). Its answers are cached for at most a
/// minute.
#[derive(Clone)]
pub struct Introspection {
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) secret: String,
    pub(crate) issuer: Option<String>,
    pub(crate) audiences: Vec<String>,
}

impl Introspection {
    /// Sends requests to this URL, as this client.
    pub fn new(
        url: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let (url, client_id, secret) = (url.into(), client_id.into(), secret.into());
        Self { url, client_id, secret, issuer: None, audiences: Vec::new() }
    }

    setters! {
        /// Restricts it to this issuer. By default it vouches for whichever issuer it names, but never
        /// for one of [`Protect::jwt`](super::Protect::jwt).
        issuer(issuer: impl Into<String>) { issuer = Some(issuer.into()) }

        /// Requires this audience instead of the resource's URL. May be repeated to allow several.
        audience(audience: impl Into<String>) { audiences.push(audience.into()) }
    }
}

impl fmt::Debug for Introspection {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Introspection at {} as {}", crate::url::shown(&self.url), self.client_id)
    }
}
