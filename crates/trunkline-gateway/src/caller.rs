//! Who calls: what is known of them, and by what they are told apart.

use std::sync::Arc;

use http::Extensions;
use trunkline_auth::Principal;
use trunkline_proto::{Attached, Call, Peer};
use trunkline_transport::voice::Voice;
use trunkline_wire::model::ClientCapabilities;
use trunkline_wire::revision::Era;

/// Who makes a call.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The name that rules are about; `None` for whoever need not say who they are.
    pub(crate) name: Option<String>,
    /// What sealed strings are bound to.
    pub(crate) id: Arc<str>,
    /// What the caller's conversation is called; over 2026-07-28 it is one request long.
    pub(crate) conversation: u64,
    /// Whether the conversation is a session, which is longer than one request.
    pub(crate) has_session: bool,
    pub(crate) peer: Arc<Peer>,
}

impl Caller {
    pub(crate) fn of(call: &Call, voice: &Voice) -> Self {
        let principal = principal(&call.attached);
        Self {
            name: principal.map(name),
            id: id(principal),
            conversation: voice.number(),
            has_session: call.revision.era() == Era::Stateful,
            peer: Arc::clone(&call.peer),
        }
    }

    /// Who listens in a conversation.
    pub(crate) fn listening(attached: &Attached, voice: &Voice) -> Self {
        let principal = principal(attached);
        Self {
            name: principal.map(name),
            id: id(principal),
            conversation: voice.number(),
            has_session: false,
            peer: Arc::default(),
        }
    }

    /// Who was let in, before there is a conversation.
    pub(crate) fn let_in(extensions: &Extensions) -> Self {
        Self::asking(extensions.get())
    }

    /// Who opens a conversation.
    pub(crate) fn opening(attached: &Attached) -> Self {
        Self::asking(principal(attached))
    }

    fn asking(principal: Option<&Principal>) -> Self {
        Self {
            name: principal.map(name),
            id: id(principal),
            conversation: 0,
            has_session: false,
            peer: Arc::default(),
        }
    }

    /// Somebody with a name.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        let (name, id) = (Some(name.to_owned()), Arc::from(name));
        Self { name, id, conversation: 1, has_session: true, peer: Arc::default() }
    }

    /// What the client said that it can be asked.
    pub(crate) fn able(&self) -> &ClientCapabilities {
        &self.peer.client
    }

    /// How the client names itself.
    pub(crate) fn client(&self) -> Option<String> {
        self.peer.info.as_ref().map(|it| format!("{}/{}", it.name, it.version))
    }

    /// The session of somebody without a name, who is known by it alone.
    pub(crate) fn session(&self) -> Option<u64> {
        (self.name.is_none() && self.has_session).then_some(self.conversation)
    }

    /// Whether what was begun for one may be told to the other later. Those who have no name are one
    /// principal, so that they count as one.
    pub(crate) fn shares_past(&self, other: &Self) -> bool {
        match (&self.name, &other.name) {
            (Some(_), Some(_)) => self.id == other.id,
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether both are the same, as far as that can be known.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.name, &other.name) {
            (Some(_), Some(_)) => self.id == other.id,
            (None, None) => self.conversation == other.conversation,
            _ => false,
        }
    }
}

/// What a principal's sealed strings are bound to; those without a name are one.
fn id(principal: Option<&Principal>) -> Arc<str> {
    principal.map_or_else(Arc::default, |it| Arc::from(it.id()))
}

/// The name that rules are about. An issuer's `alice` is not the `alice` of a token of ours, nor
/// that of another issuer, nor a client that acts for nobody and was given the identifier `alice`
/// (RFC 9068 §2.2: such a client is the subject of its token).
fn name(principal: &Principal) -> String {
    let is_client = principal.client_id.as_ref() == Some(&principal.subject);
    match &principal.issuer {
        Some(issuer) if is_client => format!("client:{issuer}#{}", principal.subject),
        Some(issuer) => format!("{issuer}#{}", principal.subject),
        None => principal.subject.clone(),
    }
}

/// Who was let in with a request.
pub(crate) fn principal(attached: &Attached) -> Option<&Principal> {
    match attached.get::<Extensions>() {
        Some(extensions) => extensions.get(),
        None => attached.get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
