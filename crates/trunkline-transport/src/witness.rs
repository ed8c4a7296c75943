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

    /// Whether handlers tell the witness of the calls that they get. If so, a request with which a call begins may not
    /// be shown to it: the handler tells it, and [`Call::is_unseen`] says so.
    ///
    /// [`Call::is_unseen`]: trunkline_proto::Call::is_unseen
    fn is_told_of_calls(&self) -> bool;

    /// A message was sent to the peer.
    fn sent(&self, message: &SentMessage<'_>);
}

/// A message as it was sent to the peer.
#[derive(Clone, Copy, Debug)]
pub struct SentMessage<'a> {
    /// The message.
    pub message: &'a Message,
    /// The text that it was sent as, if that is at hand.
    pub text: Option<&'a [u8]>,
    /// The stream of the request whose response it is part of, if it is.
    pub via: Option<RequestStream>,
    /// What a request of ours belongs to, or an error that is no answer.
    pub cause: Option<Cause<'a>>,
    /// When it was sent.
    pub at: Instant,
}
