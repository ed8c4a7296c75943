//! Serves the instances that live here to other replicas, over the internal listener.

use std::sync::Arc;

use trunkline_proto::{Attached, Call, PeerNotification};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, Handler, Listening};

use crate::scoped_handler::ScopedHandler;

/// The handler of other replicas that use one server's instances.
pub(crate) struct InstanceHandler {
    pub(crate) server: String,
    /// The server alone, as clients see it.
    pub(crate) scoped: Arc<ScopedHandler>,
}

impl Handler for InstanceHandler {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        let ScopedHandler { shared, view } = &*self.scoped;
        crate::gate::call_placed(shared, view, &self.server, call, handle)
    }

    fn heard(&self, heard: PeerNotification, handle: &ConversationHandle) {
        self.scoped.heard(heard, handle);
    }

    fn listen(&self, handle: &ConversationHandle, attached: &Attached) -> Listening {
        self.scoped.listen(handle, attached)
    }
}
