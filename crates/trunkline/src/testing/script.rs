//! Scripted answers → a responder that gives them in order and records the questions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use trunkline_proto::Change;

use crate::ErrorObject;
use crate::client::{Question, Responder, Roots, Sampling};
use crate::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ElicitationCapability, LogMessage, Progress, Root, RootsCapability, SamplingCapability,
};

/// A scripted answer to a future question.
///
/// `From` conversions accept: `true` for a yes-or-no question, `json!({ … })` for a form.
///
/// ```
/// use trunkline::serde_json::json;
/// use trunkline::testing::Reply;
///
/// let replies = [json!({ "name": "Ada" }).into(), true.into(), Reply::decline()];
/// assert_eq!(replies[1], Reply::accept(true));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Reply(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Accept(Value),
    Defaults,
    Decline,
    Cancel,
}

impl Reply {
    /// The user accepts: see [`Question::accept`].
    ///
    /// ```
    /// use trunkline::testing::Reply;
    ///
    /// assert_eq!(Reply::accept(true), true.into());
    /// ```
    ///
    /// # Panics
    ///
    /// If `content` cannot be serialized as JSON.
    pub fn accept(content: impl Serialize) -> Self {
        Self(Kind::Accept(serde_json::to_value(content).expect("an answer that is JSON")))
    }

    /// The user presses Enter: see [`Question::accept_defaults`].
    ///
    /// ```
    /// use trunkline::testing::Reply;
    ///
    /// assert_ne!(Reply::defaults(), Reply::accept(true));
    /// ```
    pub fn defaults() -> Self {
        Self(Kind::Defaults)
    }

    /// The user says no.
    ///
    /// ```
    /// use trunkline::testing::Reply;
    ///
    /// assert_ne!(Reply::decline(), Reply::cancel());
    /// ```
    pub fn decline() -> Self {
        Self(Kind::Decline)
    }

    /// The user closes the question.
    ///
    /// ```
    /// use trunkline::testing::Reply;
    ///
    /// assert_ne!(Reply::cancel(), Reply::defaults());
    /// ```
    pub fn cancel() -> Self {
        Self(Kind::Cancel)
    }

    fn to(&self, question: &Question) -> Result<ElicitResult, ErrorObject> {
        match &self.0 {
            Kind::Accept(content) => question.accept(content),
            Kind::Defaults => question.accept_defaults(),
            Kind::Decline => question.decline(),
            Kind::Cancel => question.cancel(),
        }
    }
}

impl<T: Into<Value>> From<T> for Reply {
    fn from(content: T) -> Self {
        Self(Kind::Accept(content.into()))
    }
}

/// A model with scripted replies, which records the questions. Clones are the same model.
///
/// ```
/// use trunkline::testing::ScriptedModel;
///
/// let model = ScriptedModel::new(["Four.", "Still four."]);
/// assert!(model.asked().is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScriptedModel(Arc<Mutex<ModelState>>);

#[derive(Debug, Default)]
struct ModelState {
    replies: VecDeque<CreateMessageResult>,
    asked: Vec<CreateMessageParams>,
}

impl ScriptedModel {
    /// A model that replies with these texts.
    ///
    /// ```
    /// use trunkline::testing::ScriptedModel;
    ///
    /// let model = ScriptedModel::new(["Four.", "Still four."]);
    /// assert!(model.asked().is_empty());
    /// ```
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let model = Self::default();
        texts.into_iter().for_each(|text| {
            let content = crate::model::Content::text(text);
            model.push(CreateMessageResult::new(content, "scripted-model").stop_reason("endTurn"));
        });
        model
    }

    /// Adds a reply after the others, for example with tool uses or more than one block.
    ///
    /// ```
    /// use trunkline::model::{Content, CreateMessageResult, ToolUseContent};
    /// use trunkline::{RawJson, testing::ScriptedModel};
    ///
    /// let call = ToolUseContent::new("1", "now", RawJson::empty_object());
    /// let reply = CreateMessageResult::new(Content::ToolUse(call), "me").stop_reason("toolUse");
    /// let model = ScriptedModel::new(["Let me look."]).then(reply);
    /// assert!(model.asked().is_empty());
    /// ```
    #[must_use]
    pub fn then(self, reply: CreateMessageResult) -> Self {
        self.push(reply);
        self
    }

    /// The questions so far.
    ///
    /// ```
    /// # use trunkline::{*, model::*, testing::*};
    /// # async fn sum(cx: Context) -> Result<String, ToolError> {
    /// #     let params = CreateMessageParams::new(vec![SamplingMessage::user("2 + 2?")], 10);
    /// #     Ok(cx.sample(params).await?.text())
    /// # }
    /// # let server = || Server::builder("sum", "1.0.0").tool(tool("sum", sum)).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     let model = ScriptedModel::new(["Four."]);
    ///     peer.model(model.clone());
    ///     peer.call_tool("sum", ()).await.unwrap();
    ///     assert_eq!(model.asked()[0].max_tokens, 10);
    /// });
    /// ```
    pub fn asked(&self) -> Vec<CreateMessageParams> {
        lock(&self.0).asked.clone()
    }

    fn push(&self, reply: CreateMessageResult) {
        lock(&self.0).replies.push_back(reply);
    }

    fn ask(&self, params: CreateMessageParams) -> Option<CreateMessageResult> {
        let mut state = lock(&self.0);
        state.asked.push(params);
        state.replies.pop_front()
    }

    fn left(&self) -> usize {
        lock(&self.0).replies.len()
    }
}

