//! Events of resumable streams → entries of the store, written in order by a few lanes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use trunkline_store::{Expect, Store, StoreError, Swap};
use trunkline_transport::http::replicas::KeptEvent;

use crate::codec;

/// How much of a session's streams is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) ttl: Duration,
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// What a lane is told.
#[derive(Debug)]
enum Job {
    Keep {
        nonce: String,
        event: KeptEvent,
    },
    /// The session is not ours any more: its bounds need not be watched.
    Forget {
        nonce: String,
    },
}

/// Writes events. The events of a session are written one after another.
#[derive(Debug)]
pub(crate) struct EventWriter {
    lanes: Vec<mpsc::Sender<Job>>,
    /// Streams of which an event found no room. What follows would be a gap.
    cut: Mutex<HashMap<String, Vec<u64>>>,
    _tasks: JoinSet<()>,
}

impl EventWriter {
    pub(crate) fn start(store: &Arc<dyn Store>, bounds: Bounds) -> Self {
        let mut tasks = JoinSet::new();
        let lanes = (0..LANES).map(|_| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            tasks.spawn(write(Arc::clone(store), bounds, receiver));
            sender
        });
        Self { lanes: lanes.collect(), cut: Mutex::default(), _tasks: tasks }
    }

    /// Keeps an event later.
    pub(crate) fn keep(&self, nonce: String, event: KeptEvent) {
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        if cut.get(&nonce).is_some_and(|streams| streams.contains(&event.stream)) {
            return;
        }
        let stream = event.stream;
        if self.lane(&nonce).try_send(Job::Keep { nonce: nonce.clone(), event }).is_err() {
            cut.entry(nonce).or_default().push(stream);
        }
    }

    /// The session is not ours any more.
    pub(crate) fn forget(&self, nonce: String) {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).remove(&nonce);
        // If there is no room, the bounds of a session are watched in vain until the lane ends.
        drop(self.lane(&nonce).try_send(Job::Forget { nonce }));
    }

    fn lane(&self, nonce: &str) -> &mpsc::Sender<Job> {
        let sum = nonce.bytes().fold(0, |sum, byte| sum ^ usize::from(byte));
        &self.lanes[sum % self.lanes.len()]
    }
}

/// The kept events of a session: keys and sizes, oldest first.
#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<(String, usize)>,
    bytes: usize,
    /// Streams of which an event could not be written. What follows would be a gap.
    broken: Vec<u64>,
}

async fn write(store: Arc<dyn Store>, bounds: Bounds, mut jobs: mpsc::Receiver<Job>) {
    let mut sessions: HashMap<String, Kept> = HashMap::new();
    while let Some(job) = jobs.recv().await {
        let (nonce, event) = match job {
            Job::Keep { nonce, event } => (nonce, event),
            Job::Forget { nonce } => {
                sessions.remove(&nonce);
                continue;
            }
        };
        let kept = sessions.entry(nonce.clone()).or_default();
        if kept.broken.contains(&event.stream) {
            continue;
        }
        let (key, bytes) = (key(&nonce, event.stream, event.place), codec::event_bytes(&event));
        // Whoever writes a place first has it: what a reader has got there stays. If it is taken, another replica
        // answers for the session by now, and the stream goes on there.
        match store.swap(&key, Expect::Absent, &bytes, Some(bounds.ttl)).await {
            Ok(Swap::Done(_)) => {}
            Ok(Swap::Conflict(Some(entry))) if entry.value[..] == bytes[..] => {}
            Ok(Swap::Conflict(_)) | Err(_) => {
                kept.broken.push(event.stream);
                continue;
            }
        }
        kept.bytes += bytes.len();
        kept.entries.push_back((key, bytes.len()));
        while kept.entries.len() > bounds.events || kept.bytes > bounds.bytes {
            let Some((oldest, size)) = kept.entries.pop_front() else { break };
            kept.bytes -= size;
            // If this fails, the entry expires.
            drop(store.delete(&oldest).await);
        }
    }
}

/// The kept events of a stream after `after`, in order.
pub(crate) async fn read(
    store: &dyn Store,
    nonce: &str,
    stream: u64,
    after: u64,
) -> Result<Vec<KeptEvent>, StoreError> {
    let prefix = format!("event/{nonce}/{stream:020}/");
    let mut cursor = Some(key(nonce, stream, after));
    let mut events = Vec::new();
    while let Some(from) = cursor {
        let page = store.scan(&prefix, Some(&from), PAGE).await?;
        for item in page.items {
            let place = item.key.strip_prefix(&prefix).and_then(|place| place.parse().ok());
            events.extend(place.and_then(|place| codec::event(stream, place, &item.value)));
        }
        cursor = page.next;
    }
    Ok(events)
}

fn key(nonce: &str, stream: u64, place: u64) -> String {
    format!("event/{nonce}/{stream:020}/{place:020}")
}

/// How many sessions' events are written at a time.
const LANES: usize = 16;
/// How many events may wait in a lane. One that finds no room is not kept.
const QUEUE: usize = 1_024;
const PAGE: usize = 256;
