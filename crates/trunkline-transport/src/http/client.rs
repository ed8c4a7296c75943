//! Messages ⇄ POSTs and event streams: the client's end of HTTP.
//!
//! `HttpDriver` is to HTTP what [`crate::drive`] is to a pipe: the one loop that owns the
//! conversation. Each message that goes out is carried by a task of its own (`client/courier.rs`),
//! which reports back; dropping its entry here stops it.

mod courier;
mod exchange;
mod handshake;
mod letter;
pub(crate) mod pool;
mod route;
pub(crate) mod target;
#[cfg(feature = "tls")]
pub(crate) mod tls;
mod verdicts;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Sleep;
use trunkline_proto::client::http::is_of_the_new_era;
use trunkline_proto::client::{Client, Config, HttpError, OpenError, Opened, Start};
use trunkline_proto::{Conversation, Heard, Input, Outgoing, Output, Via};
use trunkline_wire::header::ParamRegistry;
use trunkline_wire::jsonrpc::{Incoming, Message, MethodName};
use trunkline_wire::method::Method;
use trunkline_wire::revision::Era;

use crate::clock::now;
use crate::drive::running::Running;
use crate::handler::{Handler, begin, guarded_heard};
use crate::limits::Limits;
use crate::voice::{Asked, Ears, Urgent, Voice, Wish};
use courier::{End, Letter, News, Post, What};
use pool::Pool;
use route::Route;
use target::Address;
use verdicts::{Key, Known};

pub use target::HttpTarget;
pub use verdicts::Verdicts;

/// A conversation over HTTP, before it is driven.
pub(crate) struct HttpDriver<H> {
    core: Client,
    config: Arc<Config>,
    handler: Arc<H>,
    voice: Voice,
    ears: Ears,
    running: Running,
    asked: Asked,
    opened: Option<oneshot::Sender<Result<Arc<Opened>, OpenError>>>,
    timer: Pin<Box<Sleep>>,
    armed: Option<Instant>,
    limits: Limits,

    post: Arc<Post>,
    news: mpsc::Receiver<News>,
    people: mpsc::UnboundedReceiver<(u64, bool)>,
    /// What is on its way.
    out: Vec<Carried>,
    next: u64,
    route: Arc<Route>,
    params: ParamRegistry,
    /// Messages that wait until the handshake is through.
    held: VecDeque<Letter>,
    handshake: Handshake,
    /// Whether the session is there, while that is asked.
    asking: Option<Asking>,
    /// The stream on which the server speaks of its own accord.
    stream: Option<Carried>,
    target: HttpTarget,
    /// What was remembered of this server, while the handshake relies on it.
    known: Option<Known>,
    /// When the last message must be out, once the end has begun.
    closing: Option<Instant>,
}

