//! Questions from 2026-07-28 on: the handler runs until it asks, is dropped, and runs again with
//! the answers. The client carries the sealed journal in `requestState`.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker, ready};
use std::time::{Duration, SystemTime};

use trunkline_proto::Call;
use trunkline_proto::input_required::Journal;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, FirstPoll};
use trunkline_wire::era::stateless::{self, Extras};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Gate;
use trunkline_wire::model::{ElicitParams, InputRequest, InputRequired, TaskRequest};

use super::Inner;
use super::ask::Key;
use super::context::{Asker, Context, lock};
use super::job::{Job, Running, Target};

/// The journal of a running handler, and the questions of this run.
#[derive(Default)]
pub(super) struct Notebook {
    journal: Journal,
    new: Questions,
    logged: u64,
    /// A second run that only checks the first: it sends nothing and has no effects.
    silent: bool,
    /// Effects in flight, by key. No question is sent before they end: otherwise the handler would
    /// be dropped in the middle of them, and the next run would begin them again.
    effects: BTreeSet<String>,
    /// Whether a silent run has reached an effect, which it must not have.
    held: bool,
    /// Whether a silent run, which sends nothing and has no effects, still had to wait.
    waited: bool,
    /// Whether the rest may run as a task.
    may_leave: bool,
    left: bool,
    /// Whether the run is over. Tasks that it spawned begin no effect after that.
    over: bool,
    dispatcher: Option<Waker>,
}

/// The state of an effect.
pub(super) enum Effect<'a> {
    /// It happened in an earlier run, with this result.
    Done(Json),
    /// It runs now; drop the guard when it is done.
    Now(RunningEffect<'a>),
    /// It must not happen in this run.
    Held,
    /// An effect with the same key is running.
    Twice,
}

/// A running effect.
pub(super) struct RunningEffect<'a> {
    notebook: &'a Mutex<Notebook>,
    key: String,
}

impl Drop for RunningEffect<'_> {
    fn drop(&mut self) {
        let mut notebook = lock(self.notebook);
        notebook.effects.remove(&self.key);
        notebook.wake();
    }
}

/// Begins an effect, unless it has happened already or must not.
pub(super) fn begin<'a>(notebook: &'a Mutex<Notebook>, key: &str) -> Effect<'a> {
    let mut open = lock(notebook);
    if let Some(result) = open.journal.done(key) {
        return Effect::Done(result.clone());
    }
    if open.silent || open.over {
        open.held = open.silent;
        open.wake();
        return Effect::Held;
    }
    match open.effects.insert(key.to_owned()) {
        true => Effect::Now(RunningEffect { notebook, key: key.to_owned() }),
        false => Effect::Twice,
    }
}

impl Notebook {
    /// A notebook for a call that continues after these rounds.
    pub(super) fn of(journal: Journal) -> Self {
        Self::new(journal, false, false)
    }

    /// With every field, so that nothing is made only to be replaced.
    fn new(journal: Journal, silent: bool, may_leave: bool) -> Self {
        Self {
            journal,
            new: Vec::new(),
            logged: 0,
            silent,
            effects: BTreeSet::new(),
            held: false,
            waited: false,
            may_leave,
            left: false,
            over: false,
            dispatcher: None,
        }
    }

    /// The answers and effects so far.
    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The answer to a question, if an earlier round has it.
    pub(super) fn known(&self, key: &Key, request: &InputRequest) -> Option<Json> {
        self.journal.answer(&key.text, &Json::of(request)).cloned()
    }

    /// Requests that the rest run as a task. Returns whether it will.
    pub(super) fn leave(&mut self) -> bool {
        self.left = self.may_leave;
        self.wake();
        self.left
    }

    /// The answer to a question; or `None`, and the question is recorded.
    pub(super) fn answer_or_ask(&mut self, key: &Key, request: InputRequest) -> Option<Json> {
        let question = Json::of(&request);
        if key.is_chosen {
            self.journal.take_offer(&key.text, &question);
        }
        let key = &key.text;
        if let Some(answer) = self.journal.answer(key, &question) {
            return Some(answer.clone());
        }
        if !self.new.iter().any(|(name, _)| name == key) {
            self.journal.ask(key, question);
            self.new.push((key.clone(), request));
        }
        self.wake();
        None
    }

    pub(super) fn is_new_progress(&mut self, progress: f64) -> bool {
        self.journal.is_new_progress(progress) && !self.silent
    }

    /// Whether this log message or change is sent for the first time. Every run sends them in the
    /// same order.
    pub(super) fn is_first_time(&mut self) -> bool {
        self.logged += 1;
        let is_new = self.logged > self.journal.logs();
        if is_new {
            self.journal.set_logs(self.logged);
        }
        is_new && !self.silent
    }

    pub(super) fn note(&mut self, key: &str, result: Json) {
        self.journal.note(key, result);
    }

