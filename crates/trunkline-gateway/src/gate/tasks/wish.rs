//! Decides how a tool is called, from what the caller wants of tasks and what the server offers. Pure.

use trunkline_proto::Call;
use trunkline_wire::code;
use trunkline_wire::era::Tasks;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::method::Gate;
use trunkline_wire::model::TaskRequest;

use crate::merge::Offer;

/// What the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A result.
    Result,
    /// A task, as 2025-11-25 requests it.
    Task(TaskRequest),
    /// Either, as in 2026-07-28: the server decides.
    Either,
}

/// How to call the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct How {
    /// The task request to a server of 2025-11-25.
    pub(super) task: Option<TaskRequest>,
    /// Whether the gateway declares the tasks extension to a server of 2026-07-28.
    pub(super) declares: bool,
    /// Whether the caller gets a task instead of waiting.
    pub(super) is_shown: bool,
}

impl Wish {
    /// Reads what the caller wants and removes it from the call.
    pub(super) fn of(call: &mut Call) -> Result<Self, ErrorObject> {
        let asked = call.params.take("task");
        match call.revision.profile().tasks {
            Tasks::Core => match asked.filter(|it| !it.is_null()) {
                Some(asked) => asked
                    .to()
                    .map(Self::Task)
                    .map_err(|_| ErrorObject::invalid_params("`task` must be an object.")),
                None => Ok(Self::Result),
            },
            Tasks::Extension if call.peer.client.supports(Gate::TasksExtension) => Ok(Self::Either),
            Tasks::Extension | Tasks::None => Ok(Self::Result),
        }
    }
}

/// How to call the tool, or the error for a caller that wants what the server does not offer.
pub(super) fn decide(wish: Wish, offer: Offer) -> Result<How, ErrorObject> {
    let plain = How::default();
    Ok(match (wish, offer) {
        (Wish::Task(_), Offer::Forbidden) => {
            let message = "This tool does not run as a task; leave out `task`.";
            return Err(ErrorObject::new(code::METHOD_NOT_FOUND, message));
        }
        (Wish::Task(task), Offer::May | Offer::Must) => {
            How { task: Some(task), is_shown: true, ..plain }
        }
        (Wish::Either, Offer::May | Offer::Must) => {
            How { task: Some(TaskRequest::new()), is_shown: true, ..plain }
        }
        (Wish::Task(_) | Wish::Either, Offer::Extension) => {
            How { declares: true, is_shown: true, ..plain }
        }
        (Wish::Result, Offer::Must) => How { task: Some(TaskRequest::new()), ..plain },
        // A server of the stateless era says only when called that a tool runs as a task only. A server without
        // tasks ignores the wish (2025-11-25 §Tasks, "Capabilities").
        (_, Offer::None) | (Wish::Either, Offer::Forbidden) | (Wish::Result, _) => plain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_wish_and_offer_has_its_way() {
        let asked = TaskRequest::new().ttl_ms(9_u64);
        let (task, new) = (Wish::Task(asked), Some(TaskRequest::new()));
        let how = |task, declares, is_shown| Ok(How { task, declares, is_shown });
        for (wish, offer, expected) in [
            (Wish::Result, Offer::None, how(None, false, false)),
            (Wish::Result, Offer::May, how(None, false, false)),
            (Wish::Result, Offer::Must, how(new, false, false)),
            (Wish::Result, Offer::Extension, how(None, false, false)),
            (task, Offer::May, how(Some(asked), false, true)),
            (task, Offer::Must, how(Some(asked), false, true)),
            (task, Offer::Extension, how(None, true, true)),
            (task, Offer::None, how(None, false, false)),
            (Wish::Either, Offer::None, how(None, false, false)),
            (Wish::Either, Offer::Forbidden, how(None, false, false)),
            (Wish::Result, Offer::Forbidden, how(None, false, false)),
            (Wish::Either, Offer::May, how(new, false, true)),
            (Wish::Either, Offer::Must, how(new, false, true)),
            (Wish::Either, Offer::Extension, how(None, true, true)),
        ] {
            assert_eq!(decide(wish, offer), expected, "{wish:?} {offer:?}");
        }
        let refused = decide(task, Offer::Forbidden).unwrap_err();
        assert_eq!(refused.code, code::METHOD_NOT_FOUND);
    }
}
