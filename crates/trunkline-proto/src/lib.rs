//! Messages ⇄ events: the protocol's state machines, without IO, clock or lock.
//!
//! A conversation takes what happened ([`Input`], with the time) and returns what to do ([`Output`]).
//! Read [`server::Server`] first, then a transcript in `tests/it`.
//!
//! ```
//! use std::{sync::Arc, time::Instant};
//! use trunkline_proto::server::{Config, Server};
//! use trunkline_proto::{Conversation, Input, Output};
//! use trunkline_wire::{jsonrpc::Incoming, model::Implementation};
//!
//! let mut server = Server::new(Arc::new(Config::new(Implementation::new("travel", "1.0"))));
//! let ping = Incoming::parse(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
//! server.handle(Input::received(ping), Instant::now());
//! assert!(matches!(server.poll(), Some(Output::Send(..))), "a ping is answered");
//! ```

#![forbid(unsafe_code)]

pub mod budget;
pub mod client;
#[cfg(feature = "http")]
pub mod http;
pub mod input_required;
mod pending;
mod queue;
pub mod server;
pub mod subscribe;
pub mod task;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{
    ErrorObject, Id, Incoming, LeftOut, Message, MethodName, Object, Outcome,
};
use trunkline_wire::method::{Method, Row};
use trunkline_wire::model::{
    ClientCapabilities, Implementation, LogLevel, LogMessage, Progress, ServerCapabilities, Task,
};
use trunkline_wire::revision::Revision;

/// One end of a conversation, client or server.
pub trait Conversation {
    /// Says that all messages share one stream, of which the peer reads several at once.
    fn shares_one_stream(&mut self) {}

    /// Handles an event. Drain [`Self::poll`] afterwards.
    fn handle(&mut self, input: Input, now: Instant);

    /// The next action for the driver, if any.
    fn poll(&mut self) -> Option<Output>;

    /// When to call [`Self::handle`] with [`Input::Tick`].
    fn next_timeout(&self) -> Option<Instant>;

    /// The same moment or an earlier one: beside thousands of calls that is cheaper to find. A tick that comes too early
    /// does nothing.
    fn not_before(&mut self) -> Option<Instant> {
        self.next_timeout()
    }

    /// How many calls of the peer are owed an answer.
    fn open_calls(&self) -> usize;

    /// Whether the peer owes us an answer, so that its messages must be read in any case.
    fn is_waiting(&self) -> bool;

    /// What our request of this id belongs to, while its answer is owed.
    fn cause_of(&self, _id: &Id) -> Option<Cause<'_>> {
        None
    }

    /// Whether we owe the peer the answer to its request of this id.
    fn owes(&self, _id: &Id) -> bool {
        false
    }
}

