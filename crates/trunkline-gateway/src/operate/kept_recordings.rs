//! Recordings that operators keep: files of JSON lines in one folder.

use std::fs::{self, DirBuilder, DirEntry, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use http::StatusCode;
use serde_json::{Value, json};
use trunkline_recording::compare::{Ignore, compare};
use trunkline_recording::recording::Recording;

use crate::admin::Complaint;
use crate::policy::stamp::rfc3339;

/// The folder of recordings.
#[derive(Debug)]
pub(super) struct KeptRecordings {
    folder: PathBuf,
    /// How many there may be, and their bytes together.
    most: (usize, u64),
    /// One is written at a time, so that all of them together stay within that.
    turn: Mutex<()>,
}

/// One of them.
struct KeptFile {
    id: String,
    at: SystemTime,
    bytes: u64,
}

impl KeptRecordings {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, most: (MOST, MOST_BYTES), turn: Mutex::default() }
    }

    /// All of them, newest first.
    pub(super) fn list(&self) -> Value {
        let mut all = self.files();
        all.sort_by_key(|it| std::cmp::Reverse(it.at));
        let told = all.iter().map(
            |KeptFile { id, at, bytes }| json!({ "id": id, "at": rfc3339(*at), "bytes": bytes }),
        );
        json!({ "recordings": told.collect::<Vec<_>>() })
    }

    fn files(&self) -> Vec<KeptFile> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let file = |entry: DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_suffix(END)?.to_owned();
            let metadata = entry.metadata().ok()?;
            Some(KeptFile { id, at: metadata.modified().ok()?, bytes: metadata.len() })
        };
        entries.filter_map(file).collect()
    }

    /// Keeps one under a new name.
    pub(super) fn keep(&self, id: &str, lines: &[u8]) -> Result<Value, Complaint> {
        let path = self.path(id)?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = || {
            let message = format!("There is a recording `{id}` already.");
            Complaint::new(StatusCode::CONFLICT, message).advice("Choose another name.")
        };
        if path.exists() {
            return Err(taken());
        }
        self.has_room(lines.len() as u64)?;
        let mut file = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path))
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => taken(),
                _ => unwritten(&error),
            })?;
        file.write_all(lines).map_err(|error| {
            // What there is of it is no recording.
            let _ = fs::remove_file(&path);
            unwritten(&error)
        })?;
        Ok(json!({ "id": id, "bytes": lines.len() }))
    }

    /// Whether one more of so many bytes may be kept.
    fn has_room(&self, bytes: u64) -> Result<(), Complaint> {
        let full = |message: String, advice: &str| {
            Err(Complaint::new(StatusCode::INSUFFICIENT_STORAGE, message).advice(advice))
        };
        let (all, (most, most_bytes)) = (self.files(), self.most);
        if all.len() >= most {
            let message = format!("There are {most} recordings already, and no more are kept.");
            return full(message, REMOVE);
        }
        let kept: u64 = all.iter().map(|it| it.bytes).sum();
        if kept.saturating_add(bytes) > most_bytes {
            let message = format!(
                "This recording has {bytes} bytes and those that are kept {kept}; all of them may have \
                 {most_bytes}."
            );
            return full(message, REMOVE_OR_LESS);
        }
        Ok(())
    }

    /// Removes one.
    pub(super) fn remove(&self, id: &str) -> Result<Value, Complaint> {
        fs::remove_file(self.path(id)?).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => none(id),
            _ => {
                let message = format!("The recording `{id}` cannot be removed: {error}.");
                Complaint::new(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        })?;
        Ok(json!({ "removed": id }))
    }

    /// Its lines.
    pub(super) fn lines(&self, id: &str) -> Result<String, Complaint> {
        fs::read_to_string(self.path(id)?).map_err(|_| none(id))
    }

    /// What differs between two of them.
    pub(super) fn compare(&self, a: &str, b: &str) -> Result<Value, Complaint> {
        let read = |id: &str| {
            Recording::read(&self.lines(id)?).map_err(|error| {
                let message = format!("The recording `{id}` cannot be read. {error}");
                Complaint::new(StatusCode::UNPROCESSABLE_ENTITY, message)
            })
        };
        Ok(json!(compare(&read(a)?, &read(b)?, &Ignore::default())))
    }

    fn path(&self, id: &str) -> Result<PathBuf, Complaint> {
        let is_good = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        if !(1..=64).contains(&id.len()) || !id.chars().all(is_good) {
            let message = "The name of a recording has up to 64 letters, digits, `_` and `-`.";
            return Err(Complaint::new(StatusCode::BAD_REQUEST, message));
        }
        Ok(self.folder.join(format!("{id}{END}")))
    }
}

