//! Questions to the client's user and model, as straight-line code in every revision.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use trunkline_proto::CallError;
use trunkline_transport::voice::Request;
use trunkline_wire::era::stateful::{self, Fit};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult,
    InputRequest, ListRootsResult, Root,
};
use trunkline_wire::revision::{Era, Revision};

use super::context::{Asker, lock};
use super::{Context, Inner};
use crate::schema;

/// What the user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// Answered it.
    Accept(T),
    /// Said no.
    Decline,
    /// Closed it without choosing.
    Cancel,
}

impl<T> Answer<T> {
    /// The answer, if there is one; `?` makes of the rest an error that the model reads.
    pub fn accepted(self) -> Result<T, Declined> {
        match self {
            Self::Accept(answer) => Ok(answer),
            Self::Decline | Self::Cancel => Err(Declined),
        }
    }
}

/// The user did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined;

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The user declined.")
    }
}

impl std::error::Error for Declined {}

/// Why a question could not be asked, or its answer not be used. Waiting for an answer is never
/// an error, so no `unwrap_or` can swallow a question.
#[derive(Clone, Debug, PartialEq)]
pub enum AskError {
    /// The client, or the revision it speaks, has no such questions.
    Unsupported {
        /// What it lacks.
        what: &'static str,
        /// What the caller is told in the newest revision.
        refusal: Option<ErrorObject>,
    },
    /// The question itself is wrong.
    Invalid(String),
    /// The client answered with an error.
    Refused(ErrorObject),
    /// The answer does not fit the question.
    Answer(String),
    /// Nobody answered in time.
    TimedOut,
    /// The conversation ended first.
    Closed,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { what, .. } => {
                write!(f, "This client cannot be asked: it lacks {what}.")
            }
            Self::Invalid(why) => write!(f, "The question is wrong: {why}"),
            Self::Refused(error) => write!(f, "The client refused to answer: {}", error.message),
            Self::Answer(why) => write!(f, "The answer does not fit the question: {why}"),
            Self::TimedOut => f.write_str("Nobody answered in time."),
            Self::Closed => f.write_str("The client hung up before it answered."),
        }
    }
}

impl std::error::Error for AskError {}

type Asking<T> = Pin<Box<dyn Future<Output = Result<Answer<T>, AskError>> + Send>>;

/// What a question is called.
pub(super) struct Key {
    pub(super) text: String,
    /// Whether the handler's author chose it, so that clients can know it.
    pub(super) is_chosen: bool,
}

/// A form for the user, to be awaited. Made by [`Context::ask`].
#[must_use = "a question is asked when it is awaited"]
pub struct Ask<T> {
    context: Context,
    key: Key,
    message: String,
    form: Option<Json>,
    answer: PhantomData<fn() -> T>,
}

impl<T> Ask<T> {
    pub(super) fn new(context: Context, message: String) -> Self {
        let key = context.next_question();
        Self { context, key, message, form: None, answer: PhantomData }
    }

    /// Names the question. By default questions are named by the order in which they are asked.
    /// A second one of the same name in one call is an [`AskError::Invalid`]. A client that knows
    /// the name may answer before it is asked.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Key { text: key.into(), is_chosen: true };
        self
    }

    /// Uses this form instead of the one that `T` gives, such as the JSON of a
    /// [`FormSchema`](trunkline_wire::model::FormSchema).
    pub fn form(mut self, form: impl Into<Json>) -> Self {
        self.form = Some(form.into());
        self
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> IntoFuture for Ask<T> {
    type Output = Result<Answer<T>, AskError>;
    type IntoFuture = Asking<T>;

    fn into_future(self) -> Asking<T> {
        Box::pin(async move {
            let form = self.form.map_or_else(schema::form::<T>, Ok);
            let form =
                form.map_err(|why| AskError::Invalid(format!("A form must be flat, but {why}.")))?;
            let request = InputRequest::Elicit(ElicitParams::form(self.message, form));
            let result: ElicitResult = self.context.question(self.key, request).await?;
            match (result.action, result.content) {
                (ElicitAction::Accept, content) => {
                    let content = content.unwrap_or_else(Json::empty_object);
                    let answer = content.to().map_err(|err| AskError::Answer(format!("{err}.")))?;
                    Ok(Answer::Accept(answer))
                }
                (ElicitAction::Decline, _) => Ok(Answer::Decline),
                (ElicitAction::Cancel, _) => Ok(Answer::Cancel),
            }
        })
    }
}

/// A URL for the user to visit, to be awaited. Made by [`Context::ask_url`].
#[must_use = "a question is asked when it is awaited"]
pub struct AskUrl {
    context: Context,
    key: Key,
    message: String,
    url: String,
}

impl AskUrl {
    pub(super) fn new(context: Context, message: String, url: String) -> Self {
        let key = context.next_question();
        Self { context, key, message, url }
    }

    /// Names the question.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Key { text: key.into(), is_chosen: true };
        self
    }
}

