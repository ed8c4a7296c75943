//! Calls at an instance that lives at one replica for all: what is sent along to it, and the same call there.
//!
//! The replica that the client is connected to resolves and decides; the one that has the instance makes the call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_proto::{Attached, Call, CallError, Peer};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::Answer;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{TASKS_EXTENSION, meta};

use super::decide::Permit;
use super::{Walk, tasks};
use crate::call_record::{CallRecord, With};
use crate::caller::{Caller, principal};
use crate::catalog::plan::ServerPlan;
use crate::merge::{Item, Kind, Target};
use crate::placement::{FOR_CALLER, is_moved};
use crate::server::{Hop, Server, key_of, now};
use crate::state::{GatewayState, View};
use crate::upstream::Instance;

/// Since when the instance of a call has been looked for in vain.
#[derive(Default)]
pub(super) struct Moving(Option<Instant>);

/// Whether a replica took nothing of the call, because the instance is not there or nobody is.
pub(super) fn was_not_there(error: &CallError) -> bool {
    match error {
        CallError::Unreachable(_) | CallError::Credentials(_) => true,
        CallError::Peer(error) => is_moved(error),
        _ => false,
    }
}

impl Walk {
    /// A replica that left in good order had answered every call that it got, so it never got this one.
    pub(super) async fn or_unread(&self, error: CallError, instance: &Instance) -> CallError {
        let (CallError::Lost(why), Some(peer)) = (&error, &instance.peer) else { return error };
        let Some(sessions) = &self.shared.settings.sessions else { return error };
        match sessions.replicas().has_answered_all(peer).await {
            true => CallError::Unreachable(why.clone()),
            false => error,
        }
    }

    /// The instance is not where it was. Waits a moment, so that the call can look again; returns whether it may.
    pub(super) async fn moves(
        &self,
        server: &Server,
        plan: &ServerPlan,
        moving: &mut Moving,
    ) -> bool {
        let since = *moving.0.get_or_insert_with(now);
        let key = key_of(plan, &self.caller, self.call.meta.as_ref());
        server.forget_place(key.as_deref());
        let may_look = now().duration_since(since) < LOOKS_FOR;
        if may_look {
            tokio::time::sleep(PAUSE).await;
        }
        may_look
    }

    /// The `_meta` of a call for the replica that makes it: with the caller, sealed.
    pub(super) fn meta_for_replica(&self, server: &Server, peer: &str, meta: Option<Json>) -> Json {
        let known = meta.and_then(|it| Object::parse(it.get()).ok());
        let mut object = known.unwrap_or_default();
        if let Some(placement) = &server.placement {
            let sealed = placement.seal_caller(peer, principal(&self.call.attached));
            object.set(FOR_CALLER, Json::string(&sealed));
        }
        object.to_json()
    }
}

/// Makes a call that another replica has decided on, at the instance that lives here.
pub(crate) fn call_placed(
    shared: &Arc<GatewayState>,
    view: &Arc<View>,
    server: &str,
    mut call: Call,
    handle: &ConversationHandle,
) -> Answer {
    let active = shared.active_plan();
    let Some(server) = active.servers.get(server).cloned() else {
        return Answer::Now(Err(ErrorObject::invalid_params("That server is not in the catalog.")));
    };
    let Some(caller) = take_caller(&server, &mut call) else {
        return Answer::Now(Err(ErrorObject::invalid_params("No replica has sealed the caller.")));
    };
    call.attached = caller;
    if Kind::of_method(call.method.method).is_some() {
        let shared = Arc::clone(shared);
        return Answer::later(async move {
            if server.lists().is_none() {
                shared.refresh_here(&server, true).await;
            }
            // Who asks looks for them in the store, where they need not be yet.
            if let Some(lists) = server.lists() {
                shared.store_lists(&server.plan(), &lists).await;
            }
            Ok(Json::parse(NO_TOOLS).expect("this is JSON"))
        });
    }
    without_tasks(&mut call);
    let caller = Arc::new(Caller::of(&call, handle));
    let mut walk = Walk::new(shared, active, view, caller, call, handle);
    walk.hop = Hop::Done;
    Answer::later(walk.go_placed(server))
}

impl Walk {
    async fn go_placed(mut self, server: Arc<Server>) -> Outcome {
        // The replica that decided on the call records it.
        let with = With { audits: false, began: now(), span: None, recording: None };
        let own = self.shared.next_trace();
        let mut record = CallRecord::new(&self.call, own, with);
        let name = self.call.params.get("name").and_then(|it| it.to::<String>().ok());
        let name = name.unwrap_or_default();
        let lists = server.lists().filter(|_| self.call.method.method == Method::ToolsCall);
        let tool = lists.iter().flat_map(|it| &it.tools).find(|it| it.name == name).cloned();
        let item = tool.clone().map_or(Item::Unlisted, Item::Tool);
        let about = Target { server: Arc::clone(&server.name), name: name.into(), item };
        record.is(&Arc::new(about));
        let permit = Permit::decided_elsewhere(server);
        let result = match tool {
            Some(tool) => tasks::call(&mut self, &mut record, &permit, &tool).await,
            None => Box::pin(self.at(&mut record, &permit, false)).await,
        };
        self.tell(result, &record)
    }
}

/// Who the call is made for, as the other replica sealed it; `None` if none did.
fn take_caller(server: &Server, call: &mut Call) -> Option<Attached> {
    let mut object = Object::parse(call.meta.as_ref()?.get()).ok()?;
    let sealed: String = object.take(FOR_CALLER)?.to().ok()?;
    call.meta = Some(object.to_json());
    let principal = server.placement.as_ref()?.open_caller(&sealed)?;
    Some(principal.map_or_else(Attached::default, Attached::new))
}

/// The other replica makes a task of the call, if its client wants one. Here the call stays open until it ends.
fn without_tasks(call: &mut Call) {
    call.params.take("task");
    if !call.peer.client.extensions.contains_key(TASKS_EXTENSION) {
        return;
    }
    let mut peer = Peer::clone(&call.peer);
    peer.client.extensions.remove(TASKS_EXTENSION);
    let known = call.meta.as_ref().and_then(|it| Object::parse(it.get()).ok());
    let mut object = known.unwrap_or_default();
    object.set(meta::CLIENT_CAPABILITIES, Json::of(&peer.client));
    call.meta = Some(object.to_json());
    call.peer = Arc::new(peer);
}

/// What a replica is told that asked to list what the instance offers: the lists are in the store.
const NO_TOOLS: &str = r#"{"tools":[]}"#;
/// How long a call looks for an instance that moves.
const LOOKS_FOR: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
