//! A call that a person has to say yes to first.

use std::time::SystemTime;

use trunkline_transport::voice::Request;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{ElicitResult, InputRequest, InputRequired};
use trunkline_wire::revision::Era;

use crate::gate::{Came, Walk, Wrong};
use crate::merge::Target;
use crate::policy::audit::Decision;
use crate::policy::{
    self,
    ask::{Binding, is_approved, question},
};
use crate::trail::Trail;

/// Has the user asked, unless that was done. `Some` ends the call with the question.
pub(crate) async fn approve(
    walk: &mut Walk,
    trail: &mut Trail,
    target: &Target,
) -> Result<Option<Came>, Wrong> {
    let what = crate::face::what(target);
    let denied = || policy::not_approved(&target.server, what);
    let can_ask = walk.call.peer.client.elicitation.is_some_and(|it| it.form);
    if !can_ask {
        trail.decision = Decision::Declined;
        return Err(policy::cannot_ask(&target.server, what).into());
    }
    let arguments = walk.call.params.get("arguments").cloned();
    let asked = question(&target.server, what, arguments.as_ref());
    let binding =
        Binding::new(walk.caller.name.as_deref(), &target.server, what, arguments.as_ref());
    let answer = match walk.call.revision.era() {
        Era::Stateful => {
            let asked = InputRequest::Elicit(asked);
            let params = asked.params().and_then(|it| Object::parse(it.get()).ok());
            let mut request = Request::new(asked.method(), params.unwrap_or_default());
            request.during = Some(walk.call.key);
            let answer = walk.voice.ask(request).await;
            answer.map_err(|_| denied())?
        }
        Era::Stateless => {
            let now = SystemTime::now();
            let ticket = walk.call.params.get("requestState").and_then(|it| it.to::<String>().ok());
            let ticket = ticket.filter(|it| it.starts_with(TICKET));
            let Some(ticket) = ticket else {
                if walk.call.params.get("requestState").is_some() {
                    // It was approved in an earlier round, and goes on where it was.
                    return Ok(None);
                }
                let ticket = walk.shared.approvals(|it| it.ask(&binding, now));
                let mut input =
                    InputRequired::new(vec![(KEY.to_owned(), InputRequest::Elicit(asked))]);
                input.state = Some(format!("{TICKET}{ticket}"));
                trail.decision = Decision::Asked;
                return Ok(Some(Came::Ask(input)));
            };
            if !walk.shared.approvals(|it| it.redeem(&ticket[TICKET.len()..], &binding, now)) {
                return Err(denied().into());
            }
            walk.call.params.take("requestState");
            let answers = walk.call.params.take("inputResponses");
            let answers = answers.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
            answers.get(KEY).cloned().unwrap_or_else(Json::null)
        }
    };
    let is_yes = answer.to::<ElicitResult>().is_ok_and(|it| is_approved(&it));
    trail.decision = if is_yes { Decision::Approved } else { Decision::Declined };
    match is_yes {
        true => Ok(None),
        false => Err(denied().into()),
    }
}

/// What the question is called.
const KEY: &str = "approve";
/// Tells a state of ours about consent from those that are sealed.
const TICKET: &str = "consent:";