impl IntoFuture for AskUrl {
    type Output = Result<Answer<()>, AskError>;
    type IntoFuture = Asking<()>;

    fn into_future(self) -> Asking<()> {
        Box::pin(async move {
            let request = InputRequest::Elicit(ElicitParams::url(self.message, self.url));
            let result: ElicitResult = self.context.question(self.key, request).await?;
            Ok(match result.action {
                ElicitAction::Accept => Answer::Accept(()),
                ElicitAction::Decline => Answer::Decline,
                ElicitAction::Cancel => Answer::Cancel,
            })
        })
    }
}

/// A question to the client's model, to be awaited. Made by [`Context::sample`].
#[must_use = "a question is asked when it is awaited"]
pub struct AskModel {
    context: Context,
    key: Key,
    params: CreateMessageParams,
}

impl AskModel {
    pub(super) fn new(context: Context, params: CreateMessageParams) -> Self {
        let key = context.next_question();
        Self { context, key, params }
    }

    /// Names the question.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Key { text: key.into(), is_chosen: true };
        self
    }
}

impl IntoFuture for AskModel {
    type Output = Result<CreateMessageResult, AskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.params.check().map_err(|fault| AskError::Invalid(fault.to_string()))?;
            self.context.question(self.key, InputRequest::Sample(Box::new(self.params))).await
        })
    }
}

/// A question for the client's roots, to be awaited. Made by [`Context::roots`].
#[must_use = "a question is asked when it is awaited"]
pub struct AskRoots {
    context: Context,
    key: Key,
}

impl AskRoots {
    pub(super) fn new(context: Context) -> Self {
        let key = context.next_question();
        Self { context, key }
    }

    /// Names the question.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Key { text: key.into(), is_chosen: true };
        self
    }
}

impl IntoFuture for AskRoots {
    type Output = Result<Vec<Root>, AskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let result: ListRootsResult =
                self.context.question(self.key, InputRequest::Roots).await?;
            Ok(result.roots)
        })
    }
}

impl Context {
    /// Asks the client in the way its era has, and reads the answer.
    pub(super) async fn question<T: DeserializeOwned>(
        &self,
        key: Key,
        request: InputRequest,
    ) -> Result<T, AskError> {
        let refusal = self.refusal(&request);
        if refusal.is_some() {
            let what = match &request {
                InputRequest::Elicit(ElicitParams::Form(_)) => "form elicitation",
                InputRequest::Elicit(ElicitParams::Url(_)) => "URL elicitation",
                InputRequest::Sample(_) => "sampling",
                InputRequest::Roots => "roots",
            };
            let refusal = refusal.filter(|_| self.0.revision.era() == Era::Stateless);
            return Err(AskError::Unsupported { what, refusal });
        }
        stateful::can_ask(&request, self.0.revision.profile())
            .map_err(|unfit| AskError::Invalid(unfit.to_string()))?;
        self.claim(&key.text)?;
        let _waiting = self.wait_for_people();
        let answer = match &self.0.asker {
            Asker::Wire => self.ask_on_the_wire(request).await?,
            Asker::Task(task) => match task.known(&key, &request) {
                Some(answer) => answer,
                None => task.ask(&key, request).await?,
            },
            Asker::Rounds(notebook) => {
                let known = lock(notebook).answer_or_ask(&key, request);
                match known {
                    Some(answer) => answer,
                    // The dispatcher sees the new question, drops this handler and answers with
                    // it. The next round finds the answer above.
                    None => {
                        // Only a task that the handler spawned outlives it; it should end as well.
                        self.cancelled().await;
                        return Err(AskError::Closed);
                    }
                }
            }
        };
        answer.to().map_err(|err| AskError::Answer(format!("{err}.")))
    }

    async fn ask_on_the_wire(&self, request: InputRequest) -> Result<Json, AskError> {
        let method = request.method();
        let params = question_params(&self.0.server, request, self.0.revision);
        let request = Request { during: Some(self.0.key), ..Request::new(method, params) };
        self.0.voice.ask(request).await.map_err(AskError::from)
    }
}

/// The parameters of a question that is a request of its own.
pub(super) fn question_params(
    server: &Inner,
    mut request: InputRequest,
    revision: Revision,
) -> Object {
    if let InputRequest::Elicit(ElicitParams::Url(url)) = &mut request {
        // 2025-11-25 wants a name to refer to when the visit is over.
        url.elicitation_id = Some(server.sealer.random_name());
    }
    request.fit(revision.profile());
    request.params().and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default()
}

impl From<CallError> for AskError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Peer(error) | CallError::Refused(error) => Self::Refused(error),
            CallError::Invalid(why) => Self::Answer(why),
            CallError::TimedOut => Self::TimedOut,
            _ => Self::Closed,
        }
    }
}
