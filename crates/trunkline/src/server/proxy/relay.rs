//! Questions of a remote server → whoever makes the local call, in the way that call has.
//!
//! The remote call runs by itself, on a line of the switchboard; the local handler attends to it.
//! Where the handler is dropped to ask (2026-07-28), the line waits for it to come back.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use trunkline_transport::voice::Voice;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ElicitationCapability, InputRequest, ListRootsResult, Progress, Root, RootsCapability,
    SamplingCapability,
};

use super::Going;
use crate::ToolError;
use crate::client::{CallError, Responder};
use crate::server::ask::AskError;
use crate::server::context::{Asker, Context, lock};

/// Answers what a remote server asks by asking the caller of the local one. Made by
/// [`relay`](super::relay), which hands it over in a builder.
///
/// ```
/// use trunkline::client::{Client, ClientBuilder, Command, ConnectError};
/// use trunkline::server::Relay;
///
/// async fn connect(builder: ClientBuilder<Relay>) -> Result<Client, ConnectError> {
///     builder.connect(Command::new("crm")).await
/// }
/// ```
#[derive(Clone)]
pub struct Relay(Weak<Switchboard>);

impl Relay {
    pub(super) fn new(board: &Arc<Switchboard>) -> Self {
        Self(Arc::downgrade(board))
    }

    async fn ask<T: DeserializeOwned>(&self, question: InputRequest) -> Result<T, ErrorObject> {
        let told = self.0.upgrade().ok_or_else(nobody)?.put_through(question)?;
        let answer = told.await.map_err(|_| nobody())??;
        answer.to().map_err(|error| {
            ErrorObject::internal("relay", format!("The answer cannot be read: {error}."))
        })
    }
}

impl Responder for Relay {
    fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::new();
        capabilities.elicitation = Some(ElicitationCapability::BOTH);
        capabilities.sampling = Some(SamplingCapability::new().tools(true));
        capabilities.roots = Some(RootsCapability::new(false));
        capabilities
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        self.ask(InputRequest::Elicit(params)).await
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        self.ask(InputRequest::Sample(Box::new(params))).await
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        Ok(self.ask::<ListRootsResult>(InputRequest::Roots).await?.roots)
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

/// The remote calls that are open.
#[derive(Default)]
pub(super) struct Switchboard(Mutex<HashMap<String, Arc<Line>>>);

/// One remote call.
struct Line {
    caller: Who,
    state: Mutex<State>,
    news: Notify,
}

/// Who makes the local call.
struct Who {
    principal: Option<String>,
    voice: Voice,
}

#[derive(Default)]
struct State {
    progress: VecDeque<Progress>,
    /// In the order they were asked: a handler that runs again meets them again.
    questions: Vec<(InputRequest, Option<Tell>)>,
    /// A `Result<T, CallError>`.
    outcome: Option<Box<dyn Any + Send>>,
    call: Option<AbortHandle>,
    /// Ends the line, if nobody comes back to it.
    patience: Option<AbortHandle>,
}

type Tell = oneshot::Sender<Result<Json, ErrorObject>>;

/// What happens on a line.
enum Event {
    Progress(Progress),
    Question(InputRequest),
    Done(Box<dyn Any + Send>),
}

impl Switchboard {
    /// Makes a remote call, or goes on with the one of an earlier round, and asks the caller what
    /// it asks.
    pub(super) async fn attend<T: Send + 'static>(
        self: &Arc<Self>,
        cx: &Context,
        call: Going<T>,
    ) -> Result<Result<T, CallError>, ToolError> {
        let name: String =
            cx.once("relay", async || Ok::<_, ToolError>(self.open(cx, call))).await?;
        let line = lock(&self.0).get(&name).cloned().ok_or_else(|| {
            ToolError::new("The call took too long to be answered and was given up. Make it again.")
        })?;
        line.be_patient(None);
        let is_dropped_to_ask = matches!(cx.0.asker, Asker::Rounds(_));
        let mut here = Attending { board: self, name, line: &line, stays: false };
        let mut asked = 0;
        loop {
            match line.next(asked).await {
                Event::Progress(step) => cx.report(step).await,
                Event::Question(question) => {
                    here.stays = is_dropped_to_ask;
                    let answer = cx.question::<Json>(cx.next_question(), question).await;
                    here.stays = false;
                    let answer = match answer {
                        Ok(answer) => Ok(answer),
                        Err(error) => Err(refusal(error)?),
                    };
                    line.answer(asked, answer);
                    asked += 1;
                }
                Event::Done(outcome) => {
                    let outcome = outcome.downcast().map_err(|_| {
                        ToolError::rpc(ErrorObject::internal("relay", "The call was another one."))
                    })?;
                    return Ok(*outcome);
                }
            }
        }
    }

