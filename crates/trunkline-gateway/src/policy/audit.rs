//! The audit: one JSON line for each call, in the order in which calls end. Events of the gateway itself have
//! lines too, with an `event`: `started`, `stopped`, `reloaded`, `reload_refused`, `refused` (at the door,
//! aggregated), `subscribed`, `held_back` and `approved`.
//!
//! The lines form a hash chain: see [`chain`].
//!
//! One task writes; calls send it lines through a queue that is bounded in bytes, and never wait. A line that
//! finds the queue or the disk full is lost: counted, logged, and reported in the file by a line
//! `{"time":…,"lost":N}` once there is room again. With `onFailure: refuse` no line is lost: calls are refused
//! until the file can be written again.
//!
//! Arguments are never written, only their digest. The file has mode 0600; if it is renamed or removed
//! (logrotate), the next lines go to a new file of the same name.

mod book;
pub mod chain;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};

use super::pins::Held;
use super::{What, plain, stamp};
use crate::catalog::plan::AuditPlan;
use crate::failure::{Failure, Reason, Stage};
use book::Book;
use chain::Head;

pub use book::{head_path, read_head};

/// The audit file. Dropping it writes what is queued, if the runtime continues.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    queue: mpsc::UnboundedSender<Line>,
    state: Arc<State>,
}

/// What the writing task shares with its callers.
#[derive(Debug, Default)]
struct State {
    /// Whether calls are refused that could not be recorded.
    refuses: bool,
    lost: AtomicU64,
    /// The approximate bytes in the queue.
    queued: AtomicUsize,
    is_failing: AtomicBool,
    /// Why writing fails, and the head of the chain.
    told: Mutex<(Option<String>, Head)>,
    /// Requests refused at the door since the last line about them, by status.
    refused: [AtomicU64; 2],
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// When it ended.
    #[serde(serialize_with = "spell_time")]
    pub time: SystemTime,
    /// The gateway's id of the call. It is unique, whatever callers send.
    pub id: String,
    /// The id in logs and errors: the caller's trace id, if there is one.
    #[serde(rename = "traceId")]
    pub trace: String,
    /// The principal.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The client program.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The server; `None` if none has that name.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The method.
    pub method: &'static str,
    /// The instance, if the call got that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<u64>,
    /// The target.
    #[serde(flatten)]
    pub what: Called,
    /// The digest of the arguments, see [`canonical::digest`](super::canonical::digest).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The decision of policy.
    pub decision: Decision,
    /// The outcome: `ok`, `tool_error`, `error:CODE`, or the reason of a failure.
    pub outcome: Cow<'static, str>,
    /// The duration.
    pub ms: u64,
    /// The replica that served it, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<String>,
}

/// The target, by its server's own name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Called {
    #[serde(serialize_with = "own_text")]
    Tool(String),
    #[serde(serialize_with = "own_text")]
    Uri(String),
    #[serde(serialize_with = "own_text")]
    Prompt(String),
}

/// The decision of policy about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It was allowed.
    Allowed,
    /// A rule denied it.
    Denied,
    /// The user is being asked.
    Asked,
    /// The user was asked, and approved.
    Approved,
    /// The user was asked and declined, or could not be asked.
    Declined,
    /// It exceeded a rate limit.
    RateLimited,
    /// The definition of the tool has changed.
    HeldBack,
    /// A plugin rejected it.
    Rejected,
}

