//! Appends lines to the audit file and keeps its hash chain.
//!
//! The chain continues from what is in the file, whichever gateway wrote it last: several gateways can share a file, as
//! each locks it while it writes and reads its end again if it has grown. `FILE.head` beside it holds the head
//! of the chain, so that the chain also continues if the file was renamed while no gateway ran, and so that
//! lines removed from its end are noticed.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use trunkline_auth::digest::sha256;

use super::chain::{Head, Sealed};
use super::{Line, State, stamp};

/// The file, as the writing task sees it.
pub(super) struct Book {
    path: PathBuf,
    file: Option<File>,
    head: Head,
    /// The length of the file after our last write.
    length: Option<u64>,
    state: Arc<State>,
    /// How many lost lines were reported in the file.
    told: u64,
    /// Lines that could not be written and are retried.
    waiting: Vec<String>,
    is_dirty: bool,
    is_unsynced: bool,
}

impl Book {
    pub(super) fn open(path: &Path, state: Arc<State>) -> io::Result<Self> {
        let file = Some(open(path)?);
        let mut book = Self {
            path: path.to_owned(),
            file,
            head: Head::default(),
            length: None,
            state,
            told: 0,
            waiting: Vec::new(),
            is_dirty: false,
            is_unsynced: false,
        };
        if let Some(file) = &mut book.file {
            let end = End::of(file)?;
            book.head = latest(end.head, read_head(&book.path)).unwrap_or_default();
        }
        book.state.reached(&book.head);
        Ok(book)
    }

    /// Writes lines, and reports what was lost or refused since the last time.
    pub(super) fn write(&mut self, lines: &[Line]) {
        let mut objects = std::mem::take(&mut self.waiting);
        let kept = objects.len();
        objects.extend(lines.iter().filter_map(|it| serde_json::to_string(it).ok()));
        let lost = self.state.lost.load(Ordering::Relaxed);
        let gap = (lost > self.told).then(|| {
            let time = stamp::rfc3339(SystemTime::now());
            serde_json::json!({ "time": time, "lost": lost - self.told }).to_string()
        });
        let had_gap = usize::from(gap.is_some());
        objects.splice(0..0, gap);
        if objects.is_empty() {
            return;
        }
        match self.append(&objects) {
            Ok(()) => {
                (self.told, self.is_dirty) = (lost, true);
                self.state.reached(&self.head);
                if self.state.recovered() {
                    tracing::info!(target: "trunkline::audit", "`{}` can be written again.", self.path.display());
                }
            }
            Err((written, error)) => {
                self.length = None;
                self.is_dirty |= written > 0;
                if had_gap == 1 && written > 0 {
                    self.told = lost;
                }
                let unwritten = objects.split_off(written.max(had_gap));
                match self.state.refuses {
                    true => self.waiting = unwritten,
                    false => {
                        debug_assert_eq!(kept, 0, "only those who refuse keep any");
                        self.state.lost.fetch_add(unwritten.len() as u64, Ordering::Relaxed);
                    }
                }
                self.report_failure("written", &error);
            }
        }
    }

