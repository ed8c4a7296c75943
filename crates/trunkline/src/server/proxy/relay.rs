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
use tokio::time::{Instant, sleep};
use trunkline_proto::Attached;
use trunkline_transport::voice::Voice;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ElicitationCapability, InputRequest, ListRootsResult, Progress, Root, RootsCapability,
    SamplingCapability,
};

use super::{Going, PROGRESS_QUEUE};
use crate::ToolError;
use crate::client::{ASKED_DURING, CallError, Responder};
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

/// One connection to a remote server, and who calls through it.
#[derive(Default)]
pub(super) struct Switchboard(Mutex<Board>);

#[derive(Default)]
struct Board {
    /// The remote calls that are open.
    lines: HashMap<String, Arc<Line>>,
    callers: Callers,
}

/// Who has made calls so far.
#[derive(Default)]
enum Callers {
    #[default]
    Nobody,
    One(Who),
    Several,
}

/// What is attached to a remote call, and so to the questions that are known to belong to it.
struct LineName(String);

/// One remote call.
struct Line {
    caller: Who,
    state: Mutex<State>,
    news: Notify,
}

/// Who makes the local call.
#[derive(Clone)]
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
    /// Since when nobody attends to the line, and what ends it if nobody comes back.
    patience: Option<(Instant, AbortHandle)>,
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
        begin: impl FnOnce(Attached) -> Result<Going<T>, ToolError>,
    ) -> Result<Result<T, CallError>, ToolError> {
        let name: String = cx.once("relay", async || self.open(cx, begin)).await?;
        let line = lock(&self.0).lines.get(&name).cloned().ok_or_else(|| {
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
    fn open<T: Send + 'static>(
        &self,
        cx: &Context,
        begin: impl FnOnce(Attached) -> Result<Going<T>, ToolError>,
    ) -> Result<String, ToolError> {
        let caller = Who { principal: cx.principal().map(|it| it.id()), voice: cx.0.voice.clone() };
        self.make_room(&caller)?;
        let name = cx.0.server.sealer.random_name();
        let attached = Attached::new(LineName(name.clone()));
        let mut call = begin(attached.clone())?;
        let state = Mutex::default();
        let line = Arc::new(Line { caller: caller.clone(), state, news: Notify::new() });
        {
            // Before the call is made: its questions look here.
            let mut board = lock(&self.0);
            board.callers.add(caller);
            board.lines.insert(name.clone(), Arc::clone(&line));
        }
        let there = Arc::clone(&line);
        let work = ASKED_DURING.scope(attached, async move {
            loop {
                match call.next().await {
                    Ok(step) => there.tell(|it| it.step(step)),
                    Err(outcome) => {
                        return there.tell(|it| it.outcome = Some(Box::new(outcome)));
                    }
                }
            }
        });
        lock(&line.state).call = Some(tokio::spawn(work).abort_handle());
        Ok(name)
    }

    /// Gives up the oldest call that this caller has not come back to, if there are too many.
    fn make_room(&self, caller: &Who) -> Result<(), ToolError> {
        let oldest = {
            let board = lock(&self.0);
            if board.lines.len() < LEFT_BY_ONE {
                return Ok(());
            }
            let left = board.lines.iter().filter_map(|(name, it)| Some((it.left()?, name, it)));
            let left: Vec<_> = left.collect();
            let own: Vec<_> = left.iter().filter(|(.., it)| it.caller.is(caller)).collect();
            if own.len() < LEFT_BY_ONE {
                return match left.len() < LEFT_BY_ALL {
                    true => Ok(()),
                    false => Err(ToolError::new(
                        "Too many calls wait for answers of their callers. Try again later.",
                    )),
                };
            }
            own.into_iter().min_by_key(|(since, ..)| *since).map(|(_, name, _)| (*name).clone())
        };
        oldest.iter().for_each(|it| self.close(it));
        Ok(())
    }

    /// Asks whoever made the call that the question belongs to, if that is beyond doubt.
    fn put_through(
        &self,
        question: InputRequest,
    ) -> Result<oneshot::Receiver<Result<Json, ErrorObject>>, ErrorObject> {
        let board = lock(&self.0);
        let known = ASKED_DURING.try_with(|it| Some(it.get::<LineName>()?.0.clone()));
        let line = match (known, &board.callers) {
            (Ok(name), _) => name.and_then(|it| board.lines.get(&it)),
            // It may belong to a call that is over, so it does not help that only one is open.
            (Err(_), Callers::Several) => {
                return Err(ErrorObject::internal(
                    "several_callers",
                    "Several callers share this connection, and the question does not say which \
                     of them it is for.",
                ));
            }
            // Whichever call it belongs to: somebody has to be there to hear it.
            (Err(_), _) => {
                let open = board.lines.values().filter(|it| lock(&it.state).outcome.is_none());
                open.min_by_key(|it| it.left().is_some())
            }
        };
        let line = line.ok_or_else(nobody)?;
        if lock(&line.state).questions.len() >= QUESTIONS {
            return Err(ErrorObject::internal(
                "too_many_questions",
                format!("A caller is asked at most {QUESTIONS} questions in one call."),
            ));
        }
        let (tell, told) = oneshot::channel();
        line.tell(|it| it.questions.push((question, Some(tell))));
        Ok(told)
    }

    fn close(&self, name: &str) {
        let line = lock(&self.0).lines.remove(name);
        if let Some(line) = line {
            line.end();
        }
    }
}

impl Drop for Switchboard {
    fn drop(&mut self) {
        lock(&self.0).lines.values().for_each(|it| it.end());
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

    /// Since when nobody attends to it.
    fn left(&self) -> Option<Instant> {
        lock(&self.state).patience.as_ref().map(|(since, _)| *since)
    }

    fn be_patient(&self, patience: Option<AbortHandle>) {
        let patience = patience.map(|it| (Instant::now(), it));
        let before = std::mem::replace(&mut lock(&self.state).patience, patience);
        if let Some((_, before)) = before {
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

impl State {
    /// Notes progress. Nobody may be there to pass it on, and the last step says most.
    fn step(&mut self, step: Progress) {
        if self.progress.len() >= PROGRESS_QUEUE {
            self.progress.pop_front();
        }
        self.progress.push_back(step);
    }
}

impl Callers {
    fn add(&mut self, caller: Who) {
        *self = match std::mem::take(self) {
            Self::Nobody => Self::One(caller),
            Self::One(before) if before.is(&caller) => Self::One(before),
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

impl Who {
    /// Whether both are the same person, as far as that can be known.
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
        let voice = self.line.caller.voice.clone();
        let patience = runtime.spawn(async move {
            let end = Instant::now() + PATIENCE;
            while Instant::now() < end && !voice.is_deserted() {
                sleep(LOOK).await;
            }
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

/// How often to look whether the caller is still there.
const LOOK: Duration = Duration::from_secs(1);

/// A call that asks more than this is not one that anybody means.
const QUESTIONS: usize = 256;

/// How many calls may wait for one caller to come back. Their questions are open at the remote
/// server's end, which has room for few.
const LEFT_BY_ONE: usize = 16;

/// How many calls may wait for callers to come back.
const LEFT_BY_ALL: usize = 256;
