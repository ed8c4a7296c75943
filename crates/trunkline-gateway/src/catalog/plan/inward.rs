//! Who is let in, and what is known of them.

use super::LoginClient;

/// Who is let in.
#[derive(Clone, Default, PartialEq)]
pub struct Inward {
    /// Bearer tokens: the name of the principal → its token and tags.
    pub tokens: Vec<TokenPlan>,
    /// Issuers of JWTs that are believed.
    pub issuers: Vec<String>,
    /// Our name as a resource; the audience of tokens.
    pub resource: Option<String>,
    /// Scopes that every token must have.
    pub scopes: Vec<String>,
    /// What claims of JWTs say of their bearers.
    pub claims: ClaimsPlan,
    /// What members of groups see.
    pub groups: Vec<GroupPlan>,
    /// The client by which the gateway asks people at the issuer who they are, for `perUser`.
    pub client: LoginClient,
}

/// Which claims of a JWT say what of its bearer.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClaimsPlan {
    /// What rules know them by, as `user:NAME`.
    pub name: Option<String>,
    /// The groups that they are in: `group:NAME` to rules.
    pub groups: Option<String>,
    /// What they see, as the tags of a token.
    pub tags: Option<String>,
}

impl ClaimsPlan {
    /// What is read of a token, each by the name that [`Bearer`](crate::bearer::Bearer) has for it.
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
    /// What its members see.
    pub tags: Vec<String>,
}

/// A bearer token.
#[derive(Clone, PartialEq)]
pub struct TokenPlan {
    /// Whose it is.
    pub name: String,
    /// The secret.
    pub token: String,
    /// What its bearer sees; empty for everything.
    pub tags: Vec<String>,
}
