//! Calls that outlive their request, carried between the two generations of tasks.

use std::sync::Arc;

use trunkline_proto::Heard;
use trunkline_wire::model::Tool;

use crate::catalog::plan::ServerPlan;
use crate::failure::{Failure, Stage};
use crate::gate::{Came, Walk, Wrong};
use crate::gateway::Shared;
use crate::server::Server;
use crate::trail::Trail;

/// Calls a tool, as a task where that is asked for.
pub(crate) async fn call(
    walk: &mut Walk,
    trail: &mut Trail,
    server: &Arc<Server>,
    _plan: &ServerPlan,
    _tool: &Arc<Tool>,
    is_repeatable: bool,
) -> Result<Came, Wrong> {
    walk.at(trail, server, is_repeatable).await
}

/// Answers `tasks/…`.
pub(crate) async fn manage(walk: &mut Walk, _trail: &mut Trail) -> Result<Came, Wrong> {
    let message = format!("`{}` names no task of yours.", walk.call.method.name);
    Err(Failure::new("unknown_task", Stage::Route, message).into())
}

/// A server told something of a task.
pub(crate) fn heard(_: &Shared, _: &Arc<Server>, _: u64, _: Heard) {}
