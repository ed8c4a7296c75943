//! Messages ⇄ POSTs and event streams: the client's end of HTTP.
//!
//! `HttpDriver` is to HTTP what [`crate::drive`] is to a pipe: the one loop that owns the conversation.
//! Each message has a future that delivers it (`client/delivery.rs`), which the loop polls when it is woken
//! (`client/deliveries.rs`); dropping the entry there stops the delivery.

pub(crate) mod connection;
mod deliveries;
mod delivery;
mod direct;
mod exchange;
mod handshake;
pub(crate) mod head;
pub(crate) mod pool;
mod request;
mod route;
mod single;
pub(crate) mod target;
#[cfg(feature = "tls")]
pub(crate) mod tls;
mod verdicts;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::task::coop::has_budget_remaining;
use trunkline_proto::client::http::is_of_the_new_era;
use trunkline_proto::client::{Client, Config, HttpError, OpenError, Opened, Start};
use trunkline_proto::{Attached, Input, Outgoing, RequestStream};
use trunkline_wire::jsonrpc::{Incoming, Message, MethodName};
use trunkline_wire::method::Method;
use trunkline_wire::revision::Era;

use crate::clock::now;
use crate::conversation_handle::ConversationHandle;
use crate::driver_core::{DeadlineTimer, DriverCore, Effect, HandlerTasks, OpenedSignal, Urged};
use crate::handler::Handler;
use crate::http::message_text::MessageText;
use crate::limits::Limits;
use deliveries::Deliveries;
use delivery::{DeliveryEvent, End, EventKind, Post};
use pool::Pool;
use request::{PostRequest, RequestWriter};
use route::Route;
use target::Address;
use verdicts::{Key, Known};

pub use direct::{Direct, Flow};
pub use single::{Pieces, send_single};
pub use target::HttpTarget;
pub use verdicts::Verdicts;

/// A conversation over HTTP, before it runs.
pub(crate) struct HttpDriver<H> {
    core: DriverCore<Client, HandlerTasks<H>>,
    config: Arc<Config>,
    opened: OpenedSignal,
    timer: DeadlineTimer,
    limits: Limits,

    post: Arc<Post>,
    reports: mpsc::Receiver<DeliveryEvent>,
    /// Whom `reports` wakes.
    told: Option<Waker>,
    people: mpsc::UnboundedReceiver<(u64, bool)>,
    /// Messages in flight.
    out: Deliveries,
    next: u64,
    route: Arc<Route>,
    writer: RequestWriter,
    /// Messages that wait for the end of the handshake.
    held: VecDeque<PostRequest>,
    handshake: Handshake,
    /// The `ping` that checks whether the session still exists, if one is in flight.
    session_check: Option<SessionCheck>,
    /// The stream for messages that the server sends on its own initiative.
    stream: Option<Listening>,
    /// Whether commands wait a turn, in which the stream is asked for: a server that has no other way should know it
    /// before it is called.
    lets_listen: bool,
    target: HttpTarget,
    /// The verdict on this server that the handshake relies on, if any.
    known: Option<Known>,
    /// When the last message must be sent, once closing has begun.
    closing: Option<Instant>,
}

/// A message in flight.
struct InFlight {
    key: u64,
    id: Option<i64>,
    method: MethodName,
    since: Instant,
    route: Arc<Route>,
}

/// A stream that the server is listened to on, which lasts. Dropping it aborts its task.
struct Listening {
    key: u64,
    task: AbortHandle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What queued messages wait for.
enum Handshake {
    /// The answer to `server/discover` or `initialize`, in the first session or a later one.
    Opening,
    /// HTTP+SSE is being tried; `before` says how `initialize` failed over POST.
    TryingStream {
        request: Box<PostRequest>,
        before: Option<PostFailure>,
    },
    /// The 202 for `notifications/initialized`.
    Confirming(u64),
    Done,
}

/// A `ping` in a session that the server may have dropped.
struct SessionCheck {
    key: u64,
    /// Requests answered as if the session were gone; they wait for the verdict.
    doubtful: Vec<PostRequest>,
}

/// How a POST of `initialize` was answered.
enum PostFailure {
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
        let (handle, commands) = ConversationHandle::new(limits.queue);
        if let Some(witness) = handler.witness(Some(&handle), &Attached::default()) {
            handle.set_witness(witness);
        }
        let (tell, reports) = mpsc::channel(REPORTS);
        let (tell_people, people) = mpsc::unbounded_channel();
        let post = Post {
            pool: Arc::new(pool),
            reports: tell,
            people: tell_people,
            message_bytes: limits.message_bytes,
            patience: limits.call_deadline,
        };
        let client = Client::over_http(Arc::clone(&config), start, now);
        Ok(Self {
            core: DriverCore::new(client, commands, HandlerTasks::new(handler, handle)),
            config,
            opened: OpenedSignal::default(),
            timer: DeadlineTimer::default(),
            limits,
            post: Arc::new(post),
            reports,
            told: None,
            people,
            out: Deliveries::default(),
            next: 0,
            route: Arc::new(Route::new(address, given, target.credentials.clone())),
            writer: RequestWriter::default(),
            held: VecDeque::new(),
            handshake: Handshake::Opening,
            session_check: None,
            stream: None,
            lets_listen: false,
            target,
            known,
            closing: None,
        })
    }

