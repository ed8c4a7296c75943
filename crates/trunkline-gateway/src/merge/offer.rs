//! Whether a tool can be called as a task, from its server's capabilities and its own definition. Pure.

use trunkline_wire::era::Tasks;
use trunkline_wire::method::Gate;
use trunkline_wire::model::{ServerCapabilities, TaskSupport, Tool};
use trunkline_wire::revision::Revision;

use super::Lists;

/// A server's support of tasks for one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// The server has no tasks.
    None,
    /// The server has tasks, but not for this tool.
    Forbidden,
    /// Tasks of 2025-11-25, optional.
    May,
    /// Tasks of 2025-11-25, required.
    Must,
    /// Tasks of 2026-07-28.
    Extension,
}

impl Offer {
    pub(crate) fn of(lists: Option<&Lists>, tool: &Tool) -> Self {
        lists.map_or(Self::None, |it| Self::by(it.revision, &it.capabilities, tool.task_support))
    }

    pub(super) fn by(revision: Revision, caps: &ServerCapabilities, support: TaskSupport) -> Self {
        let has_core = caps.tasks.is_some_and(|it| it.tools_call);
        match (revision.profile().tasks, support) {
            (Tasks::Core, TaskSupport::Optional) if has_core => Self::May,
            (Tasks::Core, TaskSupport::Required) if has_core => Self::Must,
            (Tasks::Core, _) if has_core => Self::Forbidden,
            (Tasks::Extension, _) if caps.supports(Gate::TasksExtension) => Self::Extension,
            _ => Self::None,
        }
    }

    /// What clients of 2025-11-25 are shown: servers of 2026-07-28 decide only when called.
    pub(super) fn shown(self) -> TaskSupport {
        match self {
            Self::None | Self::Forbidden => TaskSupport::Forbidden,
            Self::May | Self::Extension => TaskSupport::Optional,
            Self::Must => TaskSupport::Required,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use trunkline_wire::json::Json;
    use trunkline_wire::model::{ServerTasks, TASKS_EXTENSION};

    use super::*;

    #[test]
    fn an_offer_needs_the_revision_the_capability_and_the_tool() {
        let mut caps = ServerCapabilities::default();
        let of = |revision, caps: &ServerCapabilities, support| Offer::by(revision, caps, support);
        let (core, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        assert_eq!(of(core, &caps, TaskSupport::Required), Offer::None);
        assert_eq!(of(new, &caps, TaskSupport::Forbidden), Offer::None);
        caps.tasks = Some(ServerTasks::ALL);
        caps.extensions = BTreeMap::from([(TASKS_EXTENSION.to_owned(), Json::empty_object())]);
        assert_eq!(of(core, &caps, TaskSupport::Forbidden), Offer::Forbidden);
        assert_eq!(of(core, &caps, TaskSupport::Optional), Offer::May);
        assert_eq!(of(core, &caps, TaskSupport::Required), Offer::Must);
        assert_eq!(of(new, &caps, TaskSupport::Forbidden), Offer::Extension);
        assert_eq!(of(Revision::V2025_06_18, &caps, TaskSupport::Required), Offer::None);
        assert_eq!(of(new, &caps, TaskSupport::Forbidden).shown(), TaskSupport::Optional);
        assert_eq!(of(core, &caps, TaskSupport::Required).shown(), TaskSupport::Required);
    }
}
