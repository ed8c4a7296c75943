//! Tasks that another replica holds: what is asked there for a client whose session is here, and the answers.

use std::future::poll_fn;
use std::pin::pin;

use bytes::Buf;
use http::{Extensions, Request};
use http_body::Body;
use serde::{Deserialize, Serialize};
use trunkline_wire::era::stateful;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::method::Method;
use trunkline_wire::model::Task;
use trunkline_wire::revision::Revision;

use super::list::PAGE;
use super::methods::cancel;
use crate::caller::{Caller, principal};
use crate::failure::{Failure, Reason, Stage};
use crate::gate::{CallFailure, Walk};
use crate::state::GatewayState;

/// What one replica asks another of the tasks of a principal, which the header of the request names.
#[derive(Serialize, Deserialize)]
enum Question {
    /// Those after this one.
    #[serde(rename = "list")]
    List { after: u64 },
    /// One of the methods of 2025-11-25 about one task.
    #[serde(rename = "one")]
    One { method: String, id: String, revision: String },
}

#[derive(Serialize, Deserialize)]
enum Answer {
    #[serde(rename = "tasks")]
    Tasks(Vec<(u64, Task)>),
    #[serde(rename = "told")]
    Told(Json),
    #[serde(rename = "error")]
    Error(ErrorObject),
}

/// The caller's tasks at another replica after `after`. One that is gone has none.
pub(super) async fn tasks_at(walk: &Walk, replica: &str, after: u64) -> Vec<(u64, Task)> {
    match ask(walk, replica, &Question::List { after }).await {
        Some(Answer::Tasks(tasks)) => tasks,
        _ => Vec::new(),
    }
}

/// Asks the replica that holds the task, if it is another and is there.
pub(super) async fn ask_holder(walk: &Walk) -> Result<Option<Json>, CallFailure> {
    let id = walk.call.params.get("taskId").and_then(|it| it.to::<String>().ok());
    let Some(id) = id else { return Ok(None) };
    let seals = &walk.shared.seals;
    let holder = seals.open_task(&id, &walk.caller.id).and_then(|it| it.replica);
    let Some(holder) = holder.filter(|it| seals.me() != Some(it)) else { return Ok(None) };
    let method = walk.call.method.method.name().to_owned();
    let revision = walk.call.revision.as_str().to_owned();
    match ask(walk, &holder, &Question::One { method, id, revision }).await {
        Some(Answer::Told(told)) => Ok(Some(told)),
        Some(Answer::Error(error)) => Err(error.into()),
        // It is gone, and the task with it.
        Some(Answer::Tasks(_)) | None => Ok(None),
    }
}

async fn ask(walk: &Walk, replica: &str, question: &Question) -> Option<Answer> {
    let sessions = walk.shared.settings.sessions.as_ref()?;
    let mut request = Request::post(PATH).body(()).ok()?;
    if let Some(principal) = principal(&walk.call.attached) {
        request.extensions_mut().insert(principal.clone());
    }
    let (head, ()) = request.into_parts();
    let body = serde_json::to_vec(question).ok()?;
    let response = sessions.answer_of(replica, &head, body.into()).await?;
    let (mut text, mut body) = (Vec::new(), pin!(response.into_body()));
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(mut data) = frame.ok()?.into_data() else { continue };
        text.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    serde_json::from_slice(&text).ok()
}

/// Answers another replica about the tasks of a principal that this one holds.
pub(crate) async fn answer_replica(
    shared: &GatewayState,
    extensions: &Extensions,
    question: &str,
) -> Vec<u8> {
    let caller = Caller::let_in(extensions);
    let answer = match serde_json::from_str(question) {
        Ok(Question::List { after }) => {
            let entries = shared.tasks.of(&caller, after);
            // One more tells that there is another page.
            let tasks = entries.iter().take(PAGE + 1).map(|it| (it.order(), it.task(true)));
            Answer::Tasks(tasks.collect())
        }
        Ok(Question::One { method, id, revision }) => {
            match about_one(shared, &caller, &method, &id, &revision).await {
                Ok(told) => Answer::Told(told),
                Err(error) => Answer::Error(error),
            }
        }
        Err(_) => Answer::Error(ErrorObject::invalid_params("This replica asks otherwise.")),
    };
    serde_json::to_vec(&answer).unwrap_or_default()
}

async fn about_one(
    shared: &GatewayState,
    caller: &Caller,
    method: &str,
    id: &str,
    revision: &str,
) -> Result<Json, ErrorObject> {
    let unknown = || {
        let failure = Failure::new(Reason::UnknownTask, Stage::Route, "There is no such task.");
        failure.to_error(&shared.next_trace().to_string())
    };
    let sealed = shared.seals.open_task(id, &caller.id).ok_or_else(unknown)?;
    let entry = shared.tasks.get(id).ok_or_else(unknown)?;
    let revision = Revision::parse(revision).ok_or_else(unknown)?;
    match Method::of(method) {
        Some(Method::TasksGet) => {
            entry.poll_now().await;
            Ok(stateful::encode_task(&entry.task(true)))
        }
        Some(Method::TasksCancel) => {
            cancel(&entry, &sealed.task, true).await.map_err(|failure| match failure {
                CallFailure::Server(error, _) | CallFailure::Plain(error) => *error,
                CallFailure::Here(failure) => failure.to_error(&shared.next_trace().to_string()),
            })
        }
        // Its questions wait for a client of this replica.
        Some(Method::TasksResult) => loop {
            let mut changed = pin!(entry.changed().notified());
            changed.as_mut().enable();
            if let Some(end) = entry.end() {
                return entry.outcome(end, revision);
            }
            changed.await;
        },
        _ => Err(ErrorObject::method_not_found(method)),
    }
}

/// The path of questions about tasks on the internal listener.
pub(crate) const PATH: &str = "/tasks";
