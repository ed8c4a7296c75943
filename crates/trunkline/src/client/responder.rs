//! What a server may ask of the client, and what it may notify it of.

use std::future::Future;
use std::sync::Arc;

use trunkline_proto::Change;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    LogMessage, Root,
};

/// Answers a server's questions, in the same way for every revision. A server can ask only what
/// [`Responder::capabilities`] declares.
///
/// The hooks `on_log` and `on_change` are called in the order of arrival, on the connection's own
/// task: they must not block.
///
/// ```
/// # use trunkline::{Client, Context, Server, ToolError, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use trunkline::ErrorObject;
/// use trunkline::client::Responder;
/// use trunkline::model::{ClientCapabilities, Root, RootsCapability};
///
/// struct Folders;
///
/// impl Responder for Folders {
///     fn capabilities(&self) -> ClientCapabilities {
///         ClientCapabilities::new().roots(RootsCapability::new(false))
///     }
///
///     async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
///         Ok(vec![Root::new("file:///projects/ada")])
///     }
/// }
///
/// # async fn count(cx: Context) -> Result<String, ToolError> {
/// #     Ok(cx.roots().await?.len().to_string())
/// # }
/// # let server = Server::builder("files", "1.0.0").tool(tool("count", count)).build();
/// let builder = Client::builder("example", "1.0.0").responder(Folders);
/// let count = builder.connect_memory(&server).await?.call_tool("count", ()).await?;
/// assert_eq!(count.content[0].as_text(), Some("1"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub trait Responder: Send + Sync + 'static {
    /// What the server may ask; by default nothing.
    ///
    /// ```
    /// use trunkline::client::Responder;
    ///
    /// assert!(().capabilities().sampling.is_none(), "nobody is there to be asked");
    /// ```
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    /// Asks the user.
    fn elicit(
        &self,
        _params: ElicitParams,
    ) -> impl Future<Output = Result<ElicitResult, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found(Method::ElicitationCreate.name())) }
    }

    /// Asks the model. To refuse on the user's behalf, answer with
    /// [`USER_REJECTED`](trunkline_wire::code::USER_REJECTED).
    fn sample(
        &self,
        _params: CreateMessageParams,
    ) -> impl Future<Output = Result<CreateMessageResult, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found(Method::SamplingCreateMessage.name())) }
    }

    /// The folders the server may know about, as `file://` URIs.
    fn roots(&self) -> impl Future<Output = Result<Vec<Root>, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found(Method::RootsList.name())) }
    }

    /// The server logged something.
    ///
    /// ```
    /// use trunkline::client::Responder;
    /// use trunkline::model::{LogLevel, LogMessage};
    ///
    /// struct Loud;
    ///
    /// impl Responder for Loud {
    ///     fn on_log(&self, message: LogMessage) {
    ///         assert_eq!(message.level, LogLevel::Error);
    ///     }
    /// }
    ///
    /// Loud.on_log(LogMessage::text(LogLevel::Error, "The disk is full."));
    /// ```
    fn on_log(&self, _message: LogMessage) {}

    /// Something changed. A server of 2026-07-28 announces only what the client listens or
    /// subscribes to.
    ///
    /// ```
    /// use trunkline::{Change, client::Responder};
    ///
    /// struct Curious;
    ///
    /// impl Responder for Curious {
    ///     fn on_change(&self, change: &Change) {
    ///         assert_eq!(*change, Change::Tools);
    ///     }
    /// }
    ///
    /// Curious.on_change(&Change::Tools);
    /// ```
    fn on_change(&self, _change: &Change) {}
}

/// Answers no questions.
impl Responder for () {}

/// A responder that is shared.
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
