//! The OAuth client with which users log in (`auth.perUser`).

use super::{Outward, Reach, ServerPlan};

/// The OAuth client with which users log in at an authorization server. Without an id the gateway registers
/// itself, or uses its own client metadata document.
#[derive(Clone, Default, PartialEq)]
pub struct LoginClient {
    /// The client id.
    pub id: Option<String>,
    /// The client secret.
    pub secret: Option<String>,
    /// The only issuer that may get the secret.
    pub issuer: Option<String>,
    /// Scopes to request beside those that the server demands.
    pub scopes: Vec<String>,
}

impl LoginClient {
    /// Everything that identifies the login.
    pub(super) fn texts(&self) -> Vec<&str> {
        let own = [&self.id, &self.secret, &self.issuer];
        let own = own.into_iter().map(|it| it.as_deref().unwrap_or_default());
        own.chain(self.scopes.iter().map(String::as_str)).collect()
    }
}

impl ServerPlan {
    /// The client with which each principal logs in to the server; `None` if all share one login.
    pub(crate) fn per_user(&self) -> Option<&LoginClient> {
        match &self.reach {
            Reach::Http { auth: Outward::PerUser(client), .. } => Some(client),
            _ => None,
        }
    }
}
