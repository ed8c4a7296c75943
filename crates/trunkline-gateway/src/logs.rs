//! What servers wrote to stderr and what the gateway has to say of them, the last of it kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::broadcast;

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct Logged {
    /// When.
    pub at: String,
    /// Of which server.
    pub server: String,
    /// Which instance wrote it; none for the gateway itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<u64>,
    /// `stderr`, `log` (a log message that could be told to nobody) or `gateway`.
    pub source: &'static str,
    /// What.
    pub line: String,
}

impl Logged {
    pub(crate) fn stderr(server: &str, instance: u64, line: String) -> Self {
        Self { instance: Some(instance), line, ..Self::gateway(server, "") }.from("stderr")
    }

    pub(crate) fn message(server: &str, instance: u64, line: String) -> Self {
        Self::stderr(server, instance, line).from("log")
    }

    pub(crate) fn gateway(server: &str, line: &str) -> Self {
        Self {
            at: crate::policy::stamp::rfc3339(SystemTime::now()),
            server: server.to_owned(),
            instance: None,
            source: "gateway",
            line: line.to_owned(),
        }
    }

    fn from(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }
}

/// The last lines.
pub(crate) struct Logs {
    last: Mutex<VecDeque<Arc<Logged>>>,
    news: broadcast::Sender<Arc<Logged>>,
}

impl Default for Logs {
    fn default() -> Self {
        Self { last: Mutex::default(), news: broadcast::channel(1024).0 }
    }
}

impl Logs {
    pub(crate) fn add(&self, logged: Logged) {
        let logged = Arc::new(logged);
        // Under the lock, so that a follower misses no line and sees none twice.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= KEPT {
            last.pop_front();
        }
        last.push_back(Arc::clone(&logged));
        // Nobody may be listening.
        let _ = self.news.send(logged);
    }

    /// The last lines of a server, or of all, and those to come.
    pub(crate) fn follow(
        &self,
        server: Option<&str>,
    ) -> (Vec<Arc<Logged>>, broadcast::Receiver<Arc<Logged>>) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = last.iter().filter(|it| server.is_none_or(|name| it.server == name));
        (wanted.cloned().collect(), self.news.subscribe())
    }
}

const KEPT: usize = 2000;
