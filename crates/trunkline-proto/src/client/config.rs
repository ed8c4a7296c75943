//! What a client is and how it begins; what the handshake finds out.

use trunkline_wire::model::{ClientCapabilities, Implementation, LogLevel, ServerCapabilities};
use trunkline_wire::revision::{Era, Revision, Revisions};

use crate::Bounds;

/// What a client is, as far as the conversation needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The revisions it is willing to speak.
    pub revisions: Revisions,
    /// The era that it begins with. The old one where the server speaks both and may want to ask in the
    /// middle of a call; a server that does not speak it is asked for the new one.
    pub prefers: Era,
    /// How it names itself.
    pub info: Implementation,
    /// What it can be asked.
    pub capabilities: ClientCapabilities,
    /// The least severe log message it wants from a stateless server; `None` for no log.
    pub log_level: Option<LogLevel>,
    /// Whether what a server says without naming a call is taken to be about the only call there is.
    /// Right for one host. Whoever calls on behalf of several must not guess: the server may be
    /// talking about a call that it has answered.
    pub assumes_only_call: bool,
    /// The bounds of the conversation.
    pub bounds: Bounds,
}

impl Config {
    /// A client that speaks every revision and answers no questions.
    pub fn new(info: Implementation) -> Self {
        Self {
            revisions: Revisions::ALL,
            prefers: Era::Stateless,
            info,
            capabilities: ClientCapabilities::default(),
            log_level: None,
            assumes_only_call: true,
            bounds: Bounds::default(),
        }
    }
}

/// What the handshake found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The revision spoken from now on.
    pub revision: Revision,
    /// How the server names itself.
    pub info: Option<Implementation>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// What a model should know about it.
    pub instructions: Option<String>,
}

/// Where a handshake over HTTP begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the question which era the server speaks.
    #[default]
    Probe,
    /// With `initialize`: the server is known to be an old one.
    Initialize,
}
