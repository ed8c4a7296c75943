//! Turns a principal into the names that rules know it by, and the tags of what it sees.

use std::sync::Arc;

use trunkline_auth::Principal;

use crate::catalog::plan::Inward;

/// The identity of an admitted principal, as rules see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bearer(Option<Arc<Known>>);

/// What is known of a principal; nothing of anonymous callers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    /// The names that rules match: its own, and those from claims.
    names: Vec<String>,
    groups: Vec<String>,
    /// The tags from a claim, if one is read.
    tags: Option<Vec<String>>,
}

impl Bearer {
    pub(crate) fn of(principal: &Principal) -> Self {
        let values = |role: &str| principal.claims.get(role).cloned();
        let groups = values("groups").unwrap_or_default();
        let users = values("name").unwrap_or_default();
        let users = users.iter().map(|it| format!("user:{it}"));
        let also = users.chain(groups.iter().map(|it| format!("group:{it}")));
        let tags = values("tags");
        Self(Some(Arc::new(Known {
            names: std::iter::once(name(principal)).chain(also).collect(),
            groups,
            tags: tags.map(|tags| tags.iter().map(|it| it.to_lowercase()).collect()),
        })))
    }

    /// A bearer with one name.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self(Some(Arc::new(Known { names: vec![name.to_owned()], ..Known::default() })))
    }

    pub(crate) fn names(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |it| &it.names)
    }

    /// The tags that limit what it sees, beside untagged servers; `None` if it sees everything.
    pub(crate) fn sees(&self, auth: &Inward) -> Option<Vec<String>> {
        let known = self.0.as_ref()?;
        let own = known.names.first()?;
        if let Some(token) = auth.tokens.iter().find(|it| it.name == *own) {
            return (!token.tags.is_empty()).then(|| token.tags.clone());
        }
        if known.tags.is_none() && auth.groups.is_empty() {
            return None;
        }
        let mut tags = known.tags.clone().unwrap_or_default();
        let groups = auth.groups.iter().filter(|it| known.groups.contains(&it.name));
        tags.extend(groups.flat_map(|it| it.tags.iter().cloned()));
        Some(tags)
    }
}

/// The name that rules match. An issuer's `alice` is neither the `alice` of one of our own tokens, nor that of
/// another issuer, nor a client with the identifier `alice` that acts for itself (RFC 9068 §2.2: such a client
/// is the subject of its token).
pub(crate) fn name(principal: &Principal) -> String {
    let is_client = principal.client_id.as_ref() == Some(&principal.subject);
    match &principal.issuer {
        Some(issuer) if is_client => format!("client:{issuer}#{}", principal.subject),
        Some(issuer) => format!("{issuer}#{}", principal.subject),
        None => principal.subject.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::catalog::plan::{GroupPlan, TokenPlan};

    #[test]
    fn the_same_subject_of_two_issuers_is_two_callers() {
        let ours = Principal::new("alice");
        let theirs = ours.clone().issued_by("https://id.example");
        assert_eq!(name(&ours), "alice");
        assert_eq!(name(&theirs), "https://id.example#alice");
    }

    #[test]
    fn a_client_with_the_name_of_a_person_is_another_caller() {
        let alice = Principal::new("alice").issued_by("https://id.example");
        let hers = alice.clone().acting_by("her-editor");
        let itself = alice.clone().acting_by("alice");
        assert_eq!(name(&alice), name(&hers));
        assert_eq!(name(&itself), "client:https://id.example#alice");
        assert_eq!(name(&Principal::new("alice").acting_by("alice")), "alice", "a token of ours");
    }

    /// A bearer whose token has these claims, by role.
    fn says(claims: &[(&str, &[&str])]) -> Bearer {
        let mut principal = Principal::new("7").issued_by("https://id.example");
        let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
        let claims = claims.iter().map(|(role, all)| ((*role).to_owned(), texts(all)));
        principal.claims = Arc::new(claims.collect::<BTreeMap<_, _>>());
        Bearer::of(&principal)
    }

    #[test]
    fn claims_give_names_and_tags() {
        let ada = says(&[("name", &["ada@acme"]), ("groups", &["eng"]), ("tags", &["Work"])]);
        assert_eq!(ada.names(), ["https://id.example#7", "user:ada@acme", "group:eng"]);
        let mut auth = Inward::default();
        assert_eq!(ada.sees(&auth), Some(vec!["work".to_owned()]));
        auth.groups = vec![GroupPlan { name: "eng".into(), tags: vec!["code".into()] }];
        assert_eq!(ada.sees(&auth), Some(vec!["work".to_owned(), "code".to_owned()]));
        assert_eq!(says(&[("groups", &["sales"])]).sees(&auth), Some(Vec::new()), "in no group");
        assert_eq!(says(&[]).sees(&Inward::default()), None, "nothing is asked of claims");
        assert_eq!(
            says(&[("tags", &[])]).sees(&Inward::default()),
            Some(Vec::new()),
            "it has none"
        );
    }

    #[test]
    fn a_claim_does_not_impersonate_the_owner_of_a_token() {
        let token = TokenPlan { name: "ada".into(), token: "x".into(), tags: Vec::new() };
        let auth = Inward { tokens: vec![token], ..Inward::default() };
        assert_eq!(Bearer::of(&Principal::new("ada")).sees(&auth), None);
        let other = says(&[("name", &["ada"]), ("tags", &[])]);
        assert_eq!(other.sees(&auth), Some(Vec::new()));
        assert!(!other.names().contains(&"ada".to_owned()));
    }
}