    pub(crate) fn handle(&self) -> ConversationHandle {
        self.core.handlers.handle.clone()
    }

    pub(crate) fn on_opened(&mut self) -> oneshot::Receiver<Result<Arc<Opened>, OpenError>> {
        self.opened.subscribe()
    }

    /// Runs the conversation until [`ConversationHandle::close`] or a fatal failure.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| {
            self.act(cx);
            self.poll(cx)
        })
        .await;
        // Callers that still wait learn that no answer will come.
        self.core.handle(Input::Close, now());
        self.act(&mut Context::from_waker(Waker::noop()));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // Each takes all there is. What comes meanwhile wakes this task.
            self.poll_deliveries(cx);
            self.poll_commands(cx);
            self.poll_finished(cx);
            // What was accepted is sent in the same turn.
            if self.out.is_due() {
                continue;
            }
            if self.closing.is_some_and(|by| self.out.is_empty() || by <= now()) {
                return Poll::Ready(());
            }
            ready!(self.poll_timer(cx));
        }
    }

    fn poll_deliveries(&mut self, cx: &mut Context<'_>) {
        self.out.begin_turn(cx);
        while let Some((key, end)) = self.out.next_end() {
            // What it reported comes before its end.
            self.poll_reports(cx);
            if let Some(in_flight) = self.out.remove(|it| it.key == key) {
                self.on_end(&in_flight, end);
                self.act(cx);
            }
        }
        self.poll_reports(cx);
        if let Some(waker) = self.out.take_stray() {
            self.post.pool.close_left(waker);
        }
    }

    fn poll_reports(&mut self, cx: &mut Context<'_>) {
        // Nobody logs in without credentials.
        while self.target.credentials.is_some()
            && let Poll::Ready(Some((post, does))) = self.people.poll_recv(cx)
        {
            self.on_people(post, does);
            self.act(cx);
        }
        // Most turns bring no report, and the channel knows already whom to wake.
        let knows = self.told.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if knows && self.reports.is_empty() {
            return;
        }
        while let Poll::Ready(Some(event)) = self.reports.poll_recv(cx) {
            self.on_event(event);
            self.act(cx);
        }
        // A task that has used up its turn is woken again, but not by the channel.
        self.told = has_budget_remaining().then(|| cx.waker().clone());
    }

    fn poll_commands(&mut self, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.lets_listen) {
            return cx.waker().wake_by_ref();
        }
        let mut turn = None;
        while let Poll::Ready(urged) = self.core.poll_next(cx, self.takes_commands(), &mut turn) {
            if urged == Some(Urged::Close) {
                self.close();
            }
            self.act(cx);
        }
    }

    /// During a handshake, or with too much in flight, senders wait.
    fn takes_commands(&self) -> bool {
        matches!(self.handshake, Handshake::Done) && self.out.len() < self.limits.requests
    }

    fn poll_finished(&mut self, cx: &mut Context<'_>) {
        while self.core.poll_finished(cx) {
            self.act(cx);
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.core.poll_timer(&mut self.timer, self.closing, cx));
        self.act(cx);
        Poll::Ready(())
    }

    /// Does everything the conversation wants done.
    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(effect) = self.core.poll(cx) {
            match effect {
                Effect::Send(Outgoing::One(message), _) => self.send(message),
                Effect::Opened(facts) => self.on_open(facts),
                Effect::Failed(error) => self.on_failed(error),
                // A client sends no batches, and the other effects are a server's.
                Effect::Send(Outgoing::Batch(_), _) | Effect::NoReply(_) | Effect::Pause { .. } => {
                }
            }
        }
    }
}

/// Sending and hearing.
impl<H: Handler> HttpDriver<H> {
    fn send(&mut self, message: Message) {
        if let Some(id) = request::cancels(&message) {
            return self.cancel(id, message);
        }
        let request = self.write(message);
        if request.method == Method::Initialize && self.known == Some(Known::Sse) {
            return self.try_stream(request, None);
        }
        let is_answer = request.method.is_empty();
        match &self.handshake {
            Handshake::Opening if request.method == Method::Initialized => self.confirm(request),
            Handshake::Opening if request.is_opening() || is_answer => drop(self.carry(request)),
            Handshake::Done => drop(self.carry(request)),
            _ if is_answer => drop(self.carry(request)),
            _ => self.held.push_back(request),
        }
    }

    fn write(&mut self, message: Message) -> PostRequest {
        let request = self.writer.write(message, &self.route);
        let text = request.text.as_ref().and_then(MessageText::whole);
        self.core.show_message(&request.message, text, None);
        request
    }