/// The script of a test's client, and the record of what it saw.
#[derive(Debug)]
pub(super) struct ScriptedResponder {
    script: Mutex<Script>,
    pub(super) roots: Roots,
}

#[derive(Debug, Default)]
struct Script {
    replies: VecDeque<Reply>,
    model: ScriptedModel,
    questions: Vec<Question>,
    logs: Vec<LogMessage>,
    progress: Vec<Progress>,
    changes: Vec<Change>,
    /// The first deviation from the script.
    fault: Option<String>,
}

impl ScriptedResponder {
    pub(super) fn new() -> Self {
        Self { script: Mutex::default(), roots: Roots::new([]) }
    }

    pub(super) fn answers(&self, replies: impl IntoIterator<Item = Reply>) {
        lock(&self.script).replies.extend(replies);
    }

    pub(super) fn model(&self, model: ScriptedModel) {
        lock(&self.script).model = model;
    }

    pub(super) fn questions(&self) -> Vec<Question> {
        lock(&self.script).questions.clone()
    }

    pub(super) fn logs(&self) -> Vec<LogMessage> {
        lock(&self.script).logs.clone()
    }

    pub(super) fn progress(&self) -> Vec<Progress> {
        lock(&self.script).progress.clone()
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        lock(&self.script).changes.clone()
    }

    pub(super) fn progressed(&self, progress: &Progress) {
        lock(&self.script).progress.push(progress.clone());
    }

    /// The deviation from the script, in a sentence.
    pub(super) fn fault(&self) -> Option<String> {
        let script = lock(&self.script);
        let left = |count: usize, what: &str| {
            (count > 0)
                .then(|| format!("{count} of the {what} given to the peer were not asked for."))
        };
        script
            .fault
            .clone()
            .or_else(|| left(script.replies.len(), "answers"))
            .or_else(|| left(script.model.left(), "model's replies"))
    }

    fn went_wrong(&self, why: String) -> ErrorObject {
        let error = ErrorObject::internal("testing", why.clone());
        lock(&self.script).fault.get_or_insert(why);
        error
    }
}

impl Responder for ScriptedResponder {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::new()
            .elicitation(ElicitationCapability::BOTH)
            .sampling(SamplingCapability::new().tools(true).context(true))
            .roots(RootsCapability::new(true))
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        let question = Question::new(params, None);
        let reply = {
            let mut script = lock(&self.script);
            script.questions.push(question.clone());
            script.replies.pop_front()
        };
        match reply {
            Some(reply) => reply.to(&question),
            None => Err(self.went_wrong(format!(
                "The server asked `{}`, to which there is no answer; give one with \
                 `peer.answers([…])`.",
                question.message()
            ))),
        }
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        let request = Sampling::new(params, None);
        let text = request.text();
        let model = lock(&self.script).model.clone();
        model.ask(request.into_params()).ok_or_else(|| {
            self.went_wrong(format!(
                "The server asked the model `{text}`, to which there is no reply; give one with \
                 `peer.model(ScriptedModel::new([…]))`."
            ))
        })
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        Ok(self.roots.get())
    }

    fn on_log(&self, message: LogMessage) {
        lock(&self.script).logs.push(message);
    }

    fn on_change(&self, change: &Change) {
        lock(&self.script).changes.push(change.clone());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