impl Audit {
    /// Opens a file with the default settings, to append to it.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::with(&AuditPlan::new(path))
    }

    /// Opens the file, to append to it, and starts the writing task.
    pub fn with(plan: &AuditPlan) -> io::Result<Self> {
        let (queue, entries) = mpsc::unbounded_channel();
        let state = Arc::new(State { refuses: plan.refuses, ..State::default() });
        let book = Book::open(&plan.path, Arc::clone(&state))?;
        tokio::spawn(write(entries, book, Arc::clone(&state), plan.sync));
        Ok(Self { path: plan.path.clone(), queue, state })
    }

    /// Records a call. Never waits.
    pub fn note(&self, entry: Entry) {
        self.queue(Line::Call(Box::new(entry)));
    }

    /// Records that a definition is held back: its pin, and what was seen. Never waits.
    pub fn note_held(&self, server: &str, held: &Held) {
        let held = Held { name: plain(&held.name, LONGEST), ..held.clone() };
        let server = Some(server.to_owned());
        self.queue(Line::Held { time: SystemTime::now(), event: "held_back", server, held });
    }

    /// Records that held-back definitions were approved. Never waits.
    pub fn note_approved(&self, server: &str, tools: &[String]) {
        let tools = tools.iter().map(|it| plain(it, LONGEST)).collect();
        let server = Some(server.to_owned());
        self.queue(Line::Approved { time: SystemTime::now(), event: "approved", server, tools });
    }

    /// Records an event of the gateway. Never waits.
    pub fn note_event(&self, event: &'static str, about: serde_json::Value) {
        self.queue(Line::Event { time: SystemTime::now(), event, about });
    }

    /// Records that a subscription began or ended. Never waits.
    pub fn note_subscription(&self, is_on: bool, who: Option<&str>, server: &str, uri: &str) {
        let event = if is_on { "subscribed" } else { "unsubscribed" };
        let who = who.map(|it| plain(it, LONGEST));
        let uri = plain(uri, LONGEST);
        self.note_event(
            event,
            serde_json::json!({ "principal": who, "server": server, "uri": uri }),
        );
    }

    /// Counts a refused request. They are aggregated into one line per status and [`FLOOD`].
    pub fn refused(&self, status: u16) {
        let Some(at) = REFUSALS.iter().position(|it| *it == status) else { return };
        if self.state.refused[at].fetch_add(1, Ordering::Relaxed) == 0 {
            self.queue(Line::Look);
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many calls were lost since the start.
    pub fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }

    /// Whether the file cannot be written now.
    pub fn is_failing(&self) -> bool {
        self.state.is_failing()
    }

    /// The status for operators.
    pub fn status(&self) -> serde_json::Value {
        let told = self.state.told.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::json!({
            "path": self.path,
            "seq": told.1.seq,
            "hash": told.1.hash,
            "lost": self.lost(),
            "failing": told.0,
        })
    }

    /// Whether a call that has to be recorded may be made.
    pub(crate) fn admit(&self) -> Result<(), Failure> {
        let is_full = self.state.queued.load(Ordering::Relaxed) > QUEUE / 2;
        if !self.state.refuses || !(self.is_failing() || is_full) {
            return Ok(());
        }
        let message = "The audit cannot be written, and calls are refused until it can.";
        let mut failure = Failure::new(Reason::AuditUnavailable, Stage::Policy, message);
        failure.retry_after = Some(FLOOD);
        Err(failure.advice("Have an operator look at the gateway's `audit` file and its disk."))
    }

    /// Writes what is queued and syncs it. The audit stays open.
    pub async fn flush(&self) {
        let (tell, told) = oneshot::channel();
        self.queue(Line::Flush(tell));
        let _ = timeout(PATIENCE, told).await;
    }

    /// Records that the gateway stops, and waits until that is written.
    pub async fn close(&self) {
        self.note_event("stopped", serde_json::json!({}));
        self.flush().await;
    }

    fn queue(&self, line: Line) {
        let size = line.size();
        let queued = self.state.queued.fetch_add(size, Ordering::Relaxed);
        // Commands to the writing task have size 0 and always fit.
        if queued + size > QUEUE && size > 0 || self.queue.send(line).is_err() {
            self.state.queued.fetch_sub(size, Ordering::Relaxed);
            self.state.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl State {
    fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Acquire)
    }

    /// Marks it as failing. Returns whether it was not before.
    fn failed(&self, why: &str) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).0 = Some(why.to_owned());
        !self.is_failing.swap(true, Ordering::AcqRel)
    }

    /// Marks it as working. Returns whether it was failing before.
    fn recovered(&self) -> bool {
        let had_failed = self.is_failing.swap(false, Ordering::AcqRel);
        if had_failed {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
        }
        had_failed
    }

    fn reached(&self, head: &Head) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).1 = head.clone();
    }

    /// The refused requests to report now.
    fn take_refused(&self) -> impl Iterator<Item = Line> {
        let taken = REFUSALS.iter().zip(&self.refused);
        taken.filter_map(|(status, count)| {
            let count = count.swap(0, Ordering::Relaxed);
            let about = serde_json::json!({ "status": status, "count": count });
            (count > 0).then(|| Line::Event { time: SystemTime::now(), event: "refused", about })
        })
    }
}

impl Called {
    fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Uri(name) | Self::Prompt(name) => name,
        }
    }
}

impl From<What<'_>> for Called {
    fn from(what: What<'_>) -> Self {
        match what {
            What::Tool(name) => Self::Tool(name.to_owned()),
            What::Resource(uri) => Self::Uri(uri.to_owned()),
            What::Prompt(name) => Self::Prompt(name.to_owned()),
        }
    }
}

