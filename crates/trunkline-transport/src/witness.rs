//! Seeing what is said in a conversation, message by message, as it is received and sent.

use std::any::Any;
use std::fmt::Debug;
use std::time::Instant;

use trunkline_proto::{Cause, RequestStream};
use trunkline_wire::jsonrpc::Message;

/// Sees the messages of one conversation. It is told in the task of the conversation, so it must not wait.
pub trait Witness: Any + Debug + Send + Sync {
    /// The peer sent this at that moment, on the stream of a request if it has one. Nothing has been done about it yet.
    fn received(&self, message: &Message, via: RequestStream, at: Instant);

    /// This was sent to the peer at that moment, as this text if that is at hand. A request of ours comes with what it
    /// belongs to.
    fn sent(
        &self,
        message: &Message,
        text: Option<&[u8]>,
        via: Option<RequestStream>,
        cause: Option<Cause<'_>>,
        at: Instant,
    );
}
