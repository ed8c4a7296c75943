//! Exports spans in batches, from a queue that never blocks a call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use trunkline_auth::address::{Guard, Reach};
use trunkline_auth::fetch::{Answer, Ask, Fetch};
use trunkline_transport::auth::HttpFetch;

use super::encode::{self, Numbers};

use super::span::Span;
use super::{Host, OtelSettings};

/// Queues spans for export.
pub(super) struct Exporter {
    queue: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
    task: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    wants_spans: bool,
}

impl Exporter {
    pub(super) fn start(settings: &OtelSettings, host: Weak<dyn Host>) -> Self {
        let (queue, heard) = mpsc::channel(QUEUE);
        let (end, ending) = oneshot::channel();
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = Sender {
            fetch: fetch(settings),
            settings: settings.clone(),
            resource: encode::resource(&settings.resource),
            headers: headers(settings),
            host,
            dropped: Arc::clone(&dropped),
            is_failing: false,
        };
        let task = tokio::spawn(sender.run(heard, ending));
        Self {
            queue,
            dropped,
            task: Mutex::new(Some((end, task))),
            wants_spans: settings.traces.is_some(),
        }
    }

    /// Queues a span; drops it if the queue is full.
    pub(super) fn offer(&self, span: Span) {
        if self.wants_spans && self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) async fn close(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((end, mut task)) = task {
            // The task may have ended.
            let _ = end.send(());
            if timeout(CLOSE, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// The background task.
struct Sender {
    fetch: HttpFetch,
    settings: OtelSettings,
    resource: Json,
    headers: Vec<(&'static str, String)>,
    host: Weak<dyn Host>,
    dropped: Arc<AtomicU64>,
    is_failing: bool,
}

impl Sender {
    async fn run(mut self, mut heard: mpsc::Receiver<Span>, mut ending: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH);
        let (mut due, mut numbers_due) = (every(SPANS), every(NUMBERS));
        loop {
            let room = BATCH - batch.len();
            let is_over = tokio::select! {
                _ = &mut ending => true,
                _ = due.tick() => {
                    self.spans(&mut batch).await;
                    false
                }
                _ = numbers_due.tick() => {
                    self.numbers().await;
                    false
                }
                count = heard.recv_many(&mut batch, room) => {
                    if batch.len() >= BATCH {
                        self.spans(&mut batch).await;
                    }
                    count == 0
                }
            };
            if is_over {
                break;
            }
        }
        heard.close();
        while let Ok(span) = heard.try_recv() {
            batch.push(span);
            if batch.len() >= BATCH {
                self.spans(&mut batch).await;
            }
        }
        self.spans(&mut batch).await;
        self.numbers().await;
    }

    async fn spans(&mut self, batch: &mut Vec<Span>) {
        self.count("dropped", self.dropped.swap(0, Ordering::Relaxed));
        let Some(url) = self.settings.traces.clone().filter(|_| !batch.is_empty()) else { return };
        let all = batch.len() as u64;
        let text = encode::spans(&self.resource, batch);
        batch.clear();
        let refused = self.send(&url, text).await.map_or(all, |answer| rejected(&answer).min(all));
        self.count("sent", all - refused);
        self.count("failed", refused);
    }

    async fn numbers(&mut self) {
        let (Some(url), Some(host)) = (self.settings.metrics.clone(), self.host.upgrade()) else {
            return;
        };
        let text = encode::numbers(&self.resource, Numbers::of(host.metrics()));
        drop(host);
        let _ = self.send(&url, text).await;
    }

    /// Sends a body, and retries if that may help. Logs the first failure and the recovery.
    async fn send(&mut self, url: &str, text: String) -> Option<Answer> {
        let mut pause = PAUSE;
        for is_last in [false, false, true] {
            let mut ask = Ask::json(url, text.clone());
            ask.headers.extend(self.headers.iter().cloned());
            let (why, may_pass) = match self.fetch.fetch(ask).await {
                Ok(answer) if answer.is_ok() => {
                    if std::mem::take(&mut self.is_failing) {
                        self.say("The collector takes spans and numbers again.");
                    }
                    return Some(answer);
                }
                Ok(answer) => {
                    let said = answer.first("retry-after").and_then(|it| it.trim().parse().ok());
                    pause = said.map_or(pause, Duration::from_secs).min(LONGEST_PAUSE);
                    let why = format!("it answered with status {}", answer.status);
                    (why, matches!(answer.status, 429 | 502..=504))
                }
                Err(error) => (error.to_string().trim_end_matches('.').to_owned(), true),
            };
            if is_last || !may_pass {
                if !std::mem::replace(&mut self.is_failing, true) {
                    let url = trunkline_auth::url::shown(url);
                    self.say(&format!(
                        "The collector at `{url}` did not accept the export: {why}. Look at \
                         `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_HEADERS`."
                    ));
                }
                return None;
            }
            sleep(pause).await;
            pause *= 2;
        }
        None
    }

    fn count(&self, what: &'static str, count: u64) {
        if let Some(host) = self.host.upgrade().filter(|_| count > 0) {
            host.metrics().spans(what, count);
        }
    }

    fn say(&self, text: &str) {
        tracing::warn!("{text}");
        if let Some(host) = self.host.upgrade() {
            host.say(text);
        }
    }
}

/// The collector's address comes from the operator, so it may be private.
fn fetch(settings: &OtelSettings) -> HttpFetch {
    let fetch = HttpFetch::new(Guard::new(Reach::Anywhere));
    settings.certificates.iter().fold(fetch, |fetch, pem| fetch.root_certificate(pem.clone()))
}

fn headers(settings: &OtelSettings) -> Vec<(&'static str, String)> {
    let headers = settings.headers.iter();
    // Header names must be static. Leaking them is fine: a gateway is opened once.
    let kept = |name: &String| &*Box::leak(name.to_ascii_lowercase().into_boxed_str());
    headers.map(|(name, value)| (kept(name), value.clone())).collect()
}

/// How many spans the collector rejected.
fn rejected(answer: &Answer) -> u64 {
    let said: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    match &said["partialSuccess"]["rejectedSpans"] {
        Json::String(count) => count.parse().unwrap_or_default(),
        count => count.as_u64().unwrap_or_default(),
    }
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// The bound of the queue; further spans are dropped.
const QUEUE: usize = 2048;
/// Spans in one request.
const BATCH: usize = 512;
const SPANS: Duration = Duration::from_secs(5);
const NUMBERS: Duration = Duration::from_secs(60);
/// How long exporting the rest may take.
const CLOSE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
