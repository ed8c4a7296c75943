//! The changes of recorded calls → events for whoever follows them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{sleep, timeout};

use super::filter::TrafficFilter;
use super::{CallEntry, Traffic};
use crate::policy::hidden::escape_json;

/// Follows recorded calls.
pub struct TrafficUpdates {
    traffic: Arc<Traffic>,
    updates: broadcast::Receiver<Arc<CallEntry>>,
    filter: TrafficFilter,
    replica: Option<String>,
}

impl TrafficUpdates {
    /// Follows the calls that fit, from now on.
    pub(crate) fn new(
        traffic: &Arc<Traffic>,
        filter: TrafficFilter,
        replica: Option<String>,
    ) -> Self {
        traffic.followers.fetch_add(1, Ordering::Relaxed);
        Self { updates: traffic.follow(), traffic: Arc::clone(traffic), filter, replica }
    }

    /// The next events as they are sent, or a comment after a while without any.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let first = match timeout(HEARTBEAT, self.updates.recv()).await {
                Ok(Ok(first)) => first,
                Ok(Err(RecvError::Lagged(missed))) => return Some(dropped(missed)),
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) => return Some(b":\n\n".to_vec()),
            };
            // Calls that change together are told together, and each once.
            sleep(TOGETHER).await;
            let (mut changed, mut missed) = (vec![first], 0);
            while changed.len() < MOST {
                match self.updates.try_recv() {
                    Ok(entry) => changed.push(entry),
                    Err(TryRecvError::Lagged(more)) => missed += more,
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            let piece = self.events(&changed, missed);
            if !piece.is_empty() {
                return Some(piece);
            }
        }
    }

    fn events(&self, changed: &[Arc<CallEntry>], missed: u64) -> Vec<u8> {
        let mut out = if missed > 0 { dropped(missed) } else { Vec::new() };
        let mut told = HashSet::new();
        for entry in changed.iter().filter(|it| told.insert(it.number)) {
            let call = self.traffic.fitting(entry, &self.filter, self.replica.as_deref());
            if let Some(call) = call {
                event(&mut out, "call", call.to_string());
            }
        }
        out
    }
}

impl Drop for TrafficUpdates {
    fn drop(&mut self) {
        self.traffic.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

fn dropped(count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    event(&mut out, "dropped", json!({ "count": count }).to_string());
    out
}

/// One event of `text/event-stream`. JSON has no line breaks.
pub(crate) fn event(out: &mut Vec<u8>, name: &str, data: String) {
    out.extend_from_slice(format!("event: {name}\ndata: {}\n\n", escape_json(data)).as_bytes());
}

/// How long a stream may be silent.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long changes are collected.
const TOGETHER: Duration = Duration::from_millis(25);
/// The changes in one piece.
const MOST: usize = 1_024;
