//! Calls → lines of JSON in a file, one for each, in the order in which they ended. Tools that are
//! held back or approved have lines too, with an `event`.
//!
//! One task writes; calls hand it what is to be written through a queue of bounded length and never
//! wait. What finds the queue full, or the disk, is lost: counted, logged, and as soon as there is
//! room again told in the file itself by a line `{"time":…,"lost":N}`. Whoever must not lose any
//! uses a required plugin of the category `audit`.
//!
//! Arguments are never written, only their digest. The file is made with mode 0600; if it is renamed
//! or removed (logrotate), the next lines go to a new one of the old name.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinHandle, spawn_blocking};

use super::pins::Held;
use super::{What, plain, stamp};

/// Where calls are noted. Dropping it writes what is queued, if the runtime goes on.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    queue: mpsc::Sender<Line>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// When it ended.
    #[serde(serialize_with = "spell_time")]
    pub time: SystemTime,
    /// By what logs and errors name it.
    #[serde(rename = "traceId")]
    pub trace: String,
    /// Who made it.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// With which program.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Of which server; `None` if there was none by that name.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// In which instance, if it came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<u64>,
    /// What was called.
    #[serde(flatten)]
    pub what: Called,
    /// The digest of the arguments, see [`canonical::digest`](super::canonical::digest).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What was decided.
    pub decision: Decision,
    /// What came of it: `ok`, `tool_error`, `error:CODE`, or the reason of a failure.
    pub outcome: Cow<'static, str>,
    /// How long it took.
    pub ms: u64,
}

/// What was called, by the name that its server knows.
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

/// What policy had to say about a call.
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
    /// The user was asked, and did not; or could not be asked.
    Declined,
    /// It was one too many.
    RateLimited,
    /// The definition of the tool has changed.
    HeldBack,
    /// A plugin rejected it.
    Rejected,
}

impl Audit {
    /// Opens the file, to write behind what is in it, and starts the task that writes.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let (queue, entries) = mpsc::channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let book = Book::open(&path, Arc::clone(&lost))?;
        let writer = tokio::spawn(write(entries, book));
        Ok(Self { path, queue, lost, writer: Mutex::new(Some(writer)) })
    }

    /// Notes a call. Never waits.
    pub fn note(&self, entry: Entry) {
        self.queue(Line::Call(Box::new(entry)));
    }

    /// Notes that a tool is held back: what was pinned, and what was seen. Never waits.
    pub fn note_held(&self, server: &str, held: &Held) {
        let held = Held { tool: plain(&held.tool, LONGEST), ..held.clone() };
        let server = Some(server.to_owned());
        self.queue(Line::Held { time: SystemTime::now(), event: "held_back", server, held });
    }

    /// Notes that tools that were held back were approved. Never waits.
    pub fn note_approved(&self, server: &str, tools: &[String]) {
        let tools = tools.iter().map(|it| plain(it, LONGEST)).collect();
        let server = Some(server.to_owned());
        self.queue(Line::Approved { time: SystemTime::now(), event: "approved", server, tools });
    }

    /// Where it is written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many calls were not noted since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes what is queued, and ends. What is noted later is lost.
    pub async fn close(self) {
        let Self { queue, writer, .. } = self;
        drop(queue);
        if let Some(writer) = writer.into_inner() {
            let _ = writer.await;
        }
    }

    fn queue(&self, line: Line) {
        if self.queue.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
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

async fn write(mut entries: mpsc::Receiver<Line>, book: Book) {
    let mut book = Some(book);
    let mut batch = Vec::new();
    while entries.recv_many(&mut batch, BATCH).await > 0 {
        let lines = std::mem::take(&mut batch);
        let Some(mut writing) = book.take() else { return };
        let written = spawn_blocking(move || {
            writing.write(&lines);
            writing
        });
        book = written.await.ok();
    }
}

/// The file, as the task that writes sees it.
struct Book {
    path: PathBuf,
    file: Option<File>,
    lost: Arc<AtomicU64>,
    /// How many of the lost were told of in the file.
    told: u64,
    /// The last write broke off, perhaps in the middle of a line.
    is_torn: bool,
}

impl Book {
    fn open(path: &Path, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let file = Some(open(path)?);
        Ok(Self { path: path.to_owned(), file, lost, told: 0, is_torn: false })
    }

    fn write(&mut self, entries: &[Line]) {
        let lost = self.lost.load(Ordering::Relaxed);
        let mut text = Vec::with_capacity(entries.len() * 256);
        if self.is_torn {
            text.push(b'\n');
        }
        if lost > self.told {
            let gap = Line::Gap { time: SystemTime::now(), lost: lost - self.told };
            line(&gap, &mut text);
        }
        entries.iter().for_each(|entry| line(entry, &mut text));
        match self.file().and_then(|mut file| file.write_all(&text)) {
            Ok(()) => (self.told, self.is_torn) = (lost, false),
            Err(error) => {
                self.lost.fetch_add(entries.len() as u64, Ordering::Relaxed);
                // Once for each time that it breaks, not for each line.
                if !std::mem::replace(&mut self.is_torn, true) {
                    let path = self.path.display();
                    tracing::error!(target: "trunkline::audit", %error,
                        "`{path}` cannot be written: calls are not noted until it can.");
                }
            }
        }
    }

    /// The file of that name, opened anew if it is not the one we have.
    fn file(&mut self) -> io::Result<&File> {
        let place = |it: std::fs::Metadata| (it.dev(), it.ino());
        let ours = self.file.as_ref().and_then(|it| it.metadata().ok()).map(place);
        if ours.is_none() || std::fs::metadata(&self.path).ok().map(place) != ours {
            self.file = None;
        }
        match &mut self.file {
            Some(file) => Ok(file),
            file => Ok(file.insert(open(&self.path)?)),
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
    /// Lines that are not there.
    Gap {
        #[serde(serialize_with = "spell_time")]
        time: SystemTime,
        lost: u64,
    },
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn line(value: &impl Serialize, text: &mut Vec<u8>) {
    let start = text.len();
    if serde_json::to_writer(&mut *text, value).is_err() {
        text.truncate(start);
    }
    text.push(b'\n');
}

fn spell_time<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&stamp::rfc3339(*time))
}

/// Names come from callers and servers: what would turn or end a line is left out, and so is what
/// would make it endless.
fn text<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().map(|it| plain(it, LONGEST)).serialize(serializer)
}

fn own_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&plain(text, LONGEST))
}

/// Entries that wait to be written.
const QUEUE: usize = 8_192;
/// Entries that are written at a time.
const BATCH: usize = 512;
/// How much of a name is written, in bytes: with four of them a line stays below 8 KiB.
const LONGEST: usize = 1_024;
/// How long whoever closes an audit should wait for it.
pub const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