/// A message on its way, or a stream. Dropping it stops its task.
struct Carried {
    key: u64,
    id: Option<i64>,
    method: MethodName,
    since: Instant,
    route: Arc<Route>,
    task: AbortHandle,
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the messages wait for.
enum Handshake {
    /// The answer to `server/discover` or `initialize`, in the first session or a later one.
    Asking,
    /// HTTP+SSE is being tried; how `initialize` fared before, if it was.
    TryingStream {
        letter: Box<Letter>,
        before: Option<Before>,
    },
    /// The nod to `notifications/initialized`.
    Confirming(u64),
    Done,
}

/// A `ping` in a session that may be gone.
struct Asking {
    key: u64,
    /// What waits for it: sent, and answered as if the session were gone.
    doubtful: Vec<Letter>,
}

/// How a POST of `initialize` was answered.
enum Before {
    Answer(Incoming),
    Status(HttpError),
}

impl<H: Handler> HttpDriver<H> {
    pub(crate) fn new(
        config: Arc<Config>,
        handler: Arc<H>,
        target: HttpTarget,
        limits: Limits,
    ) -> Result<Self, OpenError> {
        let address = Address::parse(&target.url).map_err(OpenError::Unreachable)?;
        let given = target.header_map().map_err(OpenError::Unreachable)?;
        let pool = Pool::new(&target, &limits).map_err(OpenError::Unreachable)?;
        let now = now();
        let known = target.verdicts.as_ref().and_then(|it| it.get(&Key::of(&target), now));
        let known = known.filter(|_| !config.revisions.of_era(Era::Stateful).is_empty());
        let start = if known.is_some() { Start::Initialize } else { Start::Probe };
        let (voice, ears) = Voice::new(limits.queue);
        let (tell, news) = mpsc::channel(NEWS);
        let (tell_people, people) = mpsc::unbounded_channel();
        let post = Post {
            pool: Arc::new(pool),
            news: tell,
            people: tell_people,
            message_bytes: limits.message_bytes,
            patience: limits.call_deadline,
        };
        Ok(Self {
            core: Client::over_http(Arc::clone(&config), start, now),
            config,
            handler,
            voice,
            ears,
            running: Running::default(),
            asked: Asked::default(),
            opened: None,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed: None,
            limits,
            post: Arc::new(post),
            news,
            people,
            out: Vec::new(),
            next: 0,
            route: Arc::new(Route::new(address, given, target.credentials.clone())),
            params: ParamRegistry::new(),
            held: VecDeque::new(),
            handshake: Handshake::Asking,
            asking: None,
            stream: None,
            target,
            known,
            closing: None,
        })
    }

    pub(crate) fn voice(&self) -> Voice {
        self.voice.clone()
    }

    pub(crate) fn on_opened(&mut self) -> oneshot::Receiver<Result<Arc<Opened>, OpenError>> {
        let (tell, told) = oneshot::channel();
        self.opened = Some(tell);
        told
    }

    /// Runs the conversation until [`Voice::close`], or until it cannot go on.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| {
            self.act(cx);
            self.poll(cx)
        })
        .await;
        // Whoever still waits for an answer learns that none will come.
        self.core.handle(Input::Close, now());
        self.act(&mut Context::from_waker(std::task::Waker::noop()));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut turns = 0;
        loop {
            let mut busy = self.poll_urgent(cx);
            busy |= self.poll_news(cx);
            busy |= self.poll_wishes(cx);
            busy |= self.poll_running(cx);
            if busy {
                turns += 1;
                if turns < TURNS {
                    continue;
                }
                // A server that never stops talking keeps neither the clock nor others waiting.
                self.core.handle(Input::Tick, now());
                self.act(cx);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.closing.is_some_and(|by| self.out.is_empty() || by <= now()) {
                return Poll::Ready(());
            }
            ready!(self.poll_timer(cx));
        }
    }

    fn poll_urgent(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(urgent) = self.ears.poll_urgent(cx) {
            match urgent {
                Urgent::Cancel(ticket) => {
                    self.asked.forget(ticket);
                    self.core.handle(Input::Cancel(ticket), now());
                }
                Urgent::Close => self.close(),
            }
            self.act(cx);
            busy = true;
        }
        busy
    }

    fn poll_wishes(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        // While a handshake is under way or too much is on its way, others wait.
        while matches!(self.handshake, Handshake::Done)
            && self.out.len() < self.limits.requests
            && let Poll::Ready(wish) = self.ears.poll_wish(cx)
        {
            self.grant(wish);
            self.act(cx);
            busy = true;
        }
        busy
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(Some((call, outcome))) = self.running.poll_next(cx) {
            self.hear_first();
            self.core.handle(Input::Finished { call, outcome }, now());
            self.act(cx);
            busy = true;
        }
        busy
    }

    fn poll_news(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(Some((post, does))) = self.people.poll_recv(cx) {
            self.on_people(post, does);
            self.act(cx);
            busy = true;
        }
        while let Poll::Ready(Some(news)) = self.news.poll_recv(cx) {
            self.on_news(news);
            self.act(cx);
            busy = true;
        }
        busy
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let next = self.core.next_timeout().into_iter().chain(self.closing).min();
        let Some(next) = next else {
            self.armed = None;
            return Poll::Pending;
        };
        // A timer that fires too early does no harm, so it is only ever moved forward.
        if self.armed.is_none_or(|armed| next < armed) {
            self.timer.as_mut().reset(next.into());
            self.armed = Some(next);
        }
        ready!(self.timer.as_mut().poll(cx));
        self.armed = None;
        self.core.handle(Input::Tick, now());
        self.act(cx);
        Poll::Ready(())
    }

    fn grant(&mut self, wish: Wish) {
        if self.closing.is_some() && matches!(wish, Wish::Ask(..)) {
            return wish.refuse();
        }
        if let Some(input) = self.asked.grant(wish) {
            self.core.handle(input, now());
        }
    }

    /// Does everything the conversation wants done.
    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(output) = self.core.poll() {
            match output {
                Output::Send(Outgoing::One(message), _) => self.send(&message),
                // A client makes no batches, and these are a server's.
                Output::Send(Outgoing::Batch(_), _) | Output::Quiet(_) | Output::Pause { .. } => {}
                Output::Call(call) => self.start(*call, cx),
                Output::Abandon(call) => self.running.stop(call),
                Output::Settled { ticket, outcome } => self.asked.settle(ticket, outcome),
                Output::Heard(heard) => self.deliver(heard),
                Output::Opened(facts) => self.on_open(facts),
                Output::Failed(error) => self.on_failed(error),
            }
        }
    }

    fn start(&mut self, call: trunkline_proto::Call, cx: &mut Context<'_>) {
        let key = call.key;
        let outcome = match begin(&*self.handler, call, &self.voice, cx) {
            Ok(outcome) => outcome,
            Err(future) => return self.running.start(key, future),
        };
        self.hear_first();
        self.core.handle(Input::Finished { call: key, outcome }, now());
    }

    /// What a handler said before it finished goes out before its answer.
    fn hear_first(&mut self) {
        while let Some(wish) = self.ears.try_wish() {
            self.grant(wish);
        }
    }

    fn deliver(&mut self, heard: Heard) {
        if let Some(heard) = self.asked.deliver(heard) {
            guarded_heard(&*self.handler, heard, &self.voice);
        }
    }

    fn tell_opened(&mut self, opened: Result<Arc<Opened>, OpenError>) {
        if let Some(tell) = self.opened.take() {
            let _ = tell.send(opened);
        }
    }
}

