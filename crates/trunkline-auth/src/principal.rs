//! The authenticated caller: what a verified credential says about its bearer.

mod bytes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// The principal of a request. Two principals are the same if both issuer and subject are, and
/// neither or both are clients that act for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// The issuer that authenticated it, if any.
    pub issuer: Option<String>,
    /// Its identifier at that issuer.
    pub subject: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// The client that acts for it, as the issuer names it.
    pub client_id: Option<String>,
    /// When its access expires.
    pub expires: Option<SystemTime>,
    /// The thumbprint of the key that the client proved to hold (RFC 7638).
    pub key: Option<String>,
    /// Further claims of its token, under the names that
    /// [`JwtIssuer::claim`](crate::resource::JwtIssuer::claim) gave them. A claim that the token
    /// lacks has no values.
    pub claims: Arc<BTreeMap<String, Vec<String>>>,
}

impl Principal {
    /// A principal by name, without an issuer and without scopes.
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            issuer: None,
            subject: subject.into(),
            scopes: Vec::new(),
            client_id: None,
            expires: None,
            key: None,
            claims: Arc::default(),
        }
    }

    setters! {
        /// Sets its issuer.
        issued_by(issuer: impl Into<String>) { issuer = Some(issuer.into()) }

        /// Adds a scope.
        scope(scope: impl Into<String>) { scopes.push(scope.into()) }

        /// Sets the client that acts for it.
        acting_by(client_id: impl Into<String>) { client_id = Some(client_id.into()) }

        /// Sets when its access expires.
        until(expires: SystemTime) { expires = Some(expires) }
    }

    /// Whether it has this scope.
    pub fn may(&self, scope: &str) -> bool {
        self.scopes.iter().any(|it| it == scope)
    }

    /// One text for issuer and subject, to bind state to. No two principals share it: not even a
    /// person and a client of the same name, which then is its own `client_id`.
    pub fn id(&self) -> String {
        // The length separates the two, whatever characters they contain.
        let issuer = self.issuer.as_deref().unwrap_or_default();
        let is_client = self.client_id.as_ref() == Some(&self.subject);
        let kind = match (&self.issuer, is_client) {
            (Some(_), false) => 'i',
            (Some(_), true) => 'c',
            (None, false) => 'n',
            (None, true) => 'o',
        };
        format!("{kind}{}:{issuer}{}", issuer.len(), self.subject)
    }
}

#[cfg(test)]
mod tests {
    use super::Principal;

    #[test]
    fn ids_keep_issuer_and_subject_apart() {
        let ids = [
            Principal::new("ab"),
            Principal::new("b").issued_by("a"),
            Principal::new("").issued_by("ab"),
            Principal::new("ab").issued_by(""),
            Principal::new("ab").acting_by("ab"),
            Principal::new("ab").issued_by("").acting_by("ab"),
        ]
        .map(|it| it.id());
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    }

    #[test]
    fn a_client_by_itself_is_not_the_person_of_its_name() {
        let alice = |client: &str| Principal::new("alice").issued_by("a").acting_by(client).id();
        assert_eq!(alice("her-editor"), alice("her-phone"));
        assert_eq!(alice("her-editor"), Principal::new("alice").issued_by("a").id());
        assert_ne!(alice("her-editor"), alice("alice"));
        assert_eq!((&*alice("her-editor"), &*alice("alice")), ("i1:aalice", "c1:aalice"));
    }
}
