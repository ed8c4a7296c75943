//! A task's question → part of its state, or in 2025-11-25 a request of its own.

use std::sync::{Arc, Mutex, Weak};

use tokio::sync::oneshot;
use trunkline_transport::clock::now;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{InputRequest, Progress};
use trunkline_wire::revision::Revision;

use super::methods::ask_for_task;
use super::stamp::stamp;
use crate::server::Inner;
use crate::server::ask::{AskError, Key, question_params};
use crate::server::context::lock;
use crate::server::rounds::Notebook;

/// Asks questions on behalf of a task.
pub(in crate::server) struct TaskAsker {
    server: Weak<Inner>,
    task: String,
    wire: Option<(ConversationHandle, Revision)>,
    /// The answers and effects of the call, before and since it became a task.
    notebook: Arc<Mutex<Notebook>>,
}

impl TaskAsker {
    pub(super) fn new(server: &Arc<Inner>, task: &str, notebook: &Arc<Mutex<Notebook>>) -> Self {
        Self {
            server: Arc::downgrade(server),
            task: task.to_owned(),
            wire: None,
            notebook: Arc::clone(notebook),
        }
    }

    pub(super) fn on_the_wire(
        server: &Arc<Inner>,
        task: &str,
        notebook: &Arc<Mutex<Notebook>>,
        handle: &ConversationHandle,
        revision: Revision,
    ) -> Self {
        Self { wire: Some((handle.clone(), revision)), ..Self::new(server, task, notebook) }
    }

    pub(in crate::server) fn notebook(&self) -> &Mutex<Notebook> {
        &self.notebook
    }

    /// The answer to a question, if it arrived before the call became a task.
    pub(in crate::server) fn known(&self, key: &Key, request: &InputRequest) -> Option<Json> {
        lock(&self.notebook).known(key, request)
    }

    /// Saves the journal of the task to the store.
    pub(in crate::server) async fn keep(&self) -> Result<(), ErrorObject> {
        match self.server.upgrade() {
            Some(server) => server.keep_task(&self.task).await,
            None => Ok(()),
        }
    }

    /// Answers the call with the task now.
    pub(in crate::server) fn show(&self) {
        let Some(server) = self.server.upgrade() else { return };
        let told = lock(&server.tasks.register).tell(&self.task, now());
        if told.is_ok() {
            server.tasks.changed.notify_waiters();
        }
    }

    /// Shows progress in the task's state. Once the call is answered with the task, its requestor
    /// sees nothing else.
    pub(in crate::server) fn report(&self, progress: &Progress) {
        let Some(server) = self.server.upgrade() else { return };
        let said = lock(&server.tasks.register)
            .say(&self.task, progress.clone(), stamp())
            .map(|record| server.change(record));
        if let Ok(change) = said {
            server.task_changed(&change);
        }
    }

    pub(in crate::server) async fn ask(
        &self,
        key: &Key,
        request: InputRequest,
    ) -> Result<Json, AskError> {
        let server = self.server.upgrade().ok_or(AskError::Closed)?;
        match &self.wire {
            None => {
                let told = self.wait_for_answer(&server, key, request)?;
                server.keep_task(&self.task).await.map_err(AskError::Refused)?;
                server.announce(&self.task);
                drop(server);
                told.await.map_err(|_| AskError::Closed)
            }
            Some((handle, revision)) => {
                if let Some(answer) = self.note(&server, key, &request)? {
                    return Ok(answer);
                }
                server.announce(&self.task);
                let params = question_params(&server, request.clone(), *revision);
                let answer = ask_for_task(handle, &self.task, &request, params).await;
                self.remove_question(&server, key, answer.as_ref().ok());
                server.keep_task(&self.task).await.map_err(AskError::Refused)?;
                server.announce(&self.task);
                answer
            }
        }
    }

    /// Adds a question to the task's state, unless it already has an answer.
    fn note(
        &self,
        server: &Inner,
        key: &Key,
        request: &InputRequest,
    ) -> Result<Option<Json>, AskError> {
        lock(&server.tasks.register)
            .ask(&self.task, &key.text, request.clone(), stamp())
            .map_err(|_| AskError::Closed)
    }

    /// Removes a question from the task's state.
    fn remove_question(&self, server: &Inner, key: &Key, answer: Option<&Json>) {
        let mut register = lock(&server.tasks.register);
        // A task that has ended meanwhile has no questions.
        let _ = match answer {
            Some(answer) => {
                let mut answers = Object::default();
                answers.set(key.text.clone(), answer.clone());
                register.answer(&self.task, &answers, stamp()).map(drop)
            }
            None => register.withdraw(&self.task, &key.text, stamp()),
        };
    }

    /// Asks, and registers the receiver of the answer. A client may answer as soon as it sees the
    /// question, so both happen under the lock that answers are delivered under.
    fn wait_for_answer(
        &self,
        server: &Inner,
        key: &Key,
        request: InputRequest,
    ) -> Result<oneshot::Receiver<Json>, AskError> {
        let (tell, told) = oneshot::channel();
        let mut working = lock(&server.tasks.working);
        if let Some(answer) = self.note(server, key, &request)? {
            let _ = tell.send(answer);
            return Ok(told);
        }
        working.answers.insert((self.task.clone(), key.text.clone()), tell);
        Ok(told)
    }
}