/// What a request of ours, or an error, belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Cause<'a> {
    /// Our caller attached this to the request.
    Attached(&'a Attached),
    /// We ask during the peer's request of this id.
    During(&'a Id),
    /// The error is for another message than the peer's request of its id, whose answer is still owed.
    Beside,
}

/// Identifies a call of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub u64);

/// The stream a message came on, which its answer uses too: over HTTP each POST is one; a pipe is a
/// single one. For a client over HTTP, the number is the id of the request whose response carries the
/// message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestStream(pub u64);

/// Identifies a call of ours; the caller picks the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// An event that the driver reports.
#[derive(Debug)]
pub enum Input {
    /// The peer sent a text.
    Received(Incoming, RequestStream),
    /// A handler has finished.
    Finished {
        /// The call it answers.
        call: CallKey,
        /// The answer.
        outcome: Outcome,
    },
    /// A handler sends an event during its call.
    Said {
        /// The call.
        call: CallKey,
        /// The event.
        what: HandlerEvent,
    },
    /// Code on this side wants to call the peer.
    Ask(Ask),
    /// The caller of that call stopped waiting.
    Cancel(Ticket),
    /// Something that peers may subscribe to has changed.
    Changed(Change),
    /// Send this notification, if the revision has it.
    Notify {
        /// Its method.
        method: Method,
        /// Its parameters.
        params: Object,
    },
    /// A deadline may have passed.
    Tick,
    /// Close the conversation gracefully.
    Close,
}

impl Input {
    /// A text of the peer on a transport with a single stream.
    #[inline]
    pub fn received(incoming: Incoming) -> Self {
        Self::Received(incoming, RequestStream::default())
    }
}

/// An action for the driver.
#[derive(Debug)]
pub enum Output {
    /// Send this: on the stream of the request it is about, or on any if it is about none.
    Send(Outgoing, Option<RequestStream>),
    /// The request on this stream gets no answer: it was cancelled.
    NoReply(RequestStream),
    /// The client of this stream may disconnect and resume later.
    Pause {
        /// The stream.
        via: RequestStream,
        /// The delay before it reconnects.
        retry: Duration,
    },
    /// Run the handler of this call; report its end with [`Input::Finished`].
    Call(Call),
    /// Stop the handler of that call; its answer is no longer wanted.
    Abandon(CallKey),
    /// A call of ours is over.
    Settled {
        /// The call.
        ticket: Ticket,
        /// Its outcome.
        outcome: Result<Json, CallError>,
    },
    /// The peer sent a notification.
    Heard(PeerNotification),
    /// The client's handshake is done.
    Opened(Arc<client::Opened>),
    /// The client's handshake failed; the conversation is over.
    Failed(client::OpenError),
}

/// What is sent as one text.
#[derive(Clone, Debug, PartialEq)]
pub enum Outgoing {
    /// A message.
    One(Message),
    /// The answers to a batch.
    Batch(Vec<Message>),
}

impl Outgoing {
    /// The number of bytes that [`Self::write`] appends: exact for nearly every result.
    pub fn size(&self) -> usize {
        match self {
            Self::One(message) => message.size(),
            Self::Batch(messages) => messages.iter().map(|it| it.size() + 1).sum::<usize>() + 1,
        }
    }

    /// Appends the JSON text.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::One(message) => message.write(out),
            Self::Batch(messages) => {
                for (at, message) in messages.iter().enumerate() {
                    out.push(if at == 0 { b'[' } else { b',' });
                    message.write(out);
                }
                out.push(b']');
            }
        }
    }

    /// Appends the JSON text without the long value of a single message, if it has one: that can be sent from where it is.
    pub fn write_around(&self, out: &mut Vec<u8>) -> Option<LeftOut> {
        match self {
            Self::One(message) => message.write_around(out),
            Self::Batch(_) => {
                self.write(out);
                None
            }
        }
    }
}

/// A call of the peer, validated and ready for its handler.
#[derive(Clone, Debug)]
pub struct Call {
    /// Names the call in [`Input::Finished`].
    pub key: CallKey,
    /// The id of the peer's request.
    pub id: Id,
    /// The method's row in the table.
    pub method: &'static Row,
    /// Its parameters, without `_meta`.
    pub params: Object,
    /// The `_meta` of the request.
    pub meta: Option<Json>,
    /// The revision this call speaks.
    pub revision: Revision,
    /// The caller.
    pub peer: Arc<Peer>,
    /// The stream that its request came on.
    pub via: RequestStream,
    /// Whether nobody has been shown the request whose text it shares: whoever watches the conversation learns of it
    /// from the handler.
    pub is_unseen: bool,
    /// Whether the caller asked for progress.
    pub wants_progress: bool,
    /// The least severe log message the caller wants. `None` means no log in 2026-07-28, and the
    /// server's choice before.
    pub log_level: Option<LogLevel>,
    /// What the transport attached to the request, opaque here.
    pub attached: Attached,
}

impl Call {
    /// The text that its request was read from, if it shares that. Ask before its parameters are changed.
    #[inline]
    pub fn text_read(&self) -> Option<&Arc<str>> {
        self.params.text_read().or_else(|| self.meta.as_ref()?.whole())
    }
}

/// What a transport knows about a request besides its text, such as the principal. Cheap to clone, and
/// opaque to the code that decides.
#[derive(Clone, Default)]
pub struct Attached(Option<Arc<dyn Any + Send + Sync>>);

impl Attached {
    /// Attaches `it`.
    pub fn new(it: impl Any + Send + Sync) -> Self {
        Self(Some(Arc::new(it)))
    }

    /// Attaches a value that others have too.
    pub fn shared(it: Arc<impl Any + Send + Sync>) -> Self {
        Self(Some(it))
    }

    /// The attached value with its count, if it is a `T`.
    pub fn get_shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.get::<T>()?;
        Arc::clone(self.0.as_ref()?).downcast().ok()
    }

    /// The attached value, if it is a `T`.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Attached" } else { "Nothing" })
    }
}

/// What we know about the peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peer {
    /// How it names itself. Self-reported: never base a decision on it.
    pub info: Option<Implementation>,
    /// Its capabilities, if it is a client.
    pub client: ClientCapabilities,
    /// Its capabilities, if it is a server.
    pub server: ServerCapabilities,
}

