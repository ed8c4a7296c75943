//! Messages ⇄ events. It remembers; it has no IO, no clock and no lock.
//!
//! A conversation is told what happened ([`Input`], with the time) and says what to do
//! ([`Output`]). Read [`server::Server`] first, then a transcript in `tests/it`.
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
use trunkline_wire::jsonrpc::{ErrorObject, Incoming, Message, MethodName, Object, Outcome};
use trunkline_wire::method::{Method, Row};
use trunkline_wire::model::{
    ClientCapabilities, Implementation, LogLevel, LogMessage, Progress, ServerCapabilities, Task,
};
use trunkline_wire::revision::Revision;

/// One end of a conversation, whichever role it plays.
pub trait Conversation {
    /// Takes in what happened. Drain [`Self::poll`] afterwards.
    fn handle(&mut self, input: Input, now: Instant);

    /// The next thing to do outside, if any.
    fn poll(&mut self) -> Option<Output>;

    /// When to call [`Self::handle`] with [`Input::Tick`].
    fn next_timeout(&self) -> Option<Instant>;

    /// How many calls of the peer are being answered.
    fn open_calls(&self) -> usize;

    /// Whether an answer of the peer is awaited, so that its messages must be read come what may.
    fn is_waiting(&self) -> bool;
}

/// A call of the peer that we answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub u64);

/// The way a message came, and the way its answer goes: over HTTP each POST is one; a pipe is one
/// as a whole. Where a client hears something on the stream of a POST of its own, the number is the
/// id of the request that it posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestStream(pub u64);

/// A call of ours that the peer answers; whoever makes the call picks the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What happened outside.
#[derive(Debug)]
pub enum Input {
    /// The peer sent a text.
    Received(Incoming, RequestStream),
    /// A handler has its answer.
    Finished {
        /// Which call it answers.
        call: CallKey,
        /// The answer.
        outcome: Outcome,
    },
    /// A handler speaks while it works.
    Said {
        /// Which call it works on.
        call: CallKey,
        /// What it says.
        what: HandlerEvent,
    },
    /// Somebody here wants to call the peer.
    Ask(Ask),
    /// Nobody here waits for that call any more.
    Cancel(Ticket),
    /// Something that peers may listen to has changed.
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
    /// The conversation should end in good order.
    Close,
}

impl Input {
    /// The peer sent a text the only way there is.
    pub fn received(incoming: Incoming) -> Self {
        Self::Received(incoming, RequestStream::default())
    }
}

/// What to do outside.
#[derive(Debug)]
pub enum Output {
    /// Send this: the way the request came that it is about, or any way if it is about none.
    Send(Outgoing, Option<RequestStream>),
    /// What came this way gets no answer: it was cancelled.
    NoReply(RequestStream),
    /// The client may hang up on what came this way and ask for the rest later.
    Pause {
        /// Which way.
        via: RequestStream,
        /// When to come back.
        retry: Duration,
    },
    /// Have this call answered; tell the answer with [`Input::Finished`].
    Call(Box<Call>),
    /// Stop answering that call; its answer is no longer wanted.
    Abandon(CallKey),
    /// A call of ours is over.
    Settled {
        /// Which one.
        ticket: Ticket,
        /// What it came to.
        outcome: Result<Json, CallError>,
    },
    /// The peer told us something.
    Heard(PeerNotification),
    /// The client's handshake is done.
    Opened(Arc<client::Opened>),
    /// The client's handshake failed; the conversation is over.
    Failed(client::OpenError),
}

/// What goes out as one text.
#[derive(Clone, Debug, PartialEq)]
pub enum Outgoing {
    /// A message.
    One(Message),
    /// The answers to a batch.
    Batch(Vec<Message>),
}

impl Outgoing {
    /// How many bytes [`Self::write`] appends: exactly, for nearly every result.
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
}

/// A call of the peer, checked and ready to be answered.
#[derive(Clone, Debug)]
pub struct Call {
    /// Names the call in [`Input::Finished`].
    pub key: CallKey,
    /// The method's row in the table.
    pub method: &'static Row,
    /// Its parameters, without `_meta`.
    pub params: Object,
    /// The `_meta` of the request.
    pub meta: Option<Json>,
    /// The revision this call speaks.
    pub revision: Revision,
    /// Who calls.
    pub peer: Arc<Peer>,
    /// Whether the caller wants to hear of progress.
    pub wants_progress: bool,
    /// The least severe log message the caller wants. `None` is no log at all in 2026-07-28, and what the
    /// server decides before.
    pub log_level: Option<LogLevel>,
    /// What the transport attached to the request. Nothing here looks into it.
    pub attached: Attached,
}