    fn carry(&mut self, request: PostRequest) -> u64 {
        let (key, id, method) = (self.next_key(), request.id, request.method.clone());
        let carrying = Arc::clone(&self.post).carry(Arc::clone(&self.route), request, key);
        let (since, route) = (self.core.moment(), Arc::clone(&self.route));
        self.out.add(InFlight { key, id, method, since, route }, carrying);
        key
    }

    fn next_key(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Cancels a request. From 2026-07-28 closing its connection says so. Before, a notification does,
    /// which must not overtake the request.
    fn cancel(&mut self, id: i64, message: Message) {
        self.held.retain(|it| it.id != Some(id));
        if let Some(session_check) = &mut self.session_check {
            session_check.doubtful.retain(|it| it.id != Some(id));
        }
        let since = self.out.remove(|it| it.id == Some(id)).map(|it| it.since);
        if self.route.era() == Some(Era::Stateless) || !matches!(self.handshake, Handshake::Done) {
            return;
        }
        let mut request = self.write(message);
        request.not_before = since.map(|it| (it + ARRIVAL).into());
        self.carry(request);
    }

    fn on_event(&mut self, DeliveryEvent { post, kind }: DeliveryEvent) {
        if self.stream.as_ref().is_some_and(|it| it.key == post) {
            return self.on_stream(kind);
        }
        let Some(in_flight) = self.out.get(post) else { return };
        match kind {
            EventKind::Session(session) => {
                self.route = Arc::new(self.route.with_session(session));
            }
            EventKind::Message(incoming) => {
                let id = in_flight.id;
                self.receive(incoming, id);
            }
            // Of a stream alone.
            EventKind::Endpoint(_) | EventKind::End(_) => {}
        }
    }

    /// The time a person takes to log in does not count against the server's deadline.
    fn on_people(&mut self, post: u64, does: bool) {
        if let Some(id) = self.out.get(post).and_then(|it| it.id) {
            self.core.conversation.waits_for_people(id, does, now());
            self.timer.reset();
        }
    }

    /// Handles a message that came on the stream of the request `id`, if on any.
    fn receive(&mut self, incoming: Incoming, id: Option<i64>) {
        let via = id
            .and_then(|it| u64::try_from(it).ok())
            .map_or(RequestStream::default(), RequestStream);
        let now = now();
        self.core.show_received(&incoming, via, now);
        self.core.handle(Input::Received(incoming, via), now);
    }

    fn on_end(&mut self, in_flight: &InFlight, end: End) {
        if matches!(self.handshake, Handshake::Confirming(key) if key == in_flight.key) {
            // Asking for yet another session could loop for ever.
            if matches!(end, End::SessionGone(_)) {
                let why = "it does not know the session that it has just opened.";
                return self.on_failed(OpenError::Invalid(why.to_owned()));
            }
            self.on_confirmed();
        }
        if self.session_check.as_ref().is_some_and(|it| it.key == in_flight.key) {
            return self.on_session_checked(&in_flight.route, &end);
        }
        match end {
            End::AnswerAndGone(incoming) => {
                self.receive(incoming, in_flight.id);
                // The next message should not meet the same failure.
                if Arc::ptr_eq(&in_flight.route, &self.route) {
                    self.check_session();
                }
            }
            End::Answer(incoming) => {
                if in_flight.method == Method::ToolsList
                    && self.route.era() == Some(Era::Stateless)
                    && let Incoming::One(Message::Response { outcome: Ok(result), .. }) = &incoming
                {
                    self.writer.learn(result);
                }
                self.receive(incoming, in_flight.id);
            }
            End::Refused { incoming, status, request } => {
                let is_old = may_be_sse(status) && !is_of_the_new_era(&incoming);
                match is_old && self.may_try_stream() {
                    true => self.try_stream(*request, Some(PostFailure::Answer(incoming))),
                    false => self.receive(incoming, in_flight.id),
                }
            }
            End::Accepted => {}
            End::SessionGone(request) => self.on_session_gone(&in_flight.route, *request),
            End::Unrecognised(error, request) => {
                let is_old = in_flight.method == Method::Initialize && may_be_sse(error.status);
                if is_old && self.may_try_stream() {
                    return self.try_stream(*request, Some(PostFailure::Status(error)));
                }
                if let Some(id) = in_flight.id {
                    self.core.conversation.unrecognised(id, error, now());
                }
            }
            End::Failed(why) => {
                if let Some(id) = in_flight.id {
                    self.core.conversation.undelivered(id, why, now());
                }
            }
        }
    }
}

/// Statuses with which an HTTP+SSE server may answer a POST where it expects a GET.
fn may_be_sse(status: u16) -> bool {
    matches!(status, 400 | 404 | 405)
}

/// Capacity of the channel of delivery reports.
const REPORTS: usize = 64;
/// How long a request may take to arrive before its cancellation follows.
const ARRIVAL: Duration = Duration::from_millis(100);
