//! What a client is, how it begins, and what the handshake finds.

use trunkline_wire::model::{ClientCapabilities, Implementation, LogLevel, ServerCapabilities};
use trunkline_wire::revision::{Era, Revision, Revisions};

use crate::Bounds;

/// The facts about a client that the conversation needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The revisions it is willing to speak.
    pub revisions: Revisions,
    /// The era to try first. Prefer the stateful era where the server speaks both and may ask in the
    /// middle of a call; the client then falls back to the stateless one.
    pub prefers: Era,
    /// How it names itself.
    pub info: Implementation,
    /// What it can be asked.
    pub capabilities: ClientCapabilities,
    /// The least severe log message it wants from a stateless server; `None` for no log.
    pub log_level: Option<LogLevel>,
    /// Whether notifications that name no call are attributed to the only open call. That is right for
    /// a single host. A client that calls on behalf of several must not guess: the server may mean a
    /// call that it has already answered.
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

/// What the handshake found.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The negotiated revision.
    pub revision: Revision,
    /// How the server names itself.
    pub info: Option<Implementation>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    pub instructions: Option<String>,
}

/// Where a handshake over HTTP begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the probe for the era.
    #[default]
    Probe,
    /// With `initialize`: the server is known to be stateful.
    Initialize,
}
