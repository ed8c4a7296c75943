//! Recorded calls → files of JSON lines, in the format of `docs/recordings.md`.
//!
//! One thread writes. Calls never wait for it: a call that finds the queue full is not written, and is counted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Traffic;

/// A file that calls are written to. The thread ends with its last clone.
#[derive(Clone)]
pub(crate) struct TrafficFile {
    queue: SyncSender<Job>,
    lost: Arc<AtomicU64>,
}

/// What the thread does.
enum Job {
    /// The call of this number.
    Write(u64),
    /// Says when everything before it is written.
    Tell(oneshot::Sender<()>),
}

impl TrafficFile {
    /// Opens the file, which nobody else may be able to read.
    pub(crate) fn open(path: &Path, traffic: Weak<Traffic>) -> Result<Self, String> {
        let writer = Writer::open(path).map_err(|error| format!("cannot be written: {error}."))?;
        let (queue, jobs) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let named = std::thread::Builder::new().name("recording".to_owned());
        let started = named.spawn(move || write_all(writer, &traffic, &jobs, &counted));
        started.map_err(|error| format!("has no thread that writes it: {error}."))?;
        Ok(Self { queue, lost })
    }

    /// Writes a call that has ended.
    pub(crate) fn write(&self, number: u64) {
        if self.queue.try_send(Job::Write(number)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what is queued is written, for a while.
    pub(crate) async fn settled(&self) {
        let (tell, told) = oneshot::channel();
        let queue = self.queue.clone();
        let asked = tokio::task::spawn_blocking(move || queue.send(Job::Tell(tell)));
        let _ = tokio::time::timeout(PATIENCE, async { (asked.await, told.await) }).await;
    }

    /// How many calls were not written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

fn write_all(mut writer: Writer, traffic: &Weak<Traffic>, jobs: &Receiver<Job>, lost: &AtomicU64) {
    while let Ok(job) = jobs.recv() {
        let number = match job {
            Job::Write(number) => number,
            Job::Tell(tell) => {
                // Nobody may wait any more.
                let _ = tell.send(());
                continue;
            }
        };
        let Some(traffic) = traffic.upgrade() else { return };
        let mut lines = Vec::new();
        match traffic.new_lines(number) {
            Some(new) => new.iter().for_each(|it| it.write(&mut lines)),
            // It has made way already.
            None => drop(lost.fetch_add(1, Ordering::Relaxed)),
        }
        if lines.is_empty() {
            continue;
        }
        let written = writer.write(&lines, |out| traffic.write_begin(out));
        if let Err(error) = written {
            lost.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, path = %writer.path.display(), "a call cannot be recorded");
        }
    }
}

/// The file, and older ones beside it.
struct Writer {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Writer {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let metadata = file.metadata()?;
        if metadata.permissions().mode() & 0o077 != 0 {
            let why = "others can read it (its mode must be 0600)";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Self { path: path.to_owned(), file, size: metadata.len() })
    }

    fn write(&mut self, lines: &[u8], begin: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if self.size > 0 && self.size + lines.len() as u64 > LARGEST {
            self.rotate()?;
        }
        let mut all = Vec::new();
        if self.size == 0 {
            begin(&mut all);
        }
        all.extend_from_slice(lines);
        self.file.write_all(&all)?;
        self.size += all.len() as u64;
        Ok(())
    }

    /// `traffic.jsonl` becomes `traffic.jsonl.1`, and so on; the oldest is removed.
    fn rotate(&mut self) -> io::Result<()> {
        let older = |number: u32| match number {
            0 => self.path.clone(),
            _ => {
                let mut name = self.path.clone().into_os_string();
                name.push(format!(".{number}"));
                PathBuf::from(name)
            }
        };
        for number in (0..OLDER).rev() {
            match fs::rename(older(number), older(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        *self = Self::open(&self.path)?;
        Ok(())
    }
}

/// How long the end of a gateway waits for the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// The calls that wait to be written.
const QUEUE: usize = 1_024;
/// The size of a file, and how many older ones are kept.
const LARGEST: u64 = 64 << 20;
const OLDER: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_testkit::Folder;

    #[test]
    fn a_file_is_for_its_owner_alone_and_makes_way_when_it_is_full() {
        let folder = Folder::new();
        let path = folder.join("traffic.jsonl");
        let mut writer = Writer::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let begin = |out: &mut Vec<u8>| out.extend_from_slice(b"begin\n");
        writer.write(b"one\n", begin).unwrap();
        writer.write(b"two\n", begin).unwrap();
        writer.size = LARGEST;
        writer.write(b"three\n", begin).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "begin\nthree\n");
        let older = folder.join("traffic.jsonl.1");
        assert_eq!(fs::read_to_string(&older).unwrap(), "begin\none\ntwo\n");
        for _ in 0..9 {
            writer.size = LARGEST;
            writer.write(b"more\n", begin).unwrap();
        }
        assert_eq!(fs::read_dir(&*folder).unwrap().count() as u32, OLDER + 1);
        fs::set_permissions(&older, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Writer::open(&older).is_err(), "others can read it");
    }
}
