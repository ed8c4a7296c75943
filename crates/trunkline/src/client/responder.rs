//! What a server may ask of the client's side, and what it may tell it.

use std::future::Future;
use std::sync::Arc;

use trunkline_proto::Change;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    LogMessage, Root,
};

/// Answers a server's questions. It is asked the same way in every revision, and only what
/// [`Responder::capabilities`] declares.
///
/// The hooks `on_log` and `on_change` are called in the order of arrival, on the connection's own
/// task: they must not block.
pub trait Responder: Send + Sync + 'static {
    /// What the server may ask. Nothing, unless said.
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    /// Asks the user.
    fn elicit(
        &self,
        _params: ElicitParams,
    ) -> impl Future<Output = Result<ElicitResult, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found("elicitation/create")) }
    }

    /// Asks the model. To refuse in the user's name, answer with
    /// [`USER_REJECTED`](trunkline_wire::code::USER_REJECTED).
    fn sample(
        &self,
        _params: CreateMessageParams,
    ) -> impl Future<Output = Result<CreateMessageResult, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found("sampling/createMessage")) }
    }

    /// The folders the server may know about, as `file://` URIs.
    fn roots(&self) -> impl Future<Output = Result<Vec<Root>, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found("roots/list")) }
    }

    /// The server logged something.
    fn on_log(&self, _message: LogMessage) {}

    /// Something changed. A server of 2026-07-28 tells only what is listened to or subscribed.
    fn on_change(&self, _change: &Change) {}
}

/// Nobody to ask.
impl Responder for () {}

/// A responder that others hold on to as well.
impl<R: Responder> Responder for Arc<R> {
    fn capabilities(&self) -> ClientCapabilities {
        (**self).capabilities()
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        (**self).elicit(params).await
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        (**self).sample(params).await
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        (**self).roots().await
    }

    fn on_log(&self, message: LogMessage) {
        (**self).on_log(message);
    }

    fn on_change(&self, change: &Change) {
        (**self).on_change(change);
    }
}
