//! A question of a task → part of its state, or in 2025-11-25 a request of its own.

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

/// Asks on behalf of a task.
pub(in crate::server) struct TaskAsker {
    server: Weak<Inner>,
    task: String,
    wire: Option<(ConversationHandle, Revision)>,
    /// What the call did before it became a task, and what the task has done since.
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
        voice: &ConversationHandle,
        revision: Revision,
    ) -> Self {
        Self { wire: Some((voice.clone(), revision)), ..Self::new(server, task, notebook) }
    }

    pub(in crate::server) fn notebook(&self) -> &Mutex<Notebook> {
        &self.notebook
    }

    /// The answer to a question, if it was given before the call became a task.
    pub(in crate::server) fn known(&self, key: &Key, request: &InputRequest) -> Option<Json> {
        lock(&self.notebook).known(key, request)
    }

    /// Keeps what the task has done so far where it outlives the process.
    pub(in crate::server) async fn keep(&self) -> Result<(), ErrorObject> {
        match self.server.upgrade() {
            Some(server) => server.keep_task(&self.task).await,
            None => Ok(()),
        }
    }

    /// Lets the requestor have the task now, whatever comes of it.
    pub(in crate::server) fn show(&self) {
        let Some(server) = self.server.upgrade() else { return };
        let told = lock(&server.tasks.register).tell(&self.task, now());
        if told.is_ok() {
            server.tasks.changed.notify_waiters();
        }
    }

    /// Shows progress as part of the task's state: once the call is answered with the task, its
    /// requestor has nothing else to look at.
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
            Some((voice, revision)) => {
                if let Some(answer) = self.note(&server, key, &request)? {
                    return Ok(answer);
                }
                server.announce(&self.task);
                let params = question_params(&server, request.clone(), *revision);
                let answer = ask_for_task(voice, &self.task, &request, params).await;
                self.settle(&server, key, answer.as_ref().ok());
                server.keep_task(&self.task).await.map_err(AskError::Refused)?;
                server.announce(&self.task);
                answer
            }
        }
    }

    /// Makes a question part of the task's state, unless it has been answered already.
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

    /// Takes a question out of the task's state again.
    fn settle(&self, server: &Inner, key: &Key, answer: Option<&Json>) {
        let mut register = lock(&server.tasks.register);
        // A task that is over meanwhile has no questions any more.
        let _ = match answer {
            Some(answer) => {
                let mut answers = Object::default();
                answers.set(key.text.clone(), answer.clone());
                register.answer(&self.task, &answers, stamp()).map(drop)
            }
            None => register.withdraw(&self.task, &key.text, stamp()),
        };
    }

    /// Asks, and makes the place for the answer. Whoever sees the question may answer at once, so the
    /// place for the answer is made under the same lock that answers are delivered under.
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
