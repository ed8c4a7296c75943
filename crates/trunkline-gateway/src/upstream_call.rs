//! One call in flight at an instance: its caller, and what the server asks and sends meanwhile.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;
use trunkline_auth::tag::random_name;
use trunkline_proto::input_required::missing_capability;
use trunkline_proto::{Attached, CallKey, HandlerEvent, PeerNotification};
use trunkline_transport::budget::{Budget, Held};
use trunkline_transport::conversation_handle::{ConversationHandle, Listener, Request};
use trunkline_wire::era::carry;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{ElicitParams, InputRequest, Progress};
use trunkline_wire::revision::{Era, Revision};

use crate::caller::Caller;
use crate::policy::plugins::{CallView, Pipeline, Rejected};
use crate::traffic::{FROM_CLIENT, FROM_SERVER, Recording, TO_CLIENT, TO_SERVER, Whose};

/// The context of a call in flight. It is attached to the request, so that questions the server asks during the
/// call are routed here.
pub(crate) struct UpstreamCallContext {
    pub(crate) caller: Arc<Caller>,
    /// The conversation with the caller, and the key of the call in it.
    pub(crate) handle: ConversationHandle,
    pub(crate) key: CallKey,
    pub(crate) revision: Revision,
    /// Whether the call listens for progress and logs.
    pub(crate) listens: bool,
    /// Events waiting to be passed on.
    waiting: Mutex<Waiting>,
    /// Whether something came that whoever follows the call has not looked at. Changes under the lock of `waiting`.
    has_news: AtomicBool,
    /// The number of questions in flight to the caller that do not end the call.
    asking: AtomicUsize,
    /// Whether the call is parked: the caller gets new questions when it resumes.
    is_parked: AtomicBool,
    notices: Arc<Notices>,
    guard: Option<Guard>,
    recording: Option<Recording>,
}

#[derive(Default)]
struct Waiting {
    questions: VecDeque<Question>,
    said: VecDeque<(HandlerEvent, Held)>,
    follower: Option<Waker>,
}

/// What came that whoever follows the call has not looked at.
pub(crate) enum News {
    /// An event for the caller. It counts against the budget until the guard is dropped. Boxed: most calls have none.
    Said(Box<(HandlerEvent, Held)>),
    /// Questions that end the call for now.
    Asked(Vec<Question>),
    /// It began or stopped to ask.
    Other,
}

/// The plugins, and what they are told of the call.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) plugins: Arc<Pipeline>,
    pub(crate) view: Arc<CallView>,
}

impl Guard {
    /// The question as the plugins leave it.
    pub(crate) async fn question(&self, asked: InputRequest) -> Result<InputRequest, ErrorObject> {
        Box::pin(self.plugins.question(&self.view, asked)).await.map_err(|it| rejection(&it))
    }

    /// The answer as the plugins leave it.
    pub(crate) async fn answer(&self, answer: Json) -> Outcome {
        Box::pin(self.plugins.answers(&self.view, answer)).await.map_err(|it| rejection(&it))
    }
}

/// The error for a server whose question a plugin refused.
fn rejection(rejected: &Rejected) -> ErrorObject {
    ErrorObject::internal("rejected", rejected.to_string())
}

/// The memory budget of events waiting for all callers, with a share for each principal.
pub(crate) struct Notices {
    bytes: Budget,
    /// The same budget for questions.
    asked: Budget,
    /// The number of events dropped because the budget was used up.
    pub(crate) dropped: AtomicU64,
}

impl Default for Notices {
    fn default() -> Self {
        let (bytes, asked) = (Budget::new(ALL_BYTES, OWN_BYTES), Budget::new(ALL_BYTES, OWN_BYTES));
        Self { bytes, asked, dropped: AtomicU64::new(0) }
    }
}

