//! Passes a call through the plugins: arguments and answers on the way in; results, errors, questions,
//! progress and logs on the way out.

use std::sync::Arc;

use trunkline_proto::HandlerEvent;
use trunkline_wire::json::Json;
use trunkline_wire::model::InputRequired;

use super::{CallFailure, CallOutcome, Walk, digest};
use crate::call_record::CallRecord;
use crate::failure::Done;
use crate::merge::Target;
use crate::policy::What;
use crate::policy::plugins::{CallView, Kind, Rejected};

impl Walk {
    /// Lets the plugins inspect and change the arguments; `None` without plugins.
    pub(super) async fn ask_plugins(
        &mut self,
        record: &CallRecord,
        target: &Target,
    ) -> Result<Option<CallView>, Rejected> {
        let active = Arc::clone(&self.active);
        let caller = self.caller.name.as_deref();
        let view =
            CallView::about(&target.server, What::of(target), caller).trace(record.id.to_string());
        let arguments = self.call.params.take("arguments");
        self.digest = Some(digest(arguments.as_ref()));
        let had_any = arguments.is_some();
        let arguments = arguments.unwrap_or_else(Json::empty_object);
        let arguments = Box::pin(active.plugins.request(&view, arguments)).await?;
        if let Some(answers) = self.call.params.take("inputResponses") {
            let answers = Box::pin(active.plugins.answers(&view, answers)).await?;
            self.call.params.set("inputResponses", answers);
        }
        self.plugged = Some(Arc::new(view.clone()));
        if had_any || arguments.get() != "{}" {
            self.call.params.set("arguments", arguments);
        }
        Ok(Some(view))
    }

    /// Lets the plugins inspect and change the answer, the server's error or its questions.
    pub(super) async fn tell_plugins(
        &self,
        record: &mut CallRecord,
        target: &Target,
        view: CallView,
        result: Result<CallOutcome, CallFailure>,
    ) -> Result<CallOutcome, CallFailure> {
        let plugins = &self.active.plugins;
        let rejected = match result {
            Ok(CallOutcome::Answer(said, from)) => match plugins.response(&view, said).await {
                Ok(said) => return Ok(CallOutcome::Answer(said, from)),
                Err(rejected) => rejected,
            },
            Ok(CallOutcome::Ask(input)) => {
                match Box::pin(self.inspect_questions(&view, *input)).await {
                    Ok(input) => return Ok(CallOutcome::Ask(Box::new(input))),
                    Err(rejected) => rejected,
                }
            }
            Err(CallFailure::Server(error, from)) => {
                match plugins.said(Kind::Error, &view, Json::of(&error)).await {
                    Ok(said) => return Err(CallFailure::Server(said.to().unwrap_or(error), from)),
                    Err(rejected) => rejected,
                }
            }
            result => return result,
        };
        let mut result = self.rejected(record, target, &rejected);
        if let Err(CallFailure::Here(failure)) = &mut result {
            failure.done = Done::Unknown;
        }
        result
    }

    /// All questions as the plugins let them pass, or the first refusal.
    async fn inspect_questions(
        &self,
        view: &CallView,
        mut input: InputRequired,
    ) -> Result<InputRequired, Rejected> {
        let mut requests = Vec::new();
        let mut refused = None;
        for (name, request) in std::mem::take(&mut input.requests) {
            match self.active.plugins.question(view, request).await {
                Ok(request) => requests.push((name, request)),
                Err(rejected) => refused = refused.or(Some(rejected)),
            }
        }
        input.requests = requests;
        refused.map_or(Ok(input), Err)
    }

    /// Lets the plugins inspect progress or a log message; `None` if they drop it.
    pub(super) async fn inspect_event(
        &self,
        view: &Arc<CallView>,
        what: HandlerEvent,
    ) -> Option<HandlerEvent> {
        let plugins = &self.active.plugins;
        match what {
            HandlerEvent::Progress(it) => {
                let said = plugins.said(Kind::Progress, view, Json::of(&it)).await.ok()?;
                Some(HandlerEvent::Progress(said.to().ok()?))
            }
            HandlerEvent::Log(it) => {
                let said = plugins.said(Kind::Log, view, Json::of(&it)).await.ok()?;
                Some(HandlerEvent::Log(said.to().ok()?))
            }
            what => Some(what),
        }
    }
}
