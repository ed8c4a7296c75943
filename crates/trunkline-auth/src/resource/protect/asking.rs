//! An authorization server that is asked about tokens: where, as whom, and for whom it speaks.

use std::fmt;

/// An authorization server that is asked about tokens (RFC 7662). What it says is remembered for a
/// minute at most.
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
    pub fn new(
        url: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let (url, client_id, secret) = (url.into(), client_id.into(), secret.into());
        Self { url, client_id, secret, issuer: None, audiences: Vec::new() }
    }

    setters! {
        /// It speaks for this issuer, and for no other. Unless this is said, it speaks for whichever
        /// issuer it names, but never for one of [`Protect::jwt`](super::Protect::jwt).
        issuer(issuer: impl Into<String>) { issuer = Some(issuer.into()) }

        /// Tokens are for this audience, and no longer for the resource's URL. Said again, either will
        /// do.
        audience(audience: impl Into<String>) { audiences.push(audience.into()) }
    }
}

impl fmt::Debug for Introspection {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Introspection at {} as {}", crate::url::shown(&self.url), self.client_id)
    }
}
