//! Who calls: what is known of them, and by what they are told apart.

use std::sync::Arc;

use http::Extensions;
use trunkline_auth::Principal;
use trunkline_proto::{Attached, Call, Peer};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::model::ClientCapabilities;
use trunkline_wire::revision::Era;

use crate::bearer::{Bearer, name};

/// Who makes a call.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The name that is noted; `None` for whoever need not say who they are.
    pub(crate) name: Option<String>,
    /// What rules know them by, and what they see.
    pub(crate) bearer: Bearer,
    /// What sealed strings are bound to.
    pub(crate) id: Arc<str>,
    /// The issuer that vouches for them, if one does.
    pub(crate) issuer: Option<Arc<str>>,
    /// What the caller's conversation is called; over 2026-07-28 it is one request long.
    pub(crate) conversation: u64,
    /// Whether the conversation is a session, which is longer than one request.
    pub(crate) has_session: bool,
    pub(crate) peer: Arc<Peer>,
}

impl Caller {
    pub(crate) fn of(call: &Call, voice: &ConversationHandle) -> Self {
        let principal = principal(&call.attached);
        Self {
            name: principal.map(name),
            bearer: principal.map(Bearer::of).unwrap_or_default(),
            id: id(principal),
            issuer: issuer(principal),
            conversation: voice.number(),
            has_session: call.revision.era() == Era::Stateful,
            peer: Arc::clone(&call.peer),
        }
    }

    /// Who listens in a conversation.
    pub(crate) fn listening(attached: &Attached, voice: &ConversationHandle) -> Self {
        let principal = principal(attached);
        Self {
            name: principal.map(name),
            bearer: principal.map(Bearer::of).unwrap_or_default(),
            id: id(principal),
            issuer: issuer(principal),
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
            bearer: principal.map(Bearer::of).unwrap_or_default(),
            id: id(principal),
            issuer: issuer(principal),
            conversation: 0,
            has_session: false,
            peer: Arc::default(),
        }
    }

    /// Somebody with a name.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        let (bearer, id) = (Bearer::named(name), Arc::from(name));
        let (name, peer) = (Some(name.to_owned()), Arc::default());
        Self { name, bearer, id, issuer: None, conversation: 1, has_session: true, peer }
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

fn issuer(principal: Option<&Principal>) -> Option<Arc<str>> {
    principal?.issuer.as_deref().map(Arc::from)
}

/// Who was let in with a request.
pub(crate) fn principal(attached: &Attached) -> Option<&Principal> {
    match attached.get::<Extensions>() {
        Some(extensions) => extensions.get(),
        None => attached.get(),
    }
}