    /// Syncs what was written (`fsync`).
    pub(super) fn sync(&mut self) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        let Some(file) = &self.file else { return };
        match file.sync_data() {
            // Pipes and devices cannot be synced.
            Err(error) if error.kind() != ErrorKind::InvalidInput => {
                (self.is_dirty, self.is_unsynced) = (true, true);
                self.report_failure("synced", &error);
            }
            _ => {
                if std::mem::take(&mut self.is_unsynced) {
                    self.state.recovered();
                }
            }
        }
    }

    /// Whether there is something to retry.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_dirty || !self.waiting.is_empty() || self.state.is_failing()
    }

    fn report_failure(&self, what: &str, error: &io::Error) {
        // Logged once per failure, not per line.
        if self.state.failed(&error.to_string()) {
            let path = self.path.display();
            let then = match self.state.refuses {
                true => "calls are refused",
                false => "calls are not recorded",
            };
            tracing::error!(target: "trunkline::audit", %error, "`{path}` cannot be {what}: {then} until it can.");
        }
    }

    /// Appends lines to the chain. On failure, returns how many were written anyway.
    fn append(&mut self, objects: &[String]) -> Result<(), (usize, io::Error)> {
        self.reopen().map_err(|error| (0, error))?;
        let Some(file) = &mut self.file else { unreachable!("it was opened just now") };
        // A file system without locks is not shared.
        let _ = file.lock();
        let mut head = self.head.clone();
        let mut text = Vec::with_capacity(objects.len() * 400);
        let metadata = file.metadata().map_err(|error| (0, error))?;
        let is_file = metadata.is_file();
        let mut more = 0;
        if is_file && self.length != Some(metadata.len()) {
            let end = End::of(file).map_err(|error| (0, error))?;
            // A new file continues the chain of the old one.
            let own = (metadata.len() == 0).then_some(head);
            head = latest(latest(end.head, own), read_head(&self.path)).unwrap_or_default();
            if end.is_open {
                text.push(b'\n');
                more += 1;
            }
            if let Some(torn) = end.torn {
                let time = stamp::rfc3339(SystemTime::now());
                let line = serde_json::json!({ "time": time, "event": "recovered", "torn": torn });
                head.seal(&line.to_string(), &mut text);
                more += 1;
            }
        }
        objects.iter().for_each(|it| head.seal(it, &mut text));
        let (written, outcome) = write(file, &text);
        let outcome = match outcome {
            Ok(()) => {
                self.head = head;
                self.length = file.metadata().ok().map(|it| it.len());
                if is_file {
                    write_head(&self.path, &self.head);
                }
                Ok(())
            }
            Err(error) => {
                let lines = text[..written].iter().filter(|it| **it == b'\n').count();
                Err((lines.saturating_sub(more), error))
            }
        };
        let _ = file.unlock();
        outcome
    }

    /// Opens the file again if the name refers to another one now.
    fn reopen(&mut self) -> io::Result<()> {
        let place = |it: std::fs::Metadata| (it.dev(), it.ino());
        let ours = self.file.as_ref().and_then(|it| it.metadata().ok()).map(place);
        if ours.is_none() || std::fs::metadata(&self.path).ok().map(place) != ours {
            self.sync();
            self.file = None;
            self.file = Some(open(&self.path)?);
        }
        Ok(())
    }
}

/// The end of a file.
struct End {
    /// The last valid line of a chain.
    head: Option<Head>,
    /// Whether the last line is unterminated.
    is_open: bool,
    /// The digest of that line, if it is incomplete.
    torn: Option<String>,
}

impl End {
    fn of(file: &mut File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Self { head: None, is_open: false, torn: None });
        }
        let length = metadata.len();
        let mut window = WINDOW;
        loop {
            let begin = length.saturating_sub(window);
            file.seek(SeekFrom::Start(begin))?;
            let mut bytes = Vec::new();
            file.take(length - begin).read_to_end(&mut bytes)?;
            let last = bytes.iter().rposition(|it| *it == b'\n').map(|it| it + 1);
            let torn = &bytes[last.unwrap_or(0)..];
            let sealed = |line| Sealed::read(line).filter(|it| it.is_true).map(|it| it.head());
            let head = bytes.split(|it| *it == b'\n').rev().find_map(sealed);
            let is_all = begin == 0 || window >= LARGEST;
            if head.is_some() && last.is_some() || is_all {
                let is_open = !torn.is_empty();
                let torn = (is_open && sealed(torn).is_none()).then(|| sha256(torn));
                return Ok(Self { head, is_open, torn });
            }
            window *= 8;
        }
    }
}

fn latest(one: Option<Head>, other: Option<Head>) -> Option<Head> {
    [one, other].into_iter().flatten().max_by_key(|it| it.seq)
}

/// Writes as much as possible.
fn write(file: &mut File, text: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < text.len() {
        match file.write(&text[written..]) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

fn open(path: &Path) -> io::Result<File> {
    let options = |is_read: bool| {
        OpenOptions::new().read(is_read).append(true).create(true).mode(0o600).open(path)
    };
    // Some devices are write-only.
    options(true).or_else(|_| options(false))
}

/// The file beside an audit that holds the head of its chain.
pub fn head_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".head");
    name.into()
}

/// The head of the chain, from the file beside the audit.
pub fn read_head(path: &Path) -> Option<Head> {
    let text = std::fs::read_to_string(head_path(path)).ok()?;
    serde_json::from_str(&text).ok().filter(|it: &Head| it.hash.len() == 64)
}

/// Best effort: the chain is in the file itself.
fn write_head(path: &Path, head: &Head) {
    let Ok(text) = serde_json::to_string(head) else { return };
    // Padded to a fixed length, so that overwriting leaves no remains.
    let text = format!("{text:<120}\n");
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(head_path(path));
    let _ = opened.and_then(|mut it| it.write_all(text.as_bytes()));
}

/// How much of a file's end is read at first, and at most.
const WINDOW: u64 = 64 << 10;
const LARGEST: u64 = 32 << 20;
