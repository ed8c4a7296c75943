//! A recorder and the file that it writes to.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_recording::line::Note;
use trunkline_recording::recorder::Recorder;
use trunkline_recording::redact::Redactor;

use crate::failure::Failure;
use crate::recordings::now;

/// A recording that is being written. If that fails, recording ends and everything still passes.
pub(super) struct RecordingFile {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    recorder: Recorder,
    file: Option<File>,
}

impl RecordingFile {
    /// Creates the file for us alone, or opens it to append.
    pub(super) fn create(
        path: &Path,
        append: bool,
        max: Option<u64>,
        redactor: Redactor,
    ) -> Result<Self, Failure> {
        let shown = path.display();
        let mut options = OpenOptions::new();
        options.append(true).mode(0o600);
        let opened = match append {
            true => options.create(true).open(path),
            false => options.create_new(true).open(path),
        };
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::usage(format!("`{shown}` exists already."))
                .advice("Name another file, or give `--append`."),
            _ => Failure::usage(format!("`{shown}` cannot be written: {error}.")),
        })?;
        let unusable =
            |error: io::Error| Failure::usage(format!("`{shown}` cannot be used: {error}."));
        let known = file.metadata().map_err(unusable)?;
        if known.is_file() && known.mode() & 0o077 != 0 {
            let why = format!("Others can read `{shown}`, and a recording may hold secrets.");
            return Err(Failure::usage(why).advice(format!("`chmod 600 {shown}`")));
        }
        if file.try_lock().is_err() {
            let why = format!("Another recording is being written to `{shown}`.");
            return Err(Failure::usage(why).advice("Name another file."));
        }
        let room = max.map(|it| it.saturating_sub(known.len()));
        let inner = Inner { recorder: Recorder::new(redactor, room), file: Some(file) };
        Ok(Self { path: path.to_owned(), inner: Mutex::new(inner) })
    }

    /// Writes what `record` appends, and returns what it says.
    pub(super) fn write<T>(&self, record: impl FnOnce(&mut Recorder, u64, &mut Vec<u8>) -> T) -> T {
        let mut inner = self.lock();
        let Inner { recorder, file } = &mut *inner;
        let mut out = Vec::new();
        let said = record(recorder, now(), &mut out);
        if let Some(open) = file
            && let Err(error) = open.write_all(&out)
        {
            *file = None;
            let path = self.path.display();
            let _ = writeln!(
                io::stderr(),
                "trunkline: The recording ends here, because `{path}` cannot be written: {error}."
            );
        }
        said
    }

    /// The recording is over.
    pub(super) fn finish(&self, exited: Option<Note>) {
        let dropped = self.write(|recorder, now, out| {
            recorder.finish(exited, now, out);
            recorder.dropped()
        });
        if dropped > 0 {
            let path = self.path.display();
            let _ = writeln!(
                io::stderr(),
                "trunkline: `{path}` is full (`--max`): {dropped} messages are not in it."
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