    /// Begins a remote call.
    fn open<T: Send + 'static>(&self, cx: &Context, mut call: Going<T>) -> String {
        let name = cx.0.server.sealer.random_name();
        let caller = Who { principal: cx.principal().map(|it| it.id()), voice: cx.0.voice.clone() };
        let line = Arc::new(Line { caller, state: Mutex::default(), news: Notify::new() });
        let there = Arc::clone(&line);
        let work = tokio::spawn(async move {
            loop {
                match call.next().await {
                    Ok(step) => there.tell(|it| it.progress.push_back(step)),
                    Err(outcome) => {
                        return there.tell(|it| it.outcome = Some(Box::new(outcome)));
                    }
                }
            }
        });
        lock(&line.state).call = Some(work.abort_handle());
        lock(&self.0).insert(name.clone(), line);
        name
    }

    /// Asks whoever has a call open, if that is beyond doubt.
    fn put_through(
        &self,
        question: InputRequest,
    ) -> Result<oneshot::Receiver<Result<Json, ErrorObject>>, ErrorObject> {
        let lines = lock(&self.0);
        let is_open = |it: &&Arc<Line>| lock(&it.state).outcome.is_none();
        let line = lines.values().find(is_open).ok_or_else(nobody)?;
        if !lines.values().all(|it| it.caller.is(&line.caller)) {
            return Err(ErrorObject::internal(
                "relay",
                "Several callers have calls open, and the question does not say which of them it \
                 is for.",
            ));
        }
        let (tell, told) = oneshot::channel();
        line.tell(|it| it.questions.push((question, Some(tell))));
        Ok(told)
    }

    fn close(&self, name: &str) {
        let line = lock(&self.0).remove(name);
        if let Some(line) = line {
            line.end();
        }
    }
}

impl Drop for Switchboard {
    fn drop(&mut self) {
        lock(&self.0).values().for_each(|it| it.end());
    }
}

impl Line {
    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.news.notify_waiters();
    }

    /// What comes next for a handler that has seen so many questions answered.
    async fn next(&self, asked: usize) -> Event {
        loop {
            let mut news = pin!(self.news.notified());
            // Listen before looking, so that nothing falls in between.
            news.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if let Some(step) = state.progress.pop_front() {
                    return Event::Progress(step);
                }
                if let Some((question, _)) = state.questions.get(asked) {
                    return Event::Question(question.clone());
                }
                if let Some(outcome) = state.outcome.take() {
                    return Event::Done(outcome);
                }
            }
            news.await;
        }
    }

    /// Answers a question, unless that was done in an earlier round.
    fn answer(&self, which: usize, answer: Result<Json, ErrorObject>) {
        let tell = lock(&self.state).questions.get_mut(which).and_then(|(_, tell)| tell.take());
        if let Some(tell) = tell {
            // The remote server may have given up meanwhile.
            let _ = tell.send(answer);
        }
    }

    fn be_patient(&self, patience: Option<AbortHandle>) {
        let before = std::mem::replace(&mut lock(&self.state).patience, patience);
        if let Some(before) = before {
            before.abort();
        }
    }

    fn end(&self) {
        self.be_patient(None);
        let mut state = lock(&self.state);
        // To drop the call is to cancel it on the wire.
        if let Some(call) = state.call.take() {
            call.abort();
        }
        state.questions.clear();
    }
}

impl Who {
    fn is(&self, other: &Self) -> bool {
        match (&self.principal, &other.principal) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.voice.is(&other.voice),
            _ => false,
        }
    }
}

/// A handler at its line.
struct Attending<'a> {
    board: &'a Arc<Switchboard>,
    name: String,
    line: &'a Arc<Line>,
    /// Whether it is about to be dropped to ask, and comes back with the answer.
    stays: bool,
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        let Some(runtime) = Handle::try_current().ok().filter(|_| self.stays) else {
            return self.board.close(&self.name);
        };
        let (board, name) = (Arc::downgrade(self.board), self.name.clone());
        let patience = runtime.spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            if let Some(board) = board.upgrade() {
                board.close(&name);
            }
        });
        self.line.be_patient(Some(patience.abort_handle()));
    }
}

/// What a question that could not be asked comes to: the end of the local call where its revision
/// wants that, or an answer for the remote server.
fn refusal(error: AskError) -> Result<ErrorObject, ToolError> {
    match error {
        AskError::Unsupported { refusal: Some(_), .. } => Err(ToolError::from(error)),
        AskError::Refused(error) => Ok(error),
        error => Ok(ErrorObject::internal("relay", error.to_string())),
    }
}

fn nobody() -> ErrorObject {
    ErrorObject::internal("relay", "Nobody has a call open who could be asked.")
}

/// How long the caller's user may think about a question: as long as the state of the call lives.
const PATIENCE: Duration = Duration::from_secs(600);
