//! A ring of the last lines that servers wrote to stderr and that the gateway logged about them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::broadcast;

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct Logged {
    /// The time.
    pub at: String,
    /// The server.
    pub server: String,
    /// The instance that wrote it; `None` for the gateway itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<u64>,
    /// `stderr`, `log` (a log message that could be routed to no caller) or `gateway`.
    pub source: &'static str,
    /// The text.
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
    last: Mutex<Last>,
    updates: broadcast::Sender<Arc<Logged>>,
}

#[derive(Default)]
struct Last {
    lines: VecDeque<Arc<Logged>>,
    bytes: usize,
}

impl Default for Logs {
    fn default() -> Self {
        Self { last: Mutex::default(), updates: broadcast::channel(1024).0 }
    }
}

impl Logs {
    pub(crate) fn add(&self, mut logged: Logged) {
        if logged.line.len() > LONGEST {
            logged.line.truncate(logged.line.floor_char_boundary(LONGEST));
            logged.line.push('…');
            logged.line.shrink_to_fit();
        }
        let logged = Arc::new(logged);
        // Under the lock, so that a follower neither misses a line nor gets one twice.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.bytes += logged.line.len();
        last.lines.push_back(Arc::clone(&logged));
        while last.lines.len() > KEPT || last.bytes > BYTES {
            let Some(oldest) = last.lines.pop_front() else { break };
            last.bytes -= oldest.line.len();
        }
        // There may be no follower.
        let _ = self.updates.send(logged);
    }

    /// The last lines of a server, or of all, and those to come.
    pub(crate) fn follow(
        &self,
        server: Option<&str>,
    ) -> (Vec<Arc<Logged>>, broadcast::Receiver<Arc<Logged>>) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = last.lines.iter().filter(|it| server.is_none_or(|name| it.server == name));
        (wanted.cloned().collect(), self.updates.subscribe())
    }
}

/// The bounds in lines and bytes; longer lines are cut.
const KEPT: usize = 2000;
const BYTES: usize = 2 << 20;
const LONGEST: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_bounded_in_lines_and_bytes() {
        let logs = Logs::default();
        let kept = || logs.follow(None).0;
        (0..3000).for_each(|it| logs.add(Logged::gateway("time", &it.to_string())));
        assert_eq!((kept().len(), &*kept()[0].line), (KEPT, "1000"));
        (0..1000).for_each(|_| logs.add(Logged::message("time", 1, "é".repeat(1 << 20))));
        let kept = kept();
        assert!(kept.iter().map(|it| it.line.len()).sum::<usize>() <= BYTES);
        assert!(kept.iter().all(|it| it.line.len() <= LONGEST + 3 && it.line.ends_with('…')));
        assert!(kept.len() > 500, "{}", kept.len());
    }
}
