//! Automatic mode: two tools instead of many, one that searches for tools and one that calls them.

use std::time::Instant;

use trunkline_wire::era::{stateful, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::model::{CallToolResult, ListToolsResult};
use trunkline_wire::revision::{Era, Revision};

use super::{CallOutcome, Walk};
use crate::caller::Caller;
use crate::catalog::plan::{self, Effect};
use crate::merge::Kind;
use crate::search::{self, CALL_TOOL, FIND_TOOLS};
use crate::selector::Selector;
use crate::state::{ActivePlan, GatewayState, View, Visibility};

/// The settings of automatic mode, if clients of this view get the two tools.
fn is_for<'a>(active: &'a ActivePlan, view: &View) -> Option<&'a plan::Automatic> {
    let automatic = active.plan.gateway.automatic.as_ref()?;
    let is_meant = match &view.selector {
        _ if automatic.tags.is_empty() => true,
        Selector::Tags(tags) => tags.iter().any(|it| automatic.tags.contains(it)),
        _ => false,
    };
    is_meant.then_some(automatic)
}

/// The tool list in automatic mode.
pub(crate) fn tools(
    shared: &GatewayState,
    active: &ActivePlan,
    view: &View,
    caller: &Caller,
    revision: Revision,
) -> Option<Json> {
    let automatic = is_for(active, view)?;
    let index = view.index(shared);
    // The description names only servers that the caller may see.
    let visibility = Visibility::new(active, caller);
    let is_seen = |name: &str| {
        let mut tools = index.iter(Kind::Tools).filter(|(_, it)| *it.server == *name);
        tools.any(|(_, it)| visibility.effect(it) != Effect::Deny)
    };
    let servers = index.servers().map(|it| &**it).filter(|it| is_seen(it));
    let find = search::find_tools(servers, automatic.limit);
    let list = ListToolsResult::new(vec![find, search::call_tool()]);
    Some(stateful::encode(list, revision, &stateless::Extras::default()))
}

/// What a call of one of the two tools turns into.
pub(super) enum Automatic {
    /// The search result, or why the call cannot be read.
    Told(CallOutcome),
    /// A call of the tool with this name, which is decided like any other.
    Call(String),
}

/// Reads a call of one of the two tools; `None` if it is for another tool.
pub(super) fn call(walk: &mut Walk, shown: &str) -> Option<Automatic> {
    let limit = is_for(&walk.active, &walk.view)?.limit;
    let arguments = walk.call.params.get("arguments");
    let unread = |walk: &Walk, why| Automatic::Told(told(walk, CallToolResult::error(why)));
    Some(match shown {
        FIND_TOOLS => match search::read_find(arguments, limit) {
            Ok(asked) => Automatic::Told(find(walk, &asked)),
            Err(why) => unread(walk, why),
        },
        CALL_TOOL => match search::read_call(arguments) {
            Ok(inner) => {
                let mut params = walk.call.params.clone();
                for (name, value) in inner.clone().into_object().iter() {
                    params.set(name.to_owned(), value.clone());
                }
                if inner.arguments.is_none() {
                    params.take("arguments");
                }
                walk.call.params = params;
                Automatic::Call(inner.name)
            }
            Err(why) => unread(walk, why),
        },
        _ => return None,
    })
}

fn find(walk: &Walk, asked: &search::Asked) -> CallOutcome {
    let index = walk.view.index(&walk.shared);
    let visibility = Visibility::new(&walk.active, &walk.caller);
    let may_see =
        |name: &str| index.tool(name).is_some_and(|it| visibility.effect(it) != Effect::Deny);
    let search = walk.view.search(&index);
    walk.view.count(&walk.shared, &index);
    let found = search.find(&asked.query, asked.limit, &may_see);
    let session = match walk.call.revision.era() {
        Era::Stateful => Some(format!("s{}", walk.caller.conversation)),
        // Anonymous callers share one identity: what one was sent, another may not have seen.
        Era::Stateless if walk.caller.name.is_none() => None,
        Era::Stateless => Some(format!("p{}", walk.caller.id)),
    };
    let session = session.as_deref();
    let result = walk
        .shared
        .seen(|seen| search::found(&index, &found, asked, (seen, session, Instant::now())));
    told(walk, result)
}

fn told(walk: &Walk, result: CallToolResult) -> CallOutcome {
    let extras = stateless::Extras::default();
    CallOutcome::Told(stateful::encode(result, walk.call.revision, &extras))
}
