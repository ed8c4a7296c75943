//! By which client people log in, where each has an account of its own.

use std::fmt;

use super::{Outward, Reach, ServerPlan};

/// The client by which people log in at an authorization server. Without an identifier the gateway registers
/// itself, or is known by its own metadata document.
#[derive(Clone, Default, PartialEq)]
pub struct LoginClient {
    /// Its identifier there.
    pub id: Option<String>,
    /// Its secret.
    pub secret: Option<String>,
    /// The only issuer that the secret is shown to.
    pub issuer: Option<String>,
    /// Scopes to ask for beside those that the server asks for.
    pub scopes: Vec<String>,
}

impl LoginClient {
    /// All that decides which login it is.
    pub(super) fn texts(&self) -> Vec<&str> {
        let own = [&self.id, &self.secret, &self.issuer];
        let own = own.into_iter().map(|it| it.as_deref().unwrap_or_default());
        own.chain(self.scopes.iter().map(String::as_str)).collect()
    }
}

impl fmt::Debug for LoginClient {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginClient")
            .field("id", &self.id)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl ServerPlan {
    /// By which client each principal logs in to it with an account of its own; `None` if all share one.
    pub(crate) fn per_user(&self) -> Option<&LoginClient> {
        match &self.reach {
            Reach::Http { auth: Outward::PerUser(client), .. } => Some(client),
            _ => None,
        }
    }
}
