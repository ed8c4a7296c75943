//! The methods of tasks, in both generations.

use std::sync::Arc;
use std::time::Instant;

use trunkline_proto::Call;
use trunkline_transport::handler::Answer;
use trunkline_transport::voice::{Request, Voice};
use trunkline_wire::era::stateful::{self, RequestMeta};
use trunkline_wire::era::{self, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::model::{EmptyResult, InputRequest, ListParams, ListTasksResult, TaskParams};
use trunkline_wire::revision::Revision;

use super::{AskError, Inner, stamp, task_error};
use crate::server::context::lock;

impl Inner {
    pub(in crate::server) fn on_task_method(self: &Arc<Self>, call: Call) -> Answer {
        if call.method.name == "tasks/list" {
            return Answer::Now(self.list_tasks(&call));
        }
        let id = match call.params.to::<TaskParams>() {
            Ok(params) => params.task_id,
            Err(_) => {
                return Answer::Now(Err(ErrorObject::invalid_params("`taskId` must be a string.")));
            }
        };
        let server = Arc::clone(self);
        let core = call.revision.profile().tasks == era::Tasks::Core;
        match call.method.name {
            "tasks/get" => Answer::Now(server.get_task(&id, core)),
            "tasks/cancel" => Answer::Now(server.cancel_task(&id, core)),
            "tasks/update" => Answer::Now(server.update_task(&id, &call.params)),
            "tasks/result" => {
                Answer::later(async move { server.task_result(&id, call.revision).await })
            }
            name => Answer::Now(Err(ErrorObject::method_not_found(name))),
        }
    }

    fn get_task(&self, id: &str, core: bool) -> Outcome {
        let mut register = lock(&self.tasks.register);
        let record = register.get(id, Instant::now()).map_err(task_error)?;
        Ok(match core {
            true => stateful::encode_task(&record.core_task()),
            false => stateless::encode_task_detail(&self.detail(record), &self.extras(None)),
        })
    }

    fn list_tasks(&self, call: &Call) -> Outcome {
        let bad = || ErrorObject::invalid_params("The cursor is not one of this list.");
        let params: ListParams = call.params.to().map_err(|_| bad())?;
        let after = match params.cursor {
            Some(cursor) => cursor.parse().map_err(|_| bad())?,
            None => 0,
        };
        let mut register = lock(&self.tasks.register);
        let (records, next) = register.list(after, self.page, Instant::now());
        let mut list = ListTasksResult::new(records.iter().map(|it| it.core_task()).collect());
        list.next_cursor = next.map(|it| it.to_string());
        Ok(stateful::encode_task_list(&list))
    }

    fn cancel_task(&self, id: &str, core: bool) -> Outcome {
        let cancelled = {
            let mut register = lock(&self.tasks.register);
            register.get(id, Instant::now()).map_err(task_error)?;
            register.cancel(id, stamp()).map(|record| (record.core_task(), self.change(record)))
        };
        let task = match cancelled {
            Ok((task, change)) => {
                self.tasks.stop(id);
                self.task_changed(&change);
                task
            }
            // The extension asks politely and takes "already over" for an answer.
            Err(_) if !core => return Ok(self.encode(EmptyResult::new(), Revision::LATEST)),
            Err(error) => return Err(task_error(error)),
        };
        Ok(match core {
            true => stateful::encode_task(&task),
            false => self.encode(EmptyResult::new(), Revision::LATEST),
        })
    }

    fn update_task(&self, id: &str, params: &Object) -> Outcome {
        let responses = params
            .get("inputResponses")
            .and_then(|it| Object::parse(it.get()).ok())
            .ok_or_else(|| ErrorObject::invalid_params("`inputResponses` must be an object."))?;
        let (answers, change) = {
            let mut register = lock(&self.tasks.register);
            register.get(id, Instant::now()).map_err(task_error)?;
            let answers = register.answer(id, &responses, stamp()).map_err(task_error)?;
            let record = register.get(id, Instant::now()).map_err(task_error)?;
            (answers, self.change(record))
        };
        self.tasks.deliver(id, answers);
        self.task_changed(&change);
        Ok(self.encode(EmptyResult::new(), Revision::LATEST))
    }

    /// Waits for the end of a task and answers as the call itself would have been answered.
    async fn task_result(&self, id: &str, revision: Revision) -> Outcome {
        let over = |record: &trunkline_proto::task::Record| {
            record.is_over().then(|| record.outcome().cloned())
        };
        let outcome = self.tasks.wait(id, over).await.map_err(task_error)?;
        match outcome {
            None => Err(ErrorObject::internal("cancelled", "The task was cancelled.")),
            Some(Err(error)) => Err(error),
            Some(Ok(mut result)) => {
                result.meta = related_to(id, result.meta.take());
                Ok(stateful::encode(result, revision, &self.extras(None)))
            }
        }
    }
}

/// Asks for a task of 2025-11-25: a request of its own that names the task.
pub(super) async fn ask_for_task(
    voice: &Voice,
    task: &str,
    request: &InputRequest,
    mut params: Object,
) -> Result<Json, AskError> {
    if let Some(meta) = related_to(task, params.take("_meta")) {
        params.set("_meta", meta);
    }
    voice.ask(Request::new(request.method(), params)).await.map_err(AskError::from)
}

/// The `_meta` that names a task, besides what it says already.
fn related_to(task: &str, meta: Option<Json>) -> Option<Json> {
    let rest = meta.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
    RequestMeta { related_task: Some(task.to_owned()), rest, ..RequestMeta::default() }.to_json()
}
