//! Who was let in: what a checked credential says about its bearer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// Whoever a request was let in for. Two principals are the same if both issuer and subject are, and
/// neither or both are clients that act for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// Who vouches for it, if anybody does.
    pub issuer: Option<String>,
    /// Its name with that issuer.
    pub subject: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// The client that acts for it, as its issuer names that.
    pub client_id: Option<String>,
    /// From when on it is no longer let in.
    pub expires: Option<SystemTime>,
    /// The thumbprint of the key that the client proved to have (RFC 7638).
    pub key: Option<String>,
    /// What else its token says, by the names that [`JwtIssuer::claim`](crate::resource::JwtIssuer::claim)
    /// gave to it. A name whose claim the token lacks has no values.
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
        /// Says who vouches for it.
        issued_by(issuer: impl Into<String>) { issuer = Some(issuer.into()) }

        /// Lets it do one thing more.
        scope(scope: impl Into<String>) { scopes.push(scope.into()) }

        /// Says which client acts for it.
        acting_by(client_id: impl Into<String>) { client_id = Some(client_id.into()) }

        /// Says until when it is let in.
        until(expires: SystemTime) { expires = Some(expires) }
    }

    /// Whether it may do this.
    pub fn may(&self, scope: &str) -> bool {
        self.scopes.iter().any(|it| it == scope)
    }

    /// One text for issuer and subject, to bind things to. No two principals share it: not even a
    /// person and a client of one name, which then is its own `client_id`.
    pub fn id(&self) -> String {
        // The length keeps the two apart, whatever characters they have.
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
