//! Serves all clients with one selector: their calls, subscriptions and connections.

use std::sync::Arc;

use trunkline_proto::{Attached, Call, PeerNotification};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, Handler, Listening};
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::method::Method;

use crate::caller::{Caller, principal};
use crate::selector::ListenerInfo;
use crate::state::{GatewayState, View};

/// The handler of all clients with one selector.
pub(crate) struct ScopedHandler {
    pub(crate) shared: Arc<GatewayState>,
    pub(crate) view: Arc<View>,
}

impl Handler for ScopedHandler {
    fn call(&self, call: Call, voice: &ConversationHandle) -> Answer {
        crate::gate::call(&self.shared, &self.view, call, voice)
    }

    fn heard(&self, heard: PeerNotification, voice: &ConversationHandle) {
        if heard.method == Method::RootsListChanged {
            let world = self.shared.world();
            return world.servers.values().for_each(|it| it.has_other_roots(voice.number()));
        }
        self.shared.subscriptions.heard(&*self.shared, &heard, voice);
    }

    fn listen(&self, voice: &ConversationHandle, attached: &Attached) -> Listening {
        Some(Box::new(Joined::new(self, voice, attached)))
    }

    fn param_headers(
        &self,
        tool: &str,
        _: Option<&Json>,
        _: &Attached,
    ) -> Option<Arc<ParamHeaders>> {
        self.view.index(&self.shared).param_headers(tool).cloned()
    }

    fn is_same_caller(&self, one: &Attached, other: &Attached) -> bool {
        let id = |it| principal(it).map(|it| it.id());
        id(one) == id(other)
    }
}

/// A connected client; dropping it removes the client from all registers.
struct Joined {
    shared: Arc<GatewayState>,
    view: Arc<View>,
    conversation: u64,
    listener: Arc<trunkline_transport::listeners::Listener<ListenerInfo>>,
}

impl Joined {
    fn new(face: &ScopedHandler, voice: &ConversationHandle, attached: &Attached) -> Self {
        let caller = Caller::listening(attached, voice);
        let (selector, conversation) = (face.view.selector.clone(), caller.conversation);
        let seat = ListenerInfo { selector, caller: caller.id.clone(), conversation };
        face.shared.subscriptions.joined(caller, &face.view.selector);
        let listener = face.shared.listeners.add(voice.clone(), seat);
        let (shared, view) = (Arc::clone(&face.shared), Arc::clone(&face.view));
        shared.joined(&view.selector);
        Self { shared, view, conversation: voice.number(), listener }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.shared.listeners.remove(&self.listener);
        self.shared.subscriptions.left(&*self.shared, self.conversation);
        self.shared.left(&self.view.selector, self.conversation);
    }
}
