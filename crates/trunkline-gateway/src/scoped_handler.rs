//! Serves all clients with one selector: their calls, subscriptions and connections.

use std::sync::Arc;

use trunkline_proto::{Attached, Call, PeerNotification};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, Handler, Listening, Repeated};
use trunkline_transport::witness::Witness;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Params;
use trunkline_wire::method::Method;

use crate::caller::{Caller, principal};
use crate::selector::ListenerInfo;
use crate::state::{GatewayState, View};
use crate::traffic::Link;

/// The handler of all clients with one selector.
pub(crate) struct ScopedHandler {
    pub(crate) shared: Arc<GatewayState>,
    pub(crate) view: Arc<View>,
}

impl Handler for ScopedHandler {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        crate::gate::call(&self.shared, &self.view, call, handle)
    }

    fn heard(&self, heard: PeerNotification, handle: &ConversationHandle) {
        if heard.method == Method::RootsListChanged {
            let active = self.shared.active_plan();
            return active.servers.values().for_each(|it| it.has_other_roots(handle.number()));
        }
        self.shared.subscriptions.heard(&*self.shared, &heard, handle);
    }

    fn listen(&self, handle: &ConversationHandle, attached: &Attached) -> Listening {
        Some(Box::new(Joined::new(self, handle, attached)))
    }

    fn witness(
        &self,
        lasting: Option<&ConversationHandle>,
        attached: &Attached,
    ) -> Option<Arc<dyn Witness>> {
        let GatewayState { traffic, one_request_links, .. } = &*self.shared;
        if !traffic.is_recording() {
            return None;
        }
        Some(match lasting {
            Some(_) => Link::of_client(traffic, lasting, attached),
            None => one_request_links.link(traffic, attached),
        })
    }

    fn param_headers(&self, tool: &str, _: Option<&Json>, _: &Attached) -> Repeated {
        self.view.look(&self.shared, |index| index.param_headers(tool).cloned())
    }

    fn held_by(&self, _: &str, params: &Params, attached: &Attached) -> Option<String> {
        let text = |name| params.get(name).and_then(|it| it.to::<String>().ok());
        let seals = &self.shared.seals;
        if let Some(state) = text("requestState") {
            return seals.holder(crate::gate::sealed_state(&state)).map(str::to_owned);
        }
        let caller = Caller::opening(attached);
        seals.open_task(&text("taskId")?, &caller.id)?.replica
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
    fn new(handler: &ScopedHandler, handle: &ConversationHandle, attached: &Attached) -> Self {
        let caller = Caller::listening(attached, handle);
        let (selector, conversation) = (handler.view.selector.clone(), caller.conversation);
        let info = ListenerInfo { selector, caller: caller.id.clone(), conversation };
        handler.shared.subscriptions.joined(caller, &handler.view.selector);
        let listener = handler.shared.listeners.add(handle.clone(), info);
        let (shared, view) = (Arc::clone(&handler.shared), Arc::clone(&handler.view));
        shared.joined(&view.selector);
        Self { shared, view, conversation: handle.number(), listener }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.shared.listeners.remove(&self.listener);
        self.shared.subscriptions.left(&*self.shared, self.conversation);
        self.shared.left(&self.view.selector, self.conversation);
    }
}
