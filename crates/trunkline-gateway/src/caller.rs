//! The identity of a caller: principal, conversation and capabilities.

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
    /// The name for logs and audit; `None` for anonymous callers.
    pub(crate) name: Option<Arc<str>>,
    /// The names and tags that rules use.
    pub(crate) bearer: Bearer,
    /// The principal's id, to which sealed strings are bound.
    pub(crate) id: Arc<str>,
    /// The issuer that vouches for the principal, if any.
    pub(crate) issuer: Option<Arc<str>>,
    /// The id of the caller's conversation; in 2026-07-28 it lasts one request.
    pub(crate) conversation: u64,
    /// Whether the conversation is a session, which lasts longer than one request.
    pub(crate) has_session: bool,
    pub(crate) peer: Arc<Peer>,
}

impl Caller {
    pub(crate) fn of(call: &Call, handle: &ConversationHandle) -> Self {
        let has_session = call.revision.era() == Era::Stateful;
        let peer = Arc::clone(&call.peer);
        Self { has_session, ..Self::new(principal(&call.attached), handle.number(), peer) }
    }

    /// The client that listens in a conversation.
    pub(crate) fn listening(attached: &Attached, handle: &ConversationHandle) -> Self {
        Self::new(principal(attached), handle.number(), Arc::default())
    }

    /// The peer of a conversation of this number, for what it says beside its calls.
    pub(crate) fn linked(
        attached: &Attached,
        conversation: u64,
        has_session: bool,
        peer: Arc<Peer>,
    ) -> Self {
        Self { has_session, ..Self::new(principal(attached), conversation, peer) }
    }

    /// The principal of an admitted request, before there is a conversation.
    pub(crate) fn let_in(extensions: &Extensions) -> Self {
        Self::new(extensions.get(), 0, Arc::default())
    }

    /// The client that opens a conversation.
    pub(crate) fn opening(attached: &Attached) -> Self {
        Self::new(principal(attached), 0, Arc::default())
    }

    fn new(principal: Option<&Principal>, conversation: u64, peer: Arc<Peer>) -> Self {
        Self {
            name: principal.map(|it| name(it).into()),
            bearer: principal.map(Bearer::of).unwrap_or_default(),
            id: id(principal),
            issuer: issuer(principal),
            conversation,
            has_session: false,
            peer,
        }
    }

    /// A caller with a name.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        let (bearer, id) = (Bearer::named(name), Arc::from(name));
        let (name, peer) = (Some(name.into()), Arc::default());
        Self { name, bearer, id, issuer: None, conversation: 1, has_session: true, peer }
    }

    /// The capabilities that the client declared.
    pub(crate) fn capabilities(&self) -> &ClientCapabilities {
        &self.peer.client
    }

    /// The client's name (`clientInfo`).
    pub(crate) fn client(&self) -> Option<String> {
        self.peer.info.as_ref().map(|it| format!("{}/{}", it.name, it.version))
    }

    /// The session of an anonymous caller, which alone identifies it.
    pub(crate) fn session(&self) -> Option<u64> {
        (self.name.is_none() && self.has_session).then_some(self.conversation)
    }

    /// Whether messages about work of one caller may reach the other later. All anonymous callers are one
    /// principal, so they count as one.
    pub(crate) fn shares_past(&self, other: &Self) -> bool {
        match (&self.name, &other.name) {
            (Some(_), Some(_)) => self.id == other.id,
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether both are the same caller, as far as that can be known.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.name, &other.name) {
            (Some(_), Some(_)) => self.id == other.id,
            (None, None) => self.conversation == other.conversation,
            _ => false,
        }
    }
}

/// The id to which a principal's sealed strings are bound; anonymous callers share one.
fn id(principal: Option<&Principal>) -> Arc<str> {
    principal.map_or_else(Arc::default, |it| Arc::from(it.id()))
}

fn issuer(principal: Option<&Principal>) -> Option<Arc<str>> {
    principal?.issuer.as_deref().map(Arc::from)
}

/// The principal admitted with a request.
pub(crate) fn principal(attached: &Attached) -> Option<&Principal> {
    match attached.get::<Extensions>() {
        Some(extensions) => extensions.get(),
        None => attached.get(),
    }
}
