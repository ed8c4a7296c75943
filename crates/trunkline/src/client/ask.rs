//! A server's question, in either era → the responder's validated answer in the form of the
//! revision.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use trunkline_proto::input_required::missing_capability;
use trunkline_proto::{Call, PeerNotification};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, Handler};
use trunkline_wire::era::stateful::Fit;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{ClientCapabilities, InputRequest, InputResponse, ListRootsResult};
use trunkline_wire::revision::Revision;

use super::listen::{Hub, change_of};
use super::responder::Responder;

/// A type-erased responder, so that a client has one type.
pub(super) trait ErasedResponder: Send + Sync {
    /// Answers one question.
    fn answer(&self, question: InputRequest, revision: Revision) -> Answering;

    /// Notifies it of a change.
    fn changed(&self, change: &trunkline_proto::Change);
}

/// The future of an answer.
pub(super) type Answering =
    Pin<Box<dyn Future<Output = Result<InputResponse, ErrorObject>> + Send>>;

/// A responder and the capabilities that it declared when the connection was made.
pub(super) struct DeclaredResponder<H> {
    responder: Arc<H>,
    capabilities: ClientCapabilities,
}

impl<H: Responder> DeclaredResponder<H> {
    pub(super) fn new(responder: Arc<H>, capabilities: ClientCapabilities) -> Self {
        Self { responder, capabilities }
    }
}

impl<H: Responder> ErasedResponder for DeclaredResponder<H> {
    fn answer(&self, question: InputRequest, revision: Revision) -> Answering {
        if let Err(error) = check(&question, &self.capabilities) {
            return Box::pin(async { Err(error) });
        }
        let responder = Arc::clone(&self.responder);
        Box::pin(async move {
            let mut response = match question {
                InputRequest::Elicit(params) => {
                    InputResponse::Elicit(responder.elicit(params).await?)
                }
                InputRequest::Sample(params) => {
                    InputResponse::Sample(responder.sample(*params).await?.into())
                }
                InputRequest::Roots => {
                    let roots = responder.roots().await?;
                    if let Some(root) = roots.iter().find(|it| !it.uri.starts_with("file://")) {
                        let message = format!("The root `{}` is not a `file://` URI.", root.uri);
                        return Err(ErrorObject::internal("roots", message));
                    }
                    InputResponse::Roots(ListRootsResult::new(roots))
                }
            };
            response.fit(revision.profile());
            Ok(response)
        })
    }

    fn changed(&self, change: &trunkline_proto::Change) {
        self.responder.on_change(change);
    }
}

/// Answers the requests that the server sends over the connection.
pub(super) struct Answers<H> {
    pub(super) hosted: Arc<DeclaredResponder<H>>,
    pub(super) hub: Arc<Hub>,
}

impl<H: Responder> Handler for Answers<H> {
    fn call(&self, call: Call, _: &ConversationHandle) -> Answer {
        let params = call.params.to_json();
        let question = match InputRequest::read(call.method.name, Some(&params)) {
            Ok(question) => question,
            Err(err) => {
                let message = format!("`{}` cannot be read: {err}.", call.method.name);
                return Answer::Now(Err(ErrorObject::invalid_params(message)));
            }
        };
        let answering = self.hosted.answer(question, call.revision);
        Answer::later(async move { Outcome::Ok(Json::of(&answering.await?)) })
    }

    fn heard(&self, heard: PeerNotification, _: &ConversationHandle) {
        if heard.method == Method::Message {
            // A log message that cannot be parsed is dropped.
            if let Ok(message) = heard.params.to() {
                self.hosted.responder.on_log(message);
            }
        } else if let Some(change) = change_of(&heard) {
            self.hosted.changed(&change);
            self.hub.tell(&change);
        }
    }
}

/// The connection owns its answers, so they are dropped with it.
impl<H> Drop for Answers<H> {
    fn drop(&mut self) {
        self.hub.close();
    }
}

/// Whether the question is one that was declared, and is valid.
fn check(question: &InputRequest, declared: &ClientCapabilities) -> Result<(), ErrorObject> {
    if missing_capability(question, declared).is_some() {
        // An undeclared capability means that this client does not have the method.
        let has_some = match question {
            InputRequest::Elicit(_) => declared.elicitation.is_some(),
            InputRequest::Sample(_) => declared.sampling.is_some(),
            InputRequest::Roots => false,
        };
        let method = question.method();
        return Err(match has_some {
            true => ErrorObject::invalid_params(format!(
                "This client did not declare this kind of `{method}`; ask in a way it declared."
            )),
            false => ErrorObject::method_not_found(method.name()),
        });
    }
    match question {
        InputRequest::Sample(params) => {
            params.check().map_err(|fault| ErrorObject::invalid_params(fault.to_string()))
        }
        InputRequest::Elicit(_) | InputRequest::Roots => Ok(()),
    }
}
