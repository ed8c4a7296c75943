//! What binds calls to an instance of a stateful server. Pure.

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;

use crate::caller::Caller;
use crate::catalog::plan::{Affinity, ServerPlan, Strategy};

/// The affinity key of a caller at a stateful server.
pub(crate) fn key_of(plan: &ServerPlan, caller: &Caller, meta: Option<&Json>) -> Option<Box<str>> {
    if plan.strategy != Strategy::Stateful {
        return None;
    }
    Some(match &plan.affinity {
        Affinity::Session if caller.has_session => session_key(caller.conversation),
        Affinity::Session | Affinity::Principal => format!("p{}", caller.id).into(),
        Affinity::Meta(name) => {
            let meta = meta.and_then(|it| Object::parse(it.get()).ok());
            let value = meta.and_then(|it| it.get(name).map(|it| it.get().to_owned()));
            // A key that a client chooses is scoped to its principal.
            format!("m{}\0{}", caller.id, value.unwrap_or_default()).into()
        }
    })
}

/// The affinity key of a session.
pub(crate) fn session_key(conversation: u64) -> Box<str> {
    format!("s{conversation}").into()
}
