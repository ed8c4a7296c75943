//! Refuses calls of definitions that are held back because they differ from their pin.

use std::sync::Arc;

use super::{CallFailure, Walk};
use crate::call_record::CallRecord;
use crate::catalog::plan::ServerPlan;
use crate::failure::Failure;
use crate::merge::{Item, Kind, Target};
use crate::policy::audit::Decision;
use crate::policy::pins::Part;
use crate::server::Server;
use crate::upstream::Instance;
use trunkline_wire::method::Method;

impl Walk {
    /// The failure for a definition that exists and is held back, if the caller may know of it.
    pub(super) fn held(
        &self,
        record: &mut CallRecord,
        part: Part,
        shown: &str,
    ) -> Option<CallFailure> {
        if record.decision == Decision::Denied {
            return None;
        }
        let (server, held) = self.shared.held_back(&self.active, &self.view, part, shown)?;
        let lists = server.lists()?;
        let item = match part {
            Part::Prompt => {
                Item::Prompt(lists.prompts.iter().find(|it| it.name == held.name).cloned()?)
            }
            _ => Item::Tool(lists.tools.iter().find(|it| it.name == held.name).cloned()?),
        };
        let (server, name) = (Arc::clone(&server.name), Arc::from(held.name.as_str()));
        let target = Arc::new(Target { server, name, item });
        self.allowed(record, &target).map(|_| {
            record.is(&target);
            record.decision = Decision::HeldBack;
            held.failure(&target.server).into()
        })
    }

    /// Waits until the instance's definitions were compared with the pins.
    pub(super) async fn await_comparison(
        &self,
        server: &Arc<Server>,
        plan: &ServerPlan,
        instance: &Arc<Instance>,
    ) -> Result<(), Failure> {
        match self.uncompared(plan, instance) {
            None => Ok(()),
            Some(part) => Box::pin(self.shared.compare(server, plan, instance, part)).await,
        }
    }

    /// What of the instance has to be compared with the pins before the call; most calls find it done.
    pub(super) fn uncompared(&self, plan: &ServerPlan, instance: &Instance) -> Option<Part> {
        let (part, kind) = match self.call.method.method {
            Method::ToolsCall => (Part::Tool, Kind::Tools),
            Method::PromptsGet => (Part::Prompt, Kind::Prompts),
            // The other methods use no definition that a pin covers.
            _ => return None,
        };
        let is_done = instance.compared.has(kind)
            // The replica at which it lives compares.
            || instance.peer.is_some()
            || self.shared.pins_of(plan).is_none();
        (!is_done).then_some(part)
    }

    /// Refuses what is held back, also if that happened after the call was routed.
    pub(super) fn refuse_held(
        &self,
        record: &mut CallRecord,
        plan: &ServerPlan,
    ) -> Result<(), Failure> {
        let Some(pins) = self.shared.pins_of(plan).filter(|it| it.holds(&plan.name)) else {
            return Ok(());
        };
        let (part, member) = match self.call.method.method {
            Method::ToolsCall => (Part::Tool, "name"),
            Method::PromptsGet => (Part::Prompt, "name"),
            Method::ResourcesRead => (Part::Resource, "uri"),
            _ => return Ok(()),
        };
        let name = self.call.params.get(member).and_then(|it| it.to::<String>().ok());
        let held = pins.find(&plan.name, part, name.as_deref().unwrap_or_default());
        held.map_or(Ok(()), |held| {
            record.decision = Decision::HeldBack;
            Err(held.failure(&plan.name))
        })
    }
}