fn none(id: &str) -> Complaint {
    let message = format!("There is no recording `{id}`.");
    Complaint::new(StatusCode::NOT_FOUND, message).advice("`/v1/recordings` has those there are.")
}

fn unwritten(error: &io::Error) -> Complaint {
    let message = format!("The recording cannot be written: {error}.");
    Complaint::new(StatusCode::INTERNAL_SERVER_ERROR, message)
}

const END: &str = ".jsonl";
/// How many recordings are kept, and of how many bytes in all.
const MOST: usize = 100;
const MOST_BYTES: u64 = 1 << 30;
const REMOVE: &str =
    "Remove one with `DELETE /v1/recordings/ID`; `/v1/recordings` has those there are.";
const REMOVE_OR_LESS: &str =
    "Remove some with `DELETE /v1/recordings/ID`, or keep fewer calls with a filter.";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use trunkline_testkit::Folder;

    fn lines(sum: u32) -> String {
        format!(
            "{}\n{}\n",
            r#"{"v":1,"t":1,"side":"client","dir":"in","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum"}}}"#,
            format_args!(
                r#"{{"v":1,"t":2,"side":"client","dir":"out","message":{{"jsonrpc":"2.0","id":1,"result":{{"sum":{sum}}}}}}}"#
            ),
        )
    }

    #[test]
    fn recordings_are_kept_found_and_compared() {
        let folder = Folder::new();
        let kept = KeptRecordings::new(folder.join("recordings"));
        assert_eq!(kept.list(), json!({ "recordings": [] }));
        kept.keep("a", lines(3).as_bytes()).unwrap();
        kept.keep("b-2", lines(4).as_bytes()).unwrap();
        assert_eq!(kept.keep("a", b"").unwrap_err().status, StatusCode::CONFLICT);
        let mode = fs::metadata(folder.join("recordings/a.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(kept.list()["recordings"].as_array().unwrap().len(), 2);
        assert_eq!(kept.lines("a").unwrap(), lines(3));
        assert_eq!(kept.lines("c").unwrap_err().status, StatusCode::NOT_FOUND);
        for bad in ["", "../a", "a/b", "a.b", &"x".repeat(65)] {
            assert_eq!(kept.lines(bad).unwrap_err().status, StatusCode::BAD_REQUEST, "{bad}");
        }
        let found = kept.compare("a", "b-2").unwrap();
        assert_eq!(found["differences"][0]["path"], "/result/sum", "{found}");
        assert_eq!(kept.compare("a", "a").unwrap()["equal"], true);
    }

    #[test]
    fn a_recording_is_removed_once_and_no_other_file_is() {
        let folder = Folder::new();
        let kept = KeptRecordings::new(folder.join("recordings"));
        assert_eq!(kept.remove("a").unwrap_err().status, StatusCode::NOT_FOUND);
        kept.keep("a", lines(3).as_bytes()).unwrap();
        for bad in ["", "../recordings/a", "a.jsonl"] {
            assert_eq!(kept.remove(bad).unwrap_err().status, StatusCode::BAD_REQUEST, "{bad}");
        }
        assert_eq!(kept.remove("a").unwrap(), json!({ "removed": "a" }));
        assert_eq!(kept.list(), json!({ "recordings": [] }));
        assert_eq!(kept.remove("a").unwrap_err().status, StatusCode::NOT_FOUND);
        kept.keep("a", b"").unwrap();
    }

    #[test]
    fn recordings_are_bounded_in_number_and_in_bytes_and_say_what_to_do() {
        let folder = Folder::new();
        let kept = KeptRecordings { most: (3, 10), ..KeptRecordings::new(folder.join("r")) };
        let refused = |id: &str, bytes: &[u8]| {
            let complaint = kept.keep(id, bytes).unwrap_err();
            assert_eq!(complaint.status, StatusCode::INSUFFICIENT_STORAGE, "{complaint}");
            assert!(complaint.to_string().contains("`DELETE /v1/recordings/ID`"), "{complaint}");
            complaint.to_string()
        };
        assert!(refused("a", &[b'x'; 11]).starts_with("This recording has 11 bytes"));
        kept.keep("a", &[b'x'; 6]).unwrap();
        assert!(refused("b", &[b'x'; 5]).contains("those that are kept 6"));
        kept.keep("b", &[b'x'; 4]).unwrap();
        kept.keep("c", b"").unwrap();
        assert!(refused("d", b"").starts_with("There are 3 recordings already"));
        assert_eq!(kept.keep("a", b"").unwrap_err().status, StatusCode::CONFLICT);
        kept.remove("a").unwrap();
        kept.keep("d", &[b'x'; 6]).unwrap();
    }
}
