//! Sends a question in the way of the client's era and returns its answer.

use serde::de::DeserializeOwned;
use trunkline_transport::conversation_handle::Request;
use trunkline_wire::era::stateful::{self, Fit, Unfit};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{ElicitAction, ElicitParams, ElicitResult, FormSchema, InputRequest};
use trunkline_wire::revision::{Era, Revision};

use super::many::Spread;
use super::{Answer, AskError, Key};
use crate::server::context::{Asker, lock};
use crate::server::{Context, Inner};

impl Context {
    /// Asks the user to fill in a form. In a revision whose forms have no lists, each choice of a
    /// list is a yes-or-no field.
    pub(super) async fn form(
        &self,
        key: Key,
        message: String,
        form: Json,
        known: &FormSchema,
    ) -> Result<Answer<Json>, AskError> {
        let mut params = ElicitParams::form(message, form);
        let request = InputRequest::Elicit(params.clone());
        let spread = match stateful::can_ask(&request, self.0.revision.profile()) {
            Err(Unfit::Many(_)) => Some(Spread::of(known)),
            _ => None,
        };
        if let (Some(spread), ElicitParams::Form(form)) = (&spread, &mut params) {
            form.requested_schema = spread.form.to_json();
        }
        let result: ElicitResult = self.question(key, InputRequest::Elicit(params)).await?;
        let content = result.content.unwrap_or_else(Json::empty_object);
        Ok(match result.action {
            ElicitAction::Accept => {
                Answer::Accept(spread.map_or(content.clone(), |it| it.gather(&content)))
            }
            ElicitAction::Decline => Answer::Decline,
            ElicitAction::Cancel => Answer::Cancel,
        })
    }

    /// Asks the client in the way of its era, and parses the answer.
    pub(in crate::server) async fn question<T: DeserializeOwned>(
        &self,
        key: Key,
        request: InputRequest,
    ) -> Result<T, AskError> {
        if let Some(refusal) = self.refusal(&request) {
            let what = match &request {
                InputRequest::Elicit(ElicitParams::Form(_)) => "form elicitation",
                InputRequest::Elicit(ElicitParams::Url(_)) => "URL elicitation",
                InputRequest::Sample(params)
                    if params.tools.is_empty() && params.tool_choice.is_none() =>
                {
                    "sampling"
                }
                InputRequest::Sample(_) => "sampling with tools",
                InputRequest::Roots => "roots",
            };
            let refusal = Some(refusal).filter(|_| self.0.revision.era() == Era::Stateless);
            return Err(AskError::Unsupported { what, refusal });
        }
        stateful::can_ask(&request, self.0.revision.profile())
            .map_err(|unfit| AskError::Invalid(unfit.to_string()))?;
        self.claim(&key.text)?;
        let _waiting = self.wait_for_people();
        let answer = match &self.0.asker {
            Asker::Wire(_) => self.ask_on_the_wire(request).await?,
            Asker::Task(task) => match task.known(&key, &request) {
                Some(answer) => answer,
                None => task.ask(&key, request).await?,
            },
            Asker::Rounds(notebook) => {
                let known = lock(notebook).answer_or_ask(&key, request);
                match known {
                    Some(answer) => answer,
                    // The dispatcher sees the new question, drops this handler and answers the call
                    // with it. The next round finds the answer above.
                    None => {
                        // Only a task that the handler spawned outlives it; it should end as well.
                        self.cancelled().await;
                        return Err(AskError::Closed);
                    }
                }
            }
        };
        answer.to().map_err(|err| AskError::Answer(format!("{err}.")))
    }

    async fn ask_on_the_wire(&self, request: InputRequest) -> Result<Json, AskError> {
        let method = request.method();
        let params = question_params(&self.0.server, request, self.0.revision);
        let request = Request { during: Some(self.0.key), ..Request::new(method, params) };
        self.0.handle.ask(request).await.map_err(AskError::from)
    }
}

/// The params of a question that is a request of its own.
pub(in crate::server) fn question_params(
    server: &Inner,
    mut request: InputRequest,
    revision: Revision,
) -> Object {
    if let InputRequest::Elicit(ElicitParams::Url(url)) = &mut request {
        // 2025-11-25 needs an id that `notifications/elicitation/complete` can refer to.
        url.elicitation_id = Some(server.sealer.random_name());
    }
    request.fit(revision.profile());
    request.params().and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default()
}
