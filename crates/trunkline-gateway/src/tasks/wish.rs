//! What a caller wants of tasks, and what a server has of them → how a tool is called. Pure.

use trunkline_proto::Call;
use trunkline_wire::code;
use trunkline_wire::era::Tasks;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::method::Gate;
use trunkline_wire::model::{ServerCapabilities, TaskRequest, TaskSupport, Tool};
use trunkline_wire::revision::Revision;

use crate::merge::Lists;

/// What the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A result.
    Result,
    /// A task, in the way of 2025-11-25.
    Task(TaskRequest),
    /// Either, in the way of 2026-07-28: the server decides.
    Either,
}

/// What the server has, for one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// No tasks.
    None,
    /// Tasks of 2025-11-25, if they are asked for.
    May,
    /// Nothing but those.
    Must,
    /// Tasks of 2026-07-28.
    Extension,
}

/// How the tool is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct How {
    /// What is asked of a server of 2025-11-25.
    pub(super) task: Option<TaskRequest>,
    /// Whether a server of 2026-07-28 is told that tasks are known.
    pub(super) declares: bool,
    /// Whether the caller is given a task, and not waited with.
    pub(super) is_shown: bool,
}

impl Wish {
    /// Reads what the caller wants, and takes it out of the call.
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

impl Offer {
    pub(super) fn of(lists: Option<&Lists>, tool: &Tool) -> Self {
        lists.map_or(Self::None, |it| Self::by(it.revision, &it.capabilities, tool.task_support))
    }

    fn by(revision: Revision, caps: &ServerCapabilities, support: TaskSupport) -> Self {
        let has_core = caps.tasks.is_some_and(|it| it.tools_call);
        match (revision.profile().tasks, support) {
            (Tasks::Core, TaskSupport::Optional) if has_core => Self::May,
            (Tasks::Core, TaskSupport::Required) if has_core => Self::Must,
            (Tasks::Extension, _) if caps.supports(Gate::TasksExtension) => Self::Extension,
            _ => Self::None,
        }
    }
}

/// Whether a tool of a server can be called as a task, for clients of 2025-11-25: servers of
/// 2026-07-28 do not say, and decide when they are called.
pub(crate) fn support(
    revision: Revision,
    caps: &ServerCapabilities,
    listed: TaskSupport,
) -> TaskSupport {
    match Offer::by(revision, caps, listed) {
        Offer::None => TaskSupport::Forbidden,
        Offer::May | Offer::Extension => TaskSupport::Optional,
        Offer::Must => TaskSupport::Required,
    }
}

/// How a tool is called, or what a caller hears who asks for what there is not.
pub(super) fn decide(wish: Wish, offer: Offer) -> Result<How, ErrorObject> {
    let plain = How::default();
    Ok(match (wish, offer) {
        (Wish::Task(_), Offer::None) => {
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
        // A server of the new era that runs a tool as a task only says so when it is called.
        (Wish::Result | Wish::Either, Offer::None) | (Wish::Result, _) => plain,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use trunkline_wire::json::Json;
    use trunkline_wire::model::{ServerTasks, TASKS_EXTENSION};

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
            (Wish::Either, Offer::None, how(None, false, false)),
            (Wish::Either, Offer::May, how(new, false, true)),
            (Wish::Either, Offer::Must, how(new, false, true)),
            (Wish::Either, Offer::Extension, how(None, true, true)),
        ] {
            assert_eq!(decide(wish, offer), expected, "{wish:?} {offer:?}");
        }
        let refused = decide(task, Offer::None).unwrap_err();
        assert_eq!(refused.code, code::METHOD_NOT_FOUND);
    }

    #[test]
    fn an_offer_needs_the_revision_the_capability_and_the_tool() {
        let mut caps = ServerCapabilities::default();
        let of = |revision, caps: &ServerCapabilities, support| Offer::by(revision, caps, support);
        let (core, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        assert_eq!(of(core, &caps, TaskSupport::Required), Offer::None);
        assert_eq!(of(new, &caps, TaskSupport::Forbidden), Offer::None);
        caps.tasks = Some(ServerTasks::ALL);
        caps.extensions = BTreeMap::from([(TASKS_EXTENSION.to_owned(), Json::empty_object())]);
        assert_eq!(of(core, &caps, TaskSupport::Forbidden), Offer::None);
        assert_eq!(of(core, &caps, TaskSupport::Optional), Offer::May);
        assert_eq!(of(core, &caps, TaskSupport::Required), Offer::Must);
        assert_eq!(of(new, &caps, TaskSupport::Forbidden), Offer::Extension);
        assert_eq!(of(Revision::V2025_06_18, &caps, TaskSupport::Required), Offer::None);
        assert_eq!(support(new, &caps, TaskSupport::Forbidden), TaskSupport::Optional);
        assert_eq!(support(core, &caps, TaskSupport::Required), TaskSupport::Required);
    }
}
