//! Recorded messages → a transcript to read and to compare.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The messages between a client and its server, after the handshake.
///
/// ```
/// # use trunkline::testing::{self, Transport};
/// # use trunkline::{Revision, Server, tool};
/// # let server = || Server::builder("clock", "1.0.0").tool(tool("now", async || "noon").about("The time.")).build();
/// testing::run(Revision::V2026_07_28, Transport::Stdio, server, async |peer| {
///     peer.call_tool("now", ()).await.unwrap();
///     let transcript = peer.transcript();
///     assert_eq!(transcript.outline(), "> tools/call now\n< result");
///     assert!(transcript.lines()[0].by_client);
///     assert!(transcript.to_string().contains("\"noon\""));
/// });
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript(Vec<Line>);

/// One message.
///
/// ```
/// # use trunkline::{*, testing::*};
/// # let server = || Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// run(Revision::LATEST, Transport::Memory, server, async |peer| {
///     peer.call_tool("now", ()).await.unwrap();
///     let transcript = peer.transcript();
///     let line = &transcript.lines()[0];
///     assert!(line.by_client && line.message["method"] == "tools/call");
/// });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// Whether the client sent it.
    pub by_client: bool,
    /// The message. Sealed state of the server, which differs each time, is `…`.
    pub message: Value,
}

impl Transcript {
    /// The messages in order.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("empty", "1.0.0").build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     peer.ping().await.unwrap();
    ///     assert_eq!(peer.transcript().lines().len(), 2, "a question and its answer");
    /// });
    /// ```
    pub fn lines(&self) -> &[Line] {
        &self.0
    }

    /// A short form of each message, one per line: `> tools/call book`, `< notifications/progress`,
    /// `< result`. The client's messages begin with `>`.
    ///
    /// ```
    /// # use trunkline::{*, testing::*};
    /// # let server = || Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// run(Revision::LATEST, Transport::Memory, server, async |peer| {
    ///     assert!(peer.call_tool("then", ()).await.is_err());
    ///     assert_eq!(peer.transcript().outline(), "> tools/call then\n< error -32602");
    /// });
    /// ```
    pub fn outline(&self) -> String {
        let lines: Vec<_> = self.0.iter().map(Line::outline).collect();
        lines.join("\n")
    }
}

/// Every message as JSON, one per line.
impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line) in self.0.iter().enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            write!(f, "{end}{} {}", line.mark(), line.message)?;
        }
        Ok(())
    }
}

impl Line {
    fn mark(&self) -> char {
        if self.by_client { '>' } else { '<' }
    }

    fn outline(&self) -> String {
        let (mark, message) = (self.mark(), &self.message);
        if let Some(method) = message["method"].as_str() {
            let params = &message["params"];
            let about = params["name"].as_str().or(params["uri"].as_str());
            return match about {
                Some(about) => format!("{mark} {method} {about}"),
                None => format!("{mark} {method}"),
            };
        }
        match (&message["error"]["code"], message["result"]["resultType"].as_str()) {
            (Value::Null, None | Some("complete")) => format!("{mark} result"),
            (Value::Null, Some(kind)) => format!("{mark} result {kind}"),
            (code, _) => format!("{mark} error {code}"),
        }
    }
}

/// Records messages. Clones share one record.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<Recording>>);

#[derive(Debug, Default)]
struct Recording {
    lines: Vec<Line>,
    /// Requests of the handshake without an answer yet.
    opening: Vec<Value>,
    /// Whether the handshake began with `server/discover`.
    has_begun: bool,
}

impl Recorder {
    pub(super) fn read(&self) -> Transcript {
        Transcript(self.lock().lines.clone())
    }

    /// Records one text; what is not JSON is not MCP.
    pub(super) fn take(&self, by_client: bool, text: &[u8]) {
        if let Ok(message) = serde_json::from_slice::<Value>(text) {
            let mut taken = self.lock();
            match message {
                Value::Array(batch) => batch.into_iter().for_each(|it| taken.take(by_client, it)),
                one => taken.take(by_client, one),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    fn take(&mut self, by_client: bool, mut message: Value) {
        if self.is_handshake(by_client, &message) {
            return;
        }
        for part in ["params", "result"] {
            if let Some(state) = message.get_mut(part).and_then(|it| it.get_mut("requestState")) {
                *state = "…".into();
            }
        }
        self.lines.push(Line { by_client, message });
    }

    fn is_handshake(&mut self, by_client: bool, message: &Value) -> bool {
        let id = message.get("id");
        match message["method"].as_str() {
            Some("notifications/initialized") => true,
            Some("initialize" | "server/discover" | "logging/setLevel") if !self.has_begun => {
                self.opening.extend(id.cloned());
                true
            }
            Some(_) => {
                // A client that sends any other message has finished its handshake.
                self.has_begun |= by_client;
                false
            }
            None if !by_client => {
                let at = self.opening.iter().position(|it| Some(it) == id);
                at.map(|at| self.opening.swap_remove(at)).is_some()
            }
            None => false,
        }
    }

    /// From here on every message belongs to the test.
    fn begin(&mut self) {
        self.has_begun = true;
    }
}

impl Recorder {
    /// The handshake is over.
    pub(super) fn begin(&self) {
        self.lock().begin();
    }
}