    /// Whether the run of a waiting handler is over: it has asked or wants to become a task, and no
    /// effect is half done.
    fn is_over(&mut self) -> bool {
        let has_said = self.left || !self.new.is_empty();
        self.over = self.held || (has_said && self.effects.is_empty());
        self.over
    }

    fn wake(&mut self) {
        if let Some(dispatcher) = self.dispatcher.take() {
            dispatcher.wake();
        }
    }
}

/// How a run of a handler ended that has no outcome.
enum Ended {
    Asked {
        questions: Questions,
        journal: Journal,
        held: bool,
        waited: bool,
    },
    /// The rest shall run as a task.
    Left(Journal),
}

type Questions = Vec<(String, InputRequest)>;

/// Answers one request of 2026-07-28 with the result or with questions.
pub(super) fn answer(
    mut call: Call,
    handle: &ConversationHandle,
    job: Job,
    first: &mut FirstPoll<'_, '_>,
) -> Answer {
    let journal = match journal(&mut call, &job) {
        Ok(journal) => journal,
        Err(error) => return Answer::Now(Err(error)),
    };
    first.answer(|| {
        let run = Run::start(&call, handle, job, journal.as_ref(), false);
        Answering { run: Some((run, call)), rest: None }
    })
}

/// The answers and effects that the client carries, if it carries any.
fn journal(call: &mut Call, job: &Job) -> Result<Option<Journal>, ErrorObject> {
    let state = call.params.take("requestState");
    let responses = call.params.take("inputResponses");
    if state.is_none() && responses.is_none() {
        return Ok(None);
    }
    let responses = responses.map(|it| read_responses(&it)).transpose()?.unwrap_or_default();
    let mut journal = Journal::default();
    match state {
        Some(state) => {
            journal = open(&job.server, &state, &job.bound_to(call))?;
            journal.take_answers(responses);
        }
        None => journal.offer(responses),
    }
    Ok(Some(journal))
}

/// A call at work: its handler, and whatever follows. Most calls end with their handler, and are no larger than it.
struct Answering {
    run: Option<(Run, Call)>,
    rest: Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
}