/// A question that the caller answers with its next request.
pub(crate) struct Question {
    pub(crate) request: InputRequest,
    pub(crate) tell: oneshot::Sender<Outcome>,
    /// The memory it takes until it is answered.
    _held: Held,
}

/// Whose call it is, and where it came from.
pub(crate) struct Origin {
    pub(crate) caller: Arc<Caller>,
    /// The conversation with the caller, and the key of the call in it.
    pub(crate) handle: ConversationHandle,
    pub(crate) key: CallKey,
    pub(crate) revision: Revision,
}

impl UpstreamCallContext {
    #[inline]
    pub(crate) fn new(
        origin: Origin,
        listens: bool,
        notices: Arc<Notices>,
        guard: Option<Guard>,
        recording: Option<Recording>,
    ) -> Arc<Self> {
        let Origin { caller, handle, key, revision } = origin;
        Arc::new(Self {
            caller,
            handle,
            key,
            revision,
            listens,
            waiting: Mutex::default(),
            has_news: AtomicBool::new(false),
            asking: AtomicUsize::new(0),
            is_parked: AtomicBool::new(false),
            notices,
            guard,
            recording,
        })
    }

    /// What operators see of the call.
    pub(crate) fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Asks the caller. In the stateful era that is a request; in the stateless era the call ends with the
    /// question, and the answer arrives with the next request.
    pub(crate) async fn ask(self: Arc<Self>, method: Method, params: Object) -> Outcome {
        let params = params.to_json();
        let Some(recording) = self.recording.clone() else { return self.put(method, params).await };
        recording.asks(FROM_SERVER, &params);
        let told = self.put(method, params).await;
        recording.replies(TO_SERVER, told.as_ref().ok());
        told
    }

    async fn put(self: Arc<Self>, method: Method, params: Json) -> Outcome {
        let question = InputRequest::read(method.name(), Some(&params)).map_err(|error| {
            ErrorObject::invalid_params(format!("The question cannot be read: {error}."))
        })?;
        // Twice: as received, and as sent.
        let held = self.notices.asked.take(&self.caller.id, 2 * params.get().len() + EACH);
        let held = held.map_err(|_| {
            let message = "Too many bytes of questions wait for answers of this caller already.";
            ErrorObject::internal("too_many_questions", message)
        })?;
        let mut question = question;
        if let (InputRequest::Elicit(ElicitParams::Url(url)), Era::Stateful) =
            (&mut question, self.revision.era())
        {
            // The stateless era has no elicitation ids; the stateful era requires one.
            url.elicitation_id.get_or_insert_with(random_name);
        }
        let question = carry::question(question, self.revision).map_err(|unfit| {
            ErrorObject::invalid_params(format!("The caller cannot be asked this. {unfit}"))
        })?;
        match self.revision.era() {
            Era::Stateful => {
                let question = match &self.guard {
                    Some(guard) => guard.question(question).await?,
                    None => question,
                };
                let asked = question.params().and_then(|it| Object::parse(it.get()).ok());
                if let Some(recording) = &self.recording {
                    let params = question.params().unwrap_or_else(Json::empty_object);
                    recording.asks(TO_CLIENT, &params);
                }
                let mut request = Request::new(question.method(), asked.unwrap_or_default());
                request.during = Some(self.key);
                request.timing = Some(crate::question::THINKING);
                let asking = Asking::new(&self);
                let answer = self.handle.ask(request).await.map_err(refused);
                drop((asking, held));
                if let Some(recording) = &self.recording {
                    recording.replies(FROM_CLIENT, answer.as_ref().ok());
                }
                let answer = answer?;
                match &self.guard {
                    Some(guard) => guard.answer(answer).await,
                    None => Ok(answer),
                }
            }
            Era::Stateless => {
                // A shared instance was told that its client supports every kind of question.
                if let Some(missing) = missing_capability(&question, self.caller.capabilities()) {
                    return Err(missing);
                }
                let (tell, told) = oneshot::channel();
                {
                    let mut waiting = self.lock();
                    if waiting.questions.len() >= QUESTIONS {
                        let message = format!("A call may ask {QUESTIONS} questions at once.");
                        return Err(ErrorObject::internal("too_many_questions", message));
                    }
                    waiting.questions.push_back(Question { request: question, tell, _held: held });
                }
                self.notify();
                told.await.unwrap_or_else(|_| {
                    Err(ErrorObject::internal(
                        "no_answer",
                        "The caller did not retry with an answer.",
                    ))
                })
            }
        }
    }

