//! The changes of recorded calls → events for whoever follows them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{sleep, timeout};

use super::filter::TrafficFilter;
use super::{MOST_CALLS, Traffic, UPDATES};
use crate::policy::hidden::escape_json;

/// Follows recorded calls.
pub struct TrafficUpdates {
    traffic: Arc<Traffic>,
    updates: broadcast::Receiver<u64>,
    filter: TrafficFilter,
    replica: Option<String>,
    /// The calls that go on and were told, or could be listed: whoever has heard of one also hears of its end.
    running: HashSet<u64>,
    allowance: Allowance,
}

impl TrafficUpdates {
    /// Follows the calls that fit, from now on.
    pub(crate) fn new(
        traffic: &Arc<Traffic>,
        filter: TrafficFilter,
        replica: Option<String>,
    ) -> Self {
        traffic.followers.fetch_add(1, Ordering::Relaxed);
        let updates = traffic.follow();
        Self {
            updates,
            // Looked for once their ends are heard.
            running: traffic.running(&filter).take(MOST_CALLS).collect(),
            traffic: Arc::clone(traffic),
            filter,
            replica,
            allowance: Allowance::full(Instant::now()),
        }
    }

    /// The next events as they are sent, or a comment after a while without any.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let (mut changed, mut missed) = (Vec::new(), 0);
            match timeout(HEARTBEAT, self.updates.recv()).await {
                Ok(Ok(first)) => changed.push(first),
                Ok(Err(RecvError::Lagged(more))) => missed += more,
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) => return Some(b":\n\n".to_vec()),
            }
            // Calls that change together are told together, and each once.
            sleep(TOGETHER).await;
            while changed.len() < UPDATES {
                match self.updates.try_recv() {
                    Ok(number) => changed.push(number),
                    Err(TryRecvError::Lagged(more)) => missed += more,
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            if missed > 0 {
                // Their ends may be among what was missed.
                let over = self.traffic.ended_of(&self.running);
                changed.splice(0..0, over);
            }
            let piece = self.events(&changed, missed);
            if !piece.is_empty() {
                return Some(piece);
            }
        }
    }

    /// The newest calls, as many as may be told; `missed` of them were lost before.
    fn events(&mut self, changed: &[u64], mut missed: u64) -> Vec<u8> {
        self.allowance.grow(Instant::now());
        let (mut seen, mut told) = (HashSet::new(), Vec::new());
        for number in changed.iter().rev().copied().filter(|it| seen.insert(*it)) {
            let Some(entry) = self.traffic.entry(number) else {
                // It has made way already.
                self.running.remove(&number);
                missed += 1;
                continue;
            };
            // What was told is told to its end, even if it no longer fits.
            let is_known = self.running.remove(&number);
            if !is_known && !self.traffic.fits(&entry, &self.filter) {
                continue;
            }
            if !is_known && !self.allowance.take() {
                missed += 1;
                continue;
            }
            if entry.log.ended.is_none() && self.running.len() < MOST_CALLS {
                self.running.insert(number);
            }
            told.push(self.traffic.summary(&entry, self.replica.as_deref()));
        }
        let mut out = if missed > 0 { dropped(missed) } else { Vec::new() };
        told.iter().rev().for_each(|it| event(&mut out, "call", it.to_string()));
        out
    }
}

/// How many calls a follower is still told of: so many a second, and as many at once after a pause.
struct Allowance {
    left: f64,
    since: Instant,
}

impl Allowance {
    fn full(now: Instant) -> Self {
        Self { left: A_SECOND, since: now }
    }

    fn grow(&mut self, now: Instant) {
        let more = now.saturating_duration_since(self.since).as_secs_f64() * A_SECOND;
        *self = Self { left: (self.left + more).min(A_SECOND), since: now };
    }

    fn take(&mut self) -> bool {
        let may = self.left >= 1.0;
        self.left -= if may { 1.0 } else { 0.0 };
        may
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
/// The calls that a follower is told of in a second. Nobody reads more, and more only keep the reader busy.
const A_SECOND: f64 = 2_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_calls_a_second_are_told_and_a_burst_after_a_pause() {
        let mut now = Instant::now();
        let mut allowance = Allowance::full(now);
        let take = |allowance: &mut Allowance| (0..10_000).filter(|_| allowance.take()).count();
        assert_eq!(take(&mut allowance), 2_000);
        let mut told = 0;
        for _ in 0..40 {
            now += Duration::from_millis(25);
            allowance.grow(now);
            told += take(&mut allowance);
        }
        assert!((1_990..=2_000).contains(&told), "{told}");
        allowance.grow(now + Duration::from_secs(60));
        assert_eq!(take(&mut allowance), 2_000);
    }
}