impl Future for Answering {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
        let this = &mut *self;
        if let Some((run, _)) = &mut this.run {
            let ended = ready!(run.poll(cx));
            let (run, call) = this.run.take().expect("it was there just now");
            match ended {
                Ok(outcome) => return Poll::Ready(outcome),
                Err(context) => this.rest = Some(Box::pin(ask(run, context, call))),
            }
        }
        match &mut this.rest {
            Some(rest) => rest.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

/// Answers a call whose handler has asked or wants to become a task.
async fn ask(run: Run, context: Context, call: Call) -> Outcome {
    let (job, handle) = (run.handler.job().clone(), context.0.handle.clone());
    let server = Arc::clone(&job.server);
    let (questions, mut journal) = match run.ended(&context) {
        Ended::Left(journal) => {
            let task = TaskRequest::new();
            return match server.start_task(task, call, handle, job, Some(journal)) {
                Answer::Now(outcome) => outcome,
                Answer::Later(outcome) => outcome.await,
            };
        }
        Ended::Asked { questions, journal, .. } => (questions, journal),
    };
    if cfg!(debug_assertions) {
        check_again(&call, &handle, &job, &questions, journal.clone()).await?;
    }
    if journal.next_round() > server.limits.input_rounds {
        return Err(ErrorObject::internal("rounds", "The call asked too many questions."));
    }
    let sealed = seal(&server, &journal, &job.bound_to(&call))?;
    let required = InputRequired::new(questions).state(sealed);
    let extras = Extras { cache: None, server_info: Some(&server.info) };
    Ok(stateless::encode_input_required(&required, &extras))
}

/// A handler that runs until it is done or has asked.
struct Run {
    handler: Running,
    silent: bool,
}

impl Run {
    fn start(
        call: &Call,
        handle: &ConversationHandle,
        job: Job,
        journal: Option<&Journal>,
        silent: bool,
    ) -> Self {
        let handler = job.start(call.revision, &|job| {
            let may_leave = matches!(job.target, Target::Tool(_))
                && job.server.core.capabilities.supports(Gate::TasksExtension)
                && call.peer.client.supports(Gate::TasksExtension);
            let notebook = Notebook::new(journal.cloned().unwrap_or_default(), silent, may_leave);
            Context::new(&job.server, call, handle, Asker::Rounds(notebook.into()))
        });
        Self { handler, silent }
    }

    /// The outcome of the handler; or its context, if it is over because it has asked.
    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<Outcome, Context>> {
        if let Poll::Ready(outcome) = Pin::new(&mut self.handler).poll(cx) {
            return Poll::Ready(Ok(outcome));
        }
        let Some(context) = self.handler.context() else { return Poll::Pending };
        // What is said from here on wakes this task; what was said before is seen under the same lock.
        let mut notebook = lock(context.0.asker.notebook());
        if notebook.is_over() {
            drop(notebook);
            return Poll::Ready(Err(context.clone()));
        }
        notebook.dispatcher = Some(cx.waker().clone());
        notebook.waited = self.silent;
        Poll::Pending
    }

    /// How a handler ended that has no outcome.
    fn ended(self, context: &Context) -> Ended {
        drop(self.handler);
        let mut notebook = lock(context.0.asker.notebook());
        let questions = std::mem::take(&mut notebook.new);
        let journal = notebook.journal.clone();
        match questions.is_empty() && notebook.left {
            true => Ended::Left(journal),
            false => {
                let Notebook { held, waited, .. } = *notebook;
                Ended::Asked { questions, journal, held, waited }
            }
        }
    }
}

/// Runs each round twice in debug builds: a handler whose questions depend on more than its
/// arguments and earlier answers fails in tests, not in production.
async fn check_again(
    call: &Call,
    handle: &ConversationHandle,
    job: &Job,
    questions: &[(String, InputRequest)],
    journal: Journal,
) -> Result<(), ErrorObject> {
    let mut again = Run::start(call, handle, job.clone(), Some(&journal), true);
    let again = match poll_fn(|cx| again.poll(cx)).await {
        Ok(_) => None,
        Err(context) => Some(again.ended(&context)),
    };
    let waited = matches!(again, Some(Ended::Asked { waited: true, .. }));
    let (same, again) = match again {
        // A failed effect is not kept. Without it this run sees only the questions before it.
        Some(Ended::Asked { questions: again, held: true, .. }) => {
            (again.iter().all(|it| questions.contains(it)), again)
        }
        Some(Ended::Asked { questions: again, .. }) => (again == questions, again),
        Some(Ended::Left(_)) | None => (false, Vec::new()),
    };
    if same {
        if waited {
            warn_of_waiting(&job.server, job.target.name());
        }
        return Ok(());
    }
    let why = format!(
        "`{}` asked {}, and {} when it ran again. Questions may depend only on the arguments and \
         earlier answers; put effects into `Context::once`.",
        job.target.name(),
        in_words(questions),
        in_words(&again),
    );
    Err(ErrorObject::internal("not_deterministic", why))
}

/// A handler that awaits something outside `Context::once` before it asks repeats it in every
/// round, with its effects.
fn warn_of_waiting(server: &Inner, name: &str) {
    let why = format!(
        "`{name}` waits for something before it asks, outside `Context::once`. It runs again with each \
         answer, and so does that: put it into `once` if it has an effect, or may answer otherwise."
    );
    tracing::warn!(target: "trunkline", "{why}");
    #[cfg(feature = "testing")]
    {
        let mut warnings = lock(&server.warnings);
        if !warnings.contains(&why) {
            warnings.push(why);
        }
    }
    #[cfg(not(feature = "testing"))]
    let _ = server;
}

/// The questions in a sentence, as far as possible.
fn in_words(questions: &[(String, InputRequest)]) -> String {
    let word = |(_, question): &(String, InputRequest)| match question {
        InputRequest::Elicit(ElicitParams::Form(it)) => format!("`{}`", it.message),
        InputRequest::Elicit(ElicitParams::Url(it)) => format!("`{}`", it.message),
        InputRequest::Sample(_) => "the model".to_owned(),
        InputRequest::Roots => "for the roots".to_owned(),
    };
    match questions {
        [] => "nothing".to_owned(),
        some => some.iter().map(word).collect::<Vec<_>>().join(" and "),
    }
}

fn read_responses(responses: &Json) -> Result<Object, ErrorObject> {
    let responses = Object::parse(responses.get()).ok();
    let is_answer = |(_, response): (&str, &Json)| response.is_object();
    responses.filter(|it| it.iter().all(is_answer)).ok_or_else(|| {
        ErrorObject::invalid_params("`inputResponses` must be an object of objects.")
    })
}

fn open(server: &Inner, state: &Json, bound: &[u8]) -> Result<Journal, ErrorObject> {
    // One message for every fault, so that a forger learns nothing.
    let invalid = || ErrorObject::invalid_params("`requestState` is not valid here.");
    let sealed: String = state.to().map_err(|_| invalid())?;
    let plain = server.sealer.open(&sealed, bound, SystemTime::now()).map_err(|_| invalid())?;
    serde_json::from_slice(&plain).map_err(|_| invalid())
}

fn seal(server: &Inner, journal: &Journal, bound: &[u8]) -> Result<String, ErrorObject> {
    let plain = Json::of(journal);
    if plain.get().len() > server.limits.state_bytes {
        return Err(ErrorObject::internal("state", "The call keeps too much between its rounds."));
    }
    Ok(server.sealer.seal(plain.get().as_bytes(), bound, SystemTime::now() + STATE_LIFE))
}

/// How long the client's user may think about one round.
const STATE_LIFE: Duration = Duration::from_secs(600);