/// What a transport knows of a request besides its text, such as who was let in with it. Cheap to
/// clone, carried past everything that decides.
#[derive(Clone, Default)]
pub struct Attached(Option<Arc<dyn Any + Send + Sync>>);

impl Attached {
    /// Attaches `it`.
    pub fn new(it: impl Any + Send + Sync) -> Self {
        Self(Some(Arc::new(it)))
    }

    /// What was attached, if it is a `T`.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Attached" } else { "Nothing" })
    }
}

/// What we know of the other side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peer {
    /// How it names itself. Self-reported: never decide on it.
    pub info: Option<Implementation>,
    /// What it can do, if it is a client.
    pub client: ClientCapabilities,
    /// What it can do, if it is a server.
    pub server: ServerCapabilities,
}

/// What a handler can say while it works.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum HandlerEvent {
    Progress(Progress),
    Log(LogMessage),
    /// It will take a while: the client need not hold its connection open.
    Pause(Duration),
}

/// A call of ours, to be made.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Our name for it.
    pub ticket: Ticket,
    /// The call of the peer during which we ask, if any.
    pub during: Option<CallKey>,
    /// The method.
    pub method: MethodName,
    /// Its parameters, with whatever `_meta` the caller adds.
    pub params: Object,
    /// Whether to ask for progress.
    pub wants_progress: bool,
    /// How long to wait; the conversation's own bounds if absent.
    pub timing: Option<Timing>,
    /// What is attached to the questions of the peer that belong to it, as far as that can be told.
    pub attached: Attached,
    /// Whether an answer that asks back (`input_required`) is handed on as it is, instead of
    /// having its questions answered here.
    pub relays: bool,
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Without a sign of life.
    pub idle: Duration,
    /// In all, whatever the progress.
    pub hard: Duration,
}

impl Timing {
    /// What holds unless somebody says otherwise.
    pub const DEFAULT: Self =
        Self { idle: Duration::from_secs(60), hard: Duration::from_secs(600) };
}

impl Default for Timing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The numbers that bound a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long a call may take.
    pub call: Timing,
    /// How long a handshake may take.
    pub open: Duration,
    /// How long to wait for an answer to the probe before taking silence for an old server.
    pub probe: Duration,
    /// How many calls of the peer may be open at once.
    pub in_flight: usize,
    /// How many messages a batch may hold.
    pub batch: usize,
    /// How many bytes its answers may have together; one may have any number.
    pub batch_bytes: usize,
    /// How many subscriptions a peer may hold.
    pub subscriptions: usize,
    /// How often a call may come back with questions.
    pub rounds: u32,
}

impl Bounds {
    /// What holds unless somebody says otherwise. The limits of transports take their defaults from here.
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

/// Something that peers may listen to.
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
    /// What was asked of the user at a URL is done (2025-11-25).
    ElicitationComplete(String),
}

/// A notification from the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerNotification {
    /// The call of ours it belongs to, if it says so.
    pub ticket: Option<Ticket>,
    /// Its method.
    pub method: Method,
    /// Its parameters.
    pub params: Object,
    /// What is known of a client that subscribes.
    pub peer: Option<Arc<Peer>>,
}

/// Why a call of ours has no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// The peer answered with an error.
    Peer(ErrorObject),
    /// It was not sent: the revision or the peer cannot do it.
    Refused(ErrorObject),
    /// The peer's answer breaks the protocol.
    Invalid(String),
    /// No answer in time.
    TimedOut,
    /// Given up on this side.
    Cancelled,
    /// The connection ended before the answer came: whether the call was carried out is not known.
    Closed,
    /// The server refused it with an HTTP status.
    Http(client::HttpError),
    /// Nothing was found that lets the call in: it was not carried out. In words.
    Credentials(String),
    /// The server could not be reached, or the connection had ended: the call was not made. In words.
    Unreachable(String),
    /// The answer was lost on its way: whether the call was carried out is not known. In words.
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

/// What a response comes to: MCP's results are objects.
fn checked(outcome: Outcome) -> Result<Json, CallError> {
    match outcome {
        Ok(result) if !result.is_object() => {
            Err(CallError::Invalid("a result must be an object.".to_owned()))
        }
        outcome => outcome.map_err(CallError::Peer),
    }
}