/// The writing task: writes lines, syncs at an interval, and retries what failed.
async fn write(
    mut entries: mpsc::UnboundedReceiver<Line>,
    book: Book,
    state: Arc<State>,
    interval: Duration,
) {
    let mut book = Some(book);
    let (mut synced, mut refusals_told) = (Instant::now(), None::<Instant>);
    let (mut is_waiting, mut has_refusals) = (false, false);
    loop {
        let mut batch = Vec::new();
        // Failed writes are retried after a pause.
        let due = synced + interval.max(AGAIN);
        let received = match is_waiting || has_refusals {
            true => timeout_at(due, entries.recv_many(&mut batch, BATCH)).await,
            false => Ok(entries.recv_many(&mut batch, BATCH).await),
        };
        let is_over = received == Ok(0);
        let size: usize = batch.iter().map(Line::size).sum();
        state.queued.fetch_sub(size, Ordering::Relaxed);
        let mut flushed = Vec::new();
        let mut lines = Vec::with_capacity(batch.len());
        for line in batch {
            match line {
                Line::Flush(tell) => flushed.push(tell),
                Line::Look => has_refusals = true,
                line => lines.push(line),
            }
        }
        let now = Instant::now();
        let is_sync = is_over || !flushed.is_empty() || interval.is_zero() || now >= due;
        let may_tell = refusals_told.is_none_or(|it| now >= it + FLOOD);
        if has_refusals && (may_tell || is_over || !flushed.is_empty()) {
            let before = lines.len();
            lines.extend(state.take_refused());
            has_refusals = false;
            if lines.len() > before {
                refusals_told = Some(now);
            }
        }
        let Some(mut writing) = book.take() else { return };
        let written = spawn_blocking(move || {
            writing.write(&lines);
            if is_sync {
                writing.sync();
            }
            writing
        });
        let Ok(writing) = written.await else { return };
        is_waiting = writing.is_waiting();
        book = Some(writing);
        if is_sync {
            synced = Instant::now();
        }
        for tell in flushed {
            // The waiter may be gone.
            let _ = tell.send(());
        }
        if is_over {
            return;
        }
    }
}

/// What a line can be about.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line {
    Call(Box<Entry>),
    Held {
        #[serde(serialize_with = "spell_time")]
        time: SystemTime,
        event: &'static str,
        #[serde(serialize_with = "text")]
        server: Option<String>,
        #[serde(flatten)]
        held: Held,
    },
    Approved {
        #[serde(serialize_with = "spell_time")]
        time: SystemTime,
        event: &'static str,
        #[serde(serialize_with = "text")]
        server: Option<String>,
        tools: Vec<String>,
    },
    Event {
        #[serde(serialize_with = "spell_time")]
        time: SystemTime,
        event: &'static str,
        #[serde(flatten)]
        about: serde_json::Value,
    },
    /// A command: answer when everything before it is written.
    #[serde(skip)]
    Flush(oneshot::Sender<()>),
    /// A command: check for refused requests.
    #[serde(skip)]
    Look,
}

impl Line {
    /// The approximate size in memory.
    fn size(&self) -> usize {
        match self {
            Self::Call(entry) => {
                let texts = [&entry.principal, &entry.client, &entry.server, &entry.arguments];
                let texts: usize = texts.into_iter().flatten().map(String::len).sum();
                LINE + texts + entry.what.name().len()
            }
            Self::Held { .. } | Self::Approved { .. } | Self::Event { .. } => 4 * LINE,
            Self::Flush(_) | Self::Look => 0,
        }
    }
}

fn spell_time<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&stamp::rfc3339(*time))
}

/// Names come from callers and servers: removes what could break the line, and shortens them.
fn text<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().map(|it| plain(it, LONGEST)).serialize(serializer)
}

fn own_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&plain(text, LONGEST))
}

/// The bytes of the queue; if calls can be refused, they are from half of it on.
const QUEUE: usize = 8 << 20;
/// The overhead of a line in bytes.
const LINE: usize = 512;
/// Lines written at a time.
const BATCH: usize = 512;
/// The bytes of a name that are written: with four of them, a line stays below 8 KiB.
const LONGEST: usize = 1_024;
/// The statuses of refused requests.
const REFUSALS: [u16; 2] = [401, 403];
/// The pause before a failed write is retried.
const AGAIN: Duration = Duration::from_millis(100);
/// The interval of lines about refused requests.
pub const FLOOD: Duration = Duration::from_secs(10);
/// How long to wait for an audit to close.
pub const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
