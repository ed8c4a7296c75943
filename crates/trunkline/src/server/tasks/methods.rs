//! The methods of tasks, in both generations.

use std::sync::Arc;

use trunkline_proto::Call;
use trunkline_proto::task::{Record, TaskError, Tasks};
use trunkline_transport::clock::now;
use trunkline_transport::conversation_handle::{ConversationHandle, Request};
use trunkline_transport::handler::Answer;
use trunkline_wire::era::stateful::{self, RequestMeta};
use trunkline_wire::era::{self, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{EmptyResult, InputRequest, ListParams, ListTasksResult, TaskParams};
use trunkline_wire::revision::Revision;

use super::{Inner, stamp, task_error};
use crate::caller::principal;
use crate::server::ask::AskError;
use crate::server::context::lock;

impl Inner {
    pub(in crate::server) fn on_task_method(self: &Arc<Self>, call: Call) -> Answer {
        let server = Arc::clone(self);
        match (&self.tasks.keeper, call.method.method) {
            (None, method) if method != Method::TasksResult => {
                Answer::Now(self.on_known_task(&call))
            }
            _ => Answer::later(async move { server.on_any_task(&call).await }),
        }
    }

    /// The methods on tasks that are all in this process.
    fn on_known_task(&self, call: &Call) -> Outcome {
        let core = call.revision.profile().tasks == era::Tasks::Core;
        match call.method.method {
            Method::TasksList => self.list_tasks(call),
            Method::TasksGet => self.get_task(&task_of(call)?, &owner(call), core),
            Method::TasksCancel => self.cancel_task(&task_of(call)?, &owner(call), core),
            Method::TasksUpdate => self.update_task(&task_of(call)?, call),
            other => Err(ErrorObject::method_not_found(other.name())),
        }
    }

    /// The same for tasks that may run elsewhere, or must be stored.
    async fn on_any_task(self: &Arc<Self>, call: &Call) -> Outcome {
        if call.method.method == Method::TasksList {
            self.find_tasks(true).await;
            return self.on_known_task(call);
        }
        let id = task_of(call)?;
        self.look_up(&id).await;
        if call.method.method == Method::TasksResult {
            return self.task_result(&id, call).await;
        }
        let changes = matches!(call.method.method, Method::TasksCancel | Method::TasksUpdate);
        if changes && self.is_elsewhere(&id) {
            let why = "The task runs in another process, which must be asked itself.";
            return Err(ErrorObject::internal("elsewhere", why));
        }
        let live = self.tasks.live(&id);
        let outcome = self.on_known_task(call)?;
        if changes && let Some(live) = live {
            // A stopped task is no longer among the running ones.
            let server = Arc::clone(self);
            let kept = async move { server.keep_now(&id, &live, None).await };
            self.run_detached(kept).await.transpose()?;
        }
        Ok(outcome)
    }

    fn is_elsewhere(&self, id: &str) -> bool {
        lock(&self.tasks.register).get(id, now()).is_ok_and(Record::is_elsewhere)
    }

    fn get_task(&self, id: &str, owner: &Owner, core: bool) -> Outcome {
        let mut register = lock(&self.tasks.register);
        let record = find(&mut register, id, owner)?;
        Ok(match core {
            true => stateful::encode_task_state(&record.core_task(), record.progress()),
            false => stateless::encode_task_detail(&self.detail(record), &self.extras(None)),
        })
    }

    fn list_tasks(&self, call: &Call) -> Outcome {
        let bad = || ErrorObject::invalid_params("The cursor is not one of this list.");
        let params: ListParams = call.params.to().map_err(|_| bad())?;
        let after = match self.open_cursor(params.cursor, call, "")? {
            Some(cursor) => cursor.parse().map_err(|_| bad())?,
            None => 0,
        };
        let owner = owner(call);
        let mut register = lock(&self.tasks.register);
        let (records, next) = register.list(owner.as_deref(), after, self.page, now());
        let mut list = ListTasksResult::new(records.iter().map(|it| it.core_task()).collect());
        list.next_cursor = self.seal_cursor(next.map(|it| it.to_string()), call, "");
        Ok(stateful::encode_task_list(&list))
    }

    fn cancel_task(&self, id: &str, owner: &Owner, core: bool) -> Outcome {
        let cancelled = {
            let mut register = lock(&self.tasks.register);
            find(&mut register, id, owner)?;
            register
                .cancel(id, stamp(), now())
                .map(|record| (record.core_task(), self.change(record)))
        };
        let task = match cancelled {
            Ok((task, change)) => {
                self.tasks.stop(id);
                self.task_changed(&change);
                task
            }
            // In the tasks extension, cancelling a finished task succeeds.
            Err(_) if !core => return Ok(self.encode(EmptyResult::new(), Revision::LATEST)),
            Err(error) => return Err(task_error(error)),
        };
        Ok(match core {
            true => stateful::encode_task(&task),
            false => self.encode(EmptyResult::new(), Revision::LATEST),
        })
    }

    fn update_task(&self, id: &str, call: &Call) -> Outcome {
        let responses = call
            .params
            .get("inputResponses")
            .and_then(|it| Object::parse(it.get()).ok())
            .ok_or_else(|| ErrorObject::invalid_params("`inputResponses` must be an object."))?;
        let (answers, change) = {
            let mut register = lock(&self.tasks.register);
            find(&mut register, id, &owner(call))?;
            let answers = register.answer(id, &responses, stamp()).map_err(task_error)?;
            let record = register.get(id, now()).map_err(task_error)?;
            (answers, self.change(record))
        };
        self.tasks.deliver(id, answers);
        self.task_changed(&change);
        Ok(self.encode(EmptyResult::new(), Revision::LATEST))
    }

    /// Waits for the end of a task and answers as the original call would have been answered.
    async fn task_result(self: &Arc<Self>, id: &str, call: &Call) -> Outcome {
        let owner = owner(call);
        let over = |record: &Record| match record.is_for(owner.as_deref()) {
            true => record.is_over().then(|| Ok(record.outcome().cloned())),
            false => Some(Err(TaskError::Unknown)),
        };
        let outcome = self.tasks.wait(self, id, over).await.flatten().map_err(task_error)?;
        match outcome {
            None => Err(ErrorObject::internal("cancelled", "The task was cancelled.")),
            Some(Err(error)) => Err(error),
            Some(Ok(mut result)) => {
                result.meta = related_to(id, result.meta.take());
                Ok(stateful::encode(result, call.revision, &self.extras(None)))
            }
        }
    }
}

/// The owner of a caller's tasks.
type Owner = Option<String>;

fn owner(call: &Call) -> Owner {
    principal(&call.attached).map(|it| it.id())
}

/// A task that belongs to the caller.
fn find<'a>(register: &'a mut Tasks, id: &str, owner: &Owner) -> Result<&'a Record, ErrorObject> {
    let record = register.get(id, now()).map_err(task_error)?;
    match record.is_for(owner.as_deref()) {
        true => Ok(record),
        false => Err(task_error(TaskError::Unknown)),
    }
}

fn task_of(call: &Call) -> Result<String, ErrorObject> {
    let params = call.params.to::<TaskParams>();
    params
        .map(|it| it.task_id)
        .map_err(|_| ErrorObject::invalid_params("`taskId` must be a string."))
}

/// Asks on behalf of a task of 2025-11-25: a separate request that names the task.
pub(super) async fn ask_for_task(
    handle: &ConversationHandle,
    task: &str,
    request: &InputRequest,
    mut params: Object,
) -> Result<Json, AskError> {
    if let Some(meta) = related_to(task, params.take("_meta")) {
        params.set("_meta", meta);
    }
    handle.ask(Request::new(request.method(), params)).await.map_err(AskError::from)
}

/// The `_meta` with the related task added.
fn related_to(task: &str, meta: Option<Json>) -> Option<Json> {
    let rest = meta.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
    RequestMeta { related_task: Some(task.to_owned()), rest, ..RequestMeta::default() }.to_json()
}