/// An event that a handler sends during its call.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum HandlerEvent {
    Progress(Progress),
    Log(LogMessage),
    /// The call takes a while: the client may disconnect and resume (SEP-1699).
    Pause(Duration),
}

/// A call of ours.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Identifies it.
    pub ticket: Ticket,
    /// The peer's call during which we ask, if any.
    pub during: Option<CallKey>,
    /// The method.
    pub method: MethodName,
    /// Its parameters, with the caller's `_meta`.
    pub params: Object,
    /// Whether to ask for progress.
    pub wants_progress: bool,
    /// The deadlines; those of the conversation if absent.
    pub timing: Option<Timing>,
    /// Attached to the peer's questions that can be attributed to this call.
    pub attached: Attached,
    /// Whether an `input_required` result is returned as it is, instead of its questions being answered
    /// here.
    pub relays: bool,
}

/// The deadlines of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Without activity.
    pub idle: Duration,
    /// In total, whatever the progress.
    pub hard: Duration,
}

impl Timing {
    /// The default.
    pub const DEFAULT: Self =
        Self { idle: Duration::from_secs(60), hard: Duration::from_secs(600) };
}

impl Default for Timing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The bounds of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long a call may take.
    pub call: Timing,
    /// How long a handshake may take.
    pub open: Duration,
    /// How long the probe may stay unanswered before silence means an old server.
    pub probe: Duration,
    /// How many calls of the peer may be open at once.
    pub in_flight: usize,
    /// How many messages a batch may have.
    pub batch: usize,
    /// How many bytes its responses may have together; a single one is not bounded.
    pub batch_bytes: usize,
    /// How many subscriptions a peer may hold.
    pub subscriptions: usize,
    /// How often one call may be answered with `input_required`.
    pub rounds: u32,
}

impl Bounds {
    /// The defaults. The transports' limits take theirs from here.
    pub const DEFAULT: Self = Self {
        call: Timing::DEFAULT,
        open: Duration::from_secs(30),
        probe: Duration::from_secs(5),
        in_flight: 64,
        batch: 100,
        batch_bytes: 1 << 20,
        subscriptions: 1024,
        rounds: 10,
    };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A change that peers may subscribe to.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The content of one resource.
    Resource(String),
    /// The state of a task; the text is the detailed form of the 2026-07-28 extension.
    Task(Box<Task>, Json),
    /// The user has completed a URL-mode elicitation (2025-11-25).
    ElicitationComplete(String),
}

/// A notification from the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerNotification {
    /// Our call that it belongs to, if it names one.
    pub ticket: Option<Ticket>,
    /// Its method.
    pub method: Method,
    /// Its parameters.
    pub params: Object,
    /// The peer, for a client that subscribes.
    pub peer: Option<Arc<Peer>>,
}

/// Why a call of ours has no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// The peer answered with an error.
    Peer(ErrorObject),
    /// It was not sent: the revision or the peer does not support it.
    Refused(ErrorObject),
    /// The peer's answer breaks the protocol.
    Invalid(String),
    /// No answer in time.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
    /// The connection ended before the answer: the call may have been carried out.
    Closed,
    /// The server refused it with an HTTP status.
    Http(client::HttpError),
    /// No credentials were accepted: the call was not carried out. A sentence.
    Credentials(String),
    /// The server could not be reached, or the connection had ended: the call was not made. A sentence.
    Unreachable(String),
    /// The answer was lost: the call may have been carried out. A sentence.
    Lost(String),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Peer(error) => write!(f, "The peer answered with an error: {error}"),
            Self::Refused(error) => write!(f, "The call was not sent: {}", error.message),
            Self::Invalid(why) => write!(f, "The peer's answer breaks the protocol: {why}"),
            Self::TimedOut => f.write_str("The peer did not answer in time."),
            Self::Cancelled => f.write_str("The call was cancelled."),
            Self::Closed => f.write_str("The connection ended before the answer came."),
            Self::Http(error) => error.fmt(f),
            Self::Credentials(why) => f.write_str(why),
            Self::Unreachable(why) => {
                write!(f, "The server cannot be reached, the call was not made: {why}")
            }
            Self::Lost(why) => {
                write!(f, "The answer was lost, the call may have been carried out: {why}")
            }
        }
    }
}

impl std::error::Error for CallError {}

/// Checks a response: MCP's results are objects.
fn checked(outcome: Outcome) -> Result<Json, CallError> {
    match outcome {
        Ok(result) if !result.is_object() => {
            Err(CallError::Invalid("a result must be an object.".to_owned()))
        }
        outcome => outcome.map_err(CallError::Peer),
    }
}
