//! Passes a call through the plugins: arguments and answers on the way in; results, errors, questions,
//! progress and logs on the way out.

use std::sync::Arc;

use trunkline_proto::HandlerEvent;
use trunkline_wire::json::Json;

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
        trail: &CallRecord,
        target: &Target,
    ) -> Result<Option<CallView>, Rejected> {
        let world = Arc::clone(&self.world);
        if world.plugins.is_empty() {
            return Ok(None);
        }
        let caller = self.caller.name.as_deref();
        let view =
            CallView::about(&target.server, What::of(target), caller).trace(trail.id.to_string());
        let arguments = self.call.params.take("arguments");
        self.digest = Some(digest(arguments.as_ref()));
        let had_any = arguments.is_some();
        let arguments = arguments.unwrap_or_else(Json::empty_object);
        let arguments = Box::pin(world.plugins.request(&view, arguments)).await?;
        if let Some(answers) = self.call.params.take("inputResponses") {
            let answers = Box::pin(world.plugins.answers(&view, answers)).await?;
            self.call.params.set("inputResponses", answers);
        }
        self.plugged = Some(Arc::new(view.clone()));
        if had_any || arguments.get() != "{}" {
            self.call.params.set("arguments", arguments);
        }
        Ok(Some(view))
    }

    /// Lets the plugins inspect and change the answer.
    pub(super) async fn tell_plugins(
        &self,
        trail: &mut CallRecord,
        target: &Target,
        plugins: Option<CallView>,
        came: Result<CallOutcome, CallFailure>,
    ) -> Result<CallOutcome, CallFailure> {
        match (came, plugins) {
            (Ok(CallOutcome::Answer(said, from)), Some(view)) => {
                match Box::pin(self.world.plugins.response(&view, said)).await {
                    Ok(said) => Ok(CallOutcome::Answer(said, from)),
                    Err(rejected) => {
                        let mut came = self.rejected(trail, target, &rejected);
                        if let Err(CallFailure::Here(failure)) = &mut came {
                            failure.done = Done::Unknown;
                        }
                        came
                    }
                }
            }
            (came, Some(view)) => Box::pin(self.tell_more(trail, target, view, came)).await,
            (came, None) => came,
        }
    }

    /// Lets the plugins inspect and change the server's error or its questions.
    async fn tell_more(
        &self,
        trail: &mut CallRecord,
        target: &Target,
        view: CallView,
        came: Result<CallOutcome, CallFailure>,
    ) -> Result<CallOutcome, CallFailure> {
        let plugins = &self.world.plugins;
        let rejected: Rejected = match came {
            Err(CallFailure::Server(error, from)) => {
                match plugins.said(Kind::Error, &view, Json::of(&error)).await {
                    Ok(said) => return Err(CallFailure::Server(said.to().unwrap_or(error), from)),
                    Err(rejected) => rejected,
                }
            }
            Ok(CallOutcome::Ask(mut input)) => {
                let mut requests = Vec::new();
                let mut refused = None;
                for (name, request) in std::mem::take(&mut input.requests) {
                    match plugins.question(&view, request).await {
                        Ok(request) => requests.push((name, request)),
                        Err(rejected) => refused = refused.or(Some(rejected)),
                    }
                }
                match refused {
                    None => {
                        input.requests = requests;
                        return Ok(CallOutcome::Ask(input));
                    }
                    Some(rejected) => rejected,
                }
            }
            came => return came,
        };
        let mut came = self.rejected(trail, target, &rejected);
        if let Err(CallFailure::Here(failure)) = &mut came {
            failure.done = Done::Unknown;
        }
        came
    }

    /// Lets the plugins inspect progress or a log message; `None` if they drop it.
    pub(super) async fn look_at_said(
        &self,
        view: &Arc<CallView>,
        what: HandlerEvent,
    ) -> Option<HandlerEvent> {
        let plugins = &self.world.plugins;
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