    /// Queues an event for the caller; drops it if the budget is used up.
    pub(crate) fn say(&self, what: HandlerEvent) {
        let held = self.notices.bytes.take(&self.caller.id, size(&what));
        let mut waiting = self.lock();
        match held {
            Ok(held) if waiting.said.len() < SAYINGS => {
                waiting.said.push_back((what, held));
                drop(waiting);
                self.notify();
            }
            // Notifications may be dropped; answers never are.
            _ => drop(self.notices.dropped.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// What there is to pass on, or that it began or stopped to ask. Without news it takes no lock.
    pub(crate) fn take_news(&self) -> Option<News> {
        match self.has_news.load(Ordering::Acquire) {
            true => self.next_news(&mut self.lock()),
            false => None,
        }
    }

    fn next_news(&self, waiting: &mut Waiting) -> Option<News> {
        if let Some(said) = waiting.said.pop_front() {
            return Some(News::Said(Box::new(said)));
        }
        if !waiting.questions.is_empty() {
            return Some(News::Asked(waiting.questions.drain(..).collect()));
        }
        let has_news = self.has_news.load(Ordering::Relaxed);
        self.has_news.store(false, Ordering::Relaxed);
        has_news.then_some(News::Other)
    }

    /// The same, and wakes its one follower when there is something.
    pub(crate) fn poll_news(&self, cx: &mut Context<'_>) -> Poll<News> {
        let mut waiting = self.lock();
        if let Some(news) = self.next_news(&mut waiting) {
            return Poll::Ready(news);
        }
        match &mut waiting.follower {
            Some(follower) => follower.clone_from(cx.waker()),
            follower => *follower = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn notify(&self) {
        let mut waiting = self.lock();
        self.has_news.store(true, Ordering::Release);
        let follower = waiting.follower.take();
        drop(waiting);
        follower.into_iter().for_each(Waker::wake);
    }

    /// Whether the call waits for the caller's answer.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// The call was parked or resumed.
    pub(crate) fn park(&self, is_parked: bool) {
        self.is_parked.store(is_parked, Ordering::Relaxed);
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a question in flight to the caller.
struct Asking<'a>(&'a UpstreamCallContext);

impl<'a> Asking<'a> {
    fn new(context: &'a UpstreamCallContext) -> Self {
        context.asking.fetch_add(1, Ordering::Relaxed);
        context.notify();
        Self(context)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
        self.0.notify();
    }
}

impl Listener for UpstreamCallContext {
    fn hear(&self, heard: PeerNotification) {
        let said = match heard.method {
            Method::Progress => heard.params.to::<Progress>().ok().map(HandlerEvent::Progress),
            Method::Message => heard.params.to().ok().map(HandlerEvent::Log),
            _ => None,
        };
        said.into_iter().for_each(|it| self.say(it));
    }
}

impl std::fmt::Debug for UpstreamCallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamCallContext").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The approximate size of an event in memory.
fn size(what: &HandlerEvent) -> usize {
    let text = match what {
        HandlerEvent::Progress(it) => it.message.as_ref().map_or(0, String::len),
        HandlerEvent::Log(it) => it.data.get().len() + it.logger.as_ref().map_or(0, String::len),
        HandlerEvent::Pause(_) => 0,
    };
    text + EACH
}

/// Whom a request to a server is made for.
pub(crate) fn whose(attached: &Attached) -> Whose {
    match attached.get::<UpstreamCallContext>() {
        Some(context) => Whose::of(context.recording.as_ref()),
        None => whose_task(attached),
    }
}

/// The same of a request that is no call.
#[cold]
fn whose_task(attached: &Attached) -> Whose {
    match attached.get::<OnTask>() {
        Some(task) => Whose::of(task.0.recording().as_ref()),
        None => Whose::Conversation,
    }
}

/// The error for a server whose question was not answered.
fn refused(error: trunkline_proto::CallError) -> ErrorObject {
    use trunkline_proto::CallError;
    match error {
        CallError::Peer(error) | CallError::Refused(error) => error,
        error => ErrorObject::internal("no_answer", error.to_string()),
    }
}

/// Answers the questions of a task: the caller that waits for the task, or the client that polls it.
pub(crate) trait Answers: Send + Sync {
    fn ask(&self, method: Method, params: Object) -> Answering;

    /// The recording of the call that waits for the task.
    fn recording(&self) -> Option<Recording> {
        None
    }
}

/// A future answer.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Attached to `tasks/result` at a server: questions on its stream belong to the task.
pub(crate) struct OnTask(pub(crate) Arc<dyn Answers>);

/// The answer where nobody can be asked.
pub(crate) fn nobody(why: &str) -> Outcome {
    Err(ErrorObject::internal("nobody_to_ask", why))
}

/// The roots of a caller that has none.
pub(crate) fn no_roots() -> Json {
    Json::parse(r#"{"roots":[]}"#).expect("this is JSON")
}

const QUESTIONS: usize = 64;
const SAYINGS: usize = 1024;
/// The bytes of waiting events for all callers, and for one principal; the same for questions.
const ALL_BYTES: usize = 32 << 20;
const OWN_BYTES: usize = 8 << 20;
/// The overhead of one waiting event.
const EACH: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(caller: Arc<Caller>) -> Origin {
        let (handle, key) = (ConversationHandle::unheard(), CallKey(1));
        Origin { caller, handle, key, revision: Revision::LATEST }
    }

    #[tokio::test]
    async fn a_caller_is_asked_only_what_it_declared() {
        let caller = Arc::new(Caller::named("bob"));
        let context = UpstreamCallContext::new(origin(caller), false, Arc::default(), None, None);
        let told = Arc::clone(&context).ask(Method::RootsList, Object::default()).await;
        assert_eq!(told.unwrap_err().code, trunkline_wire::code::MISSING_CLIENT_CAPABILITY);
        assert!(context.lock().questions.is_empty());
    }

    #[test]
    fn waiting_events_are_bounded_in_bytes_by_principal() {
        let notices = Arc::new(Notices::default());
        let context = |name: &str| {
            let caller = Arc::new(Caller::named(name));
            UpstreamCallContext::new(origin(caller), true, Arc::clone(&notices), None, None)
        };
        let heard = || {
            let params = format!(r#"{{"level":"info","data":"{}"}}"#, "x".repeat(1 << 20));
            let params = Object::parse(&params).expect("this is JSON");
            PeerNotification { ticket: None, method: Method::Message, params, peer: None }
        };
        let (one, other, bob) = (context("alice"), context("alice"), context("bob"));
        (0..150).for_each(|_| one.hear(heard()));
        other.hear(heard());
        bob.hear(heard());
        assert!(notices.bytes.used() <= OWN_BYTES + (1 << 20) + 2 * EACH);
        assert!(
            other.lock().said.pop_front().is_none(),
            "all calls of a principal are bounded together"
        );
        assert!(bob.lock().said.pop_front().is_some(), "others have a share of their own");
        assert_eq!(notices.dropped.load(Ordering::Relaxed), 150 - 7 + 1);
        one.lock().said.clear();
        assert_eq!(notices.bytes.used(), 0, "what was said does not count any more");
    }
}
