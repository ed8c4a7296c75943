//! Consent: asks the user before a call that a rule marks `ask`.

use trunkline_transport::conversation_handle::Request;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{ElicitResult, InputRequest, InputRequired};
use trunkline_wire::revision::Era;

use super::{CallFailure, CallOutcome, Walk};
use crate::call_record::CallRecord;
use crate::merge::Target;
use crate::policy::ask::{Binding, is_approved, question};
use crate::policy::audit::Decision;
use crate::policy::{self, What};
use crate::state::GatewayState;
use crate::traffic::{FROM_CLIENT, TO_CLIENT};

/// Asks the user, unless the user has answered. `Some` ends this round with the question.
pub(crate) async fn approve(
    walk: &mut Walk,
    record: &mut CallRecord,
    target: &Target,
) -> Result<Option<CallOutcome>, CallFailure> {
    let what = What::of(target);
    let denied = || policy::not_approved(&target.server, what);
    let can_ask = walk.call.peer.client.elicitation.is_some_and(|it| it.form);
    if !can_ask {
        record.decision = Decision::Declined;
        return Err(policy::cannot_ask(&target.server, what).into());
    }
    let arguments = walk.call.params.get("arguments").cloned();
    let asked = question(&target.server, what, arguments.as_ref());
    let binding =
        Binding::new(walk.caller.name.as_deref(), &target.server, what, arguments.as_ref());
    let answer = match walk.call.revision.era() {
        Era::Stateful => {
            let asked = InputRequest::Elicit(asked);
            let shown = asked.params().unwrap_or_else(Json::empty_object);
            let recorded = record.recording.clone();
            if let Some(recording) = &recorded {
                recording.asks(TO_CLIENT, &shown);
            }
            let params = Object::parse(shown.get()).ok();
            let mut request = Request::new(asked.method(), params.unwrap_or_default());
            request.during = Some(walk.call.key);
            request.timing = Some(crate::question::THINKING);
            let answer = walk.handle.ask(request).await;
            if let (Some(recording), Ok(answer)) = (recorded, &answer) {
                recording.replies(FROM_CLIENT, Some(answer));
            }
            answer.map_err(|_| denied())?
        }
        Era::Stateless => {
            let ticket = walk.call.params.get("requestState").and_then(|it| it.to::<String>().ok());
            if let Some((ticket, sealed)) = ticket.as_deref().and_then(approved) {
                // The user approved in an earlier round: the call resumes, once.
                if !walk.shared.redeem(ticket, &binding).await? {
                    record.decision = Decision::Declined;
                    return Err(denied().into());
                }
                let state = Json::string(sealed);
                walk.call.params.set("requestState", state);
                record.decision = Decision::Approved;
                walk.approved = Some(Box::new(binding));
                return Ok(None);
            }
            // Any other state belongs to a call that nobody has approved.
            let ticket = ticket.filter(|it| it.starts_with(TICKET));
            let Some(ticket) = ticket else {
                let ticket = walk.shared.ticket(&binding);
                let mut input =
                    InputRequired::new(vec![(KEY.to_owned(), InputRequest::Elicit(asked))]);
                input.state = Some(format!("{TICKET}{ticket}"));
                record.decision = Decision::Asked;
                return Ok(Some(CallOutcome::Ask(Box::new(input))));
            };
            if !walk.shared.redeem(&ticket[TICKET.len()..], &binding).await? {
                record.decision = Decision::Declined;
                return Err(denied().into());
            }
            walk.call.params.take("requestState");
            let answers = walk.call.params.take("inputResponses");
            let answers = answers.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
            answers.get(KEY).cloned().unwrap_or_else(Json::null)
        }
    };
    let is_yes = answer.to::<ElicitResult>().is_ok_and(|it| is_approved(&it));
    record.decision = if is_yes { Decision::Approved } else { Decision::Declined };
    if !is_yes {
        return Err(denied().into());
    }
    walk.approved = Some(Box::new(binding));
    Ok(None)
}

/// Makes the `requestState` with which an approved call resumes valid once.
pub(crate) fn once(shared: &GatewayState, binding: &Binding, input: &mut InputRequired) {
    if let Some(state) = input.state.take() {
        let ticket = shared.ticket(binding);
        input.state = Some(format!("{APPROVED}{ticket}:{state}"));
    }
}

/// A state without the ticket of an approved call.
pub(crate) fn sealed_state(state: &str) -> &str {
    approved(state).map_or(state, |(_, sealed)| sealed)
}

/// The ticket and the sealed state of an approved call.
fn approved(state: &str) -> Option<(&str, &str)> {
    state.strip_prefix(APPROVED)?.split_once(':')
}

/// The key of the question in `inputRequests`.
const KEY: &str = "approve";
/// Prefix of the state of a call that is approved and still open.
const APPROVED: &str = "approved:";
/// Prefix that tells a consent ticket from a sealed state.
const TICKET: &str = "consent:";
