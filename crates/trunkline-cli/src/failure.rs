//! What went wrong → an exit code, and what to tell the person: stage, cause, what to do.

use std::fmt;

use trunkline::client::{CallError, Client, ConnectCause, ConnectError};

/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// There is no connection.
pub(crate) const CONNECT: u8 = 3;
/// The server answered with an error.
pub(crate) const PEER: u8 = 4;
/// It took too long.
pub(crate) const TIMEOUT: u8 = 5;

/// Why the command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// What was being done: `spawn`, `handshake`, `tools/call` …
    pub(crate) stage: String,
    pub(crate) cause: String,
    pub(crate) advice: Option<String>,
    /// The last lines of the server's stderr.
    pub(crate) stderr: Vec<String>,
}

impl Failure {
    pub(crate) fn usage(cause: impl Into<String>) -> Self {
        let stage = "usage".to_owned();
        Self { code: USAGE, stage, cause: cause.into(), advice: None, stderr: Vec::new() }
    }

    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// A call that came to nothing.
    pub(crate) fn call(stage: &str, error: &CallError, client: &Client) -> Self {
        let (code, advice) = match error {
            CallError::TimedOut => (TIMEOUT, Some("Give it more time with `--timeout SECONDS`.")),
            CallError::Closed => {
                (CONNECT, Some("Run the command in a terminal to see why it ends."))
            }
            // Not offered; a question that the host refused has another code.
            CallError::Refused(error) if error.code == -32600 => {
                (PEER, Some("See what it offers with `trunkline list -- COMMAND`."))
            }
            CallError::Peer(error) if error.code == -32602 => {
                (PEER, Some("See names and arguments with `trunkline list -- COMMAND`."))
            }
            CallError::Invalid(_) | CallError::Decode { .. } => {
                (PEER, Some("Tell whoever wrote the server."))
            }
            _ => (PEER, None),
        };
        Self {
            code,
            stage: stage.to_owned(),
            cause: error.to_string(),
            advice: advice.map(str::to_owned),
            stderr: lines(client.stderr()),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let advice = error.advice().map(str::to_owned);
        let cause = match &error.cause {
            ConnectCause::Handshake(cause) => match (&error.command, error.exit) {
                (Some(command), Some(exit)) => format!("{cause} `{command}` {exit}."),
                (Some(command), None) => format!("{cause} It was started as `{command}`."),
                _ => cause.to_string(),
            },
            ConnectCause::Spawn(cause) => cause.to_string(),
            cause => format!("{cause:?}"),
        };
        let code = if error.is_timeout() { TIMEOUT } else { CONNECT };
        Self { code, stage: error.stage().to_owned(), cause, advice, stderr: lines(error.stderr) }
    }
}

fn lines(mut stderr: Vec<String>) -> Vec<String> {
    stderr.retain(|line| !line.trim().is_empty());
    stderr
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.cause)
    }
}

impl std::error::Error for Failure {}
