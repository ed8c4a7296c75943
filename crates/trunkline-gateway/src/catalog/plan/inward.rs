//! Who is admitted, and what is known of them.

use super::LoginClient;

/// Who is admitted.
#[derive(Clone, Default, PartialEq)]
pub struct Inward {
    /// Bearer tokens: each with its principal, secret and tags.
    pub tokens: Vec<TokenPlan>,
    /// Trusted issuers of JWTs.
    pub issuers: Vec<String>,
    /// The gateway's resource identifier, the audience of tokens (RFC 8707 §2).
    pub resource: Option<String>,
    /// Scopes that every token must have.
    pub scopes: Vec<String>,
    /// Which claims of JWTs are used.
    pub claims: ClaimsPlan,
    /// What members of groups see.
    pub groups: Vec<GroupPlan>,
    /// The gateway's own client at the issuer, to identify users for `perUser`.
    pub client: LoginClient,
}

/// Which claims of a JWT identify and limit its bearer.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClaimsPlan {
    /// The name for rules, as `user:NAME`.
    pub name: Option<String>,
    /// The groups: `group:NAME` for rules.
    pub groups: Option<String>,
    /// The tags that limit what the bearer sees.
    pub tags: Option<String>,
}

impl ClaimsPlan {
    /// The claims to read, each with its role for [`Bearer`](crate::bearer::Bearer).
    pub(crate) fn roles(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("name", &self.name), ("groups", &self.groups), ("tags", &self.tags)];
        all.into_iter().filter_map(|(role, claim)| Some((role, claim.as_deref()?)))
    }
}

/// A group of an issuer.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupPlan {
    /// Its name in the claim.
    pub name: String,
    /// The tags that its members see.
    pub tags: Vec<String>,
}

/// A bearer token.
#[derive(Clone, PartialEq)]
pub struct TokenPlan {
    /// Its principal.
    pub name: String,
    /// The secret.
    pub token: String,
    /// The tags that limit what its bearer sees; empty for everything.
    pub tags: Vec<String>,
}