/// Sending and hearing.
impl<H: Handler> HttpDriver<H> {
    fn send(&mut self, message: &Message) {
        if let Some(id) = letter::cancels(message) {
            return self.cancel(id, message);
        }
        let letter = letter::write(message, &self.route, &self.params);
        if letter.method == Method::Initialize && self.known == Some(Known::Sse) {
            return self.try_stream(letter, None);
        }
        let is_answer = letter.method.is_empty();
        match &self.handshake {
            Handshake::Asking if letter.method == Method::Initialized => self.confirm(letter),
            Handshake::Asking if letter.is_opening() || is_answer => drop(self.carry(letter)),
            Handshake::Done => drop(self.carry(letter)),
            _ if is_answer => drop(self.carry(letter)),
            _ => self.held.push_back(letter),
        }
    }

    fn carry(&mut self, letter: Letter) -> u64 {
        let (key, id, method) = (self.next_key(), letter.id, letter.method.clone());
        let carrying = Arc::clone(&self.post).carry(Arc::clone(&self.route), letter, key);
        let task = tokio::spawn(carrying).abort_handle();
        let route = Arc::clone(&self.route);
        self.out.push(Carried { key, id, method, since: now(), route, task });
        key
    }

    fn next_key(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives up on a request. In the new era hanging up says so, before a notification does: not
    /// before the request itself has had the time to arrive.
    fn cancel(&mut self, id: i64, message: &Message) {
        self.held.retain(|it| it.id != Some(id));
        if let Some(asking) = &mut self.asking {
            asking.doubtful.retain(|it| it.id != Some(id));
        }
        let at = self.out.iter().position(|it| it.id == Some(id));
        let since = at.map(|at| self.out.swap_remove(at).since);
        if self.route.era() == Some(Era::Stateless) || !matches!(self.handshake, Handshake::Done) {
            return;
        }
        let mut letter = letter::write(message, &self.route, &self.params);
        letter.not_before = since.map(|it| (it + ARRIVAL).into());
        self.carry(letter);
    }

    fn on_news(&mut self, News { post, what }: News) {
        if self.stream.as_ref().is_some_and(|it| it.key == post) {
            return self.on_stream(what);
        }
        let Some(at) = self.out.iter().position(|it| it.key == post) else { return };
        match what {
            What::Session(session) => {
                self.route = Arc::new(self.route.with_session(session));
            }
            What::Message(incoming) => {
                let id = self.out[at].id;
                self.receive(incoming, id);
            }
            What::Endpoint(_) => {}
            What::End(end) => {
                let carried = self.out.swap_remove(at);
                self.on_end(&carried, end);
            }
        }
    }

    /// The time that a person takes to log in is not the server's.
    fn on_people(&mut self, post: u64, does: bool) {
        if let Some(carried) = self.out.iter().find(|it| it.key == post)
            && let Some(id) = carried.id
        {
            self.core.waits_for_people(id, does, now());
            self.armed = None;
        }
    }

    /// Takes a message in that came on the stream of the request `id`, if on any.
    fn receive(&mut self, incoming: Incoming, id: Option<i64>) {
        let via = id.and_then(|it| u64::try_from(it).ok()).map_or(Via::default(), Via);
        self.core.handle(Input::Received(incoming, via), now());
    }

    fn on_end(&mut self, carried: &Carried, end: End) {
        if matches!(self.handshake, Handshake::Confirming(key) if key == carried.key) {
            // To ask for another would go on for ever.
            if matches!(end, End::SessionGone(_)) {
                let why = "it does not know the session that it has just opened.";
                return self.on_failed(OpenError::Invalid(why.to_owned()));
            }
            self.on_confirmed();
        }
        if self.asking.as_ref().is_some_and(|it| it.key == carried.key) {
            return self.on_asked(&carried.route, &end);
        }
        match end {
            End::AnswerAndGone(incoming) => {
                self.receive(incoming, carried.id);
                // What comes next should not meet the same.
                if Arc::ptr_eq(&carried.route, &self.route) {
                    self.ask_for_session();
                }
            }
            End::Answer(incoming) => {
                if carried.method == Method::ToolsList && self.route.era() == Some(Era::Stateless) {
                    learn(&mut self.params, &incoming);
                }
                self.receive(incoming, carried.id);
            }
            End::Refused { incoming, status, letter } => {
                let is_old = may_be_sse(status) && !is_of_the_new_era(&incoming);
                match is_old && self.may_try_stream() {
                    true => self.try_stream(*letter, Some(Before::Answer(incoming))),
                    false => self.receive(incoming, carried.id),
                }
            }
            End::Accepted => {}
            End::SessionGone(letter) => self.on_session_gone(&carried.route, *letter),
            End::Unrecognised(error, letter) => {
                let is_old = carried.method == Method::Initialize && may_be_sse(error.status);
                if is_old && self.may_try_stream() {
                    return self.try_stream(*letter, Some(Before::Status(error)));
                }
                if let Some(id) = carried.id {
                    self.core.unrecognised(id, error, now());
                }
            }
            End::Failed(why) => {
                if let Some(id) = carried.id {
                    self.core.undelivered(id, why, now());
                }
            }
        }
    }
}

/// Statuses that an HTTP+SSE server may give to a POST where it expects a GET.
fn may_be_sse(status: u16) -> bool {
    matches!(status, 400 | 404 | 405)
}

fn learn(params: &mut ParamRegistry, incoming: &Incoming) {
    if let Incoming::One(Message::Response { outcome: Ok(result), .. }) = incoming {
        params.learn(result);
    }
}

/// Reports that may wait.
const NEWS: usize = 64;
/// How often the loop goes round before it lets others have a turn.
const TURNS: u32 = 32;
/// How long a request may take to arrive before something overtakes it.
const ARRIVAL: Duration = Duration::from_millis(100);
