//! Recordings that operators keep: files of JSON lines in one folder.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use http::StatusCode;
use serde_json::{Value, json};
use trunkline_recording::compare::{Ignore, compare};
use trunkline_recording::recording::Recording;

use crate::admin::Complaint;
use crate::policy::stamp::rfc3339;

/// The folder of recordings.
#[derive(Debug)]
pub(super) struct KeptRecordings(pub(super) PathBuf);

impl KeptRecordings {
    /// All of them, newest first.
    pub(super) fn list(&self) -> Value {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut all: Vec<(SystemTime, Value)> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let id = name.strip_suffix(END)?.to_owned();
                let metadata = entry.metadata().ok()?;
                let at = metadata.modified().ok()?;
                let told = json!({ "id": id, "at": rfc3339(at), "bytes": metadata.len() });
                Some((at, told))
            })
            .collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.0));
        json!({ "recordings": all.into_iter().map(|it| it.1).collect::<Vec<_>>() })
    }

    /// Keeps one under a new name.
    pub(super) fn keep(&self, id: &str, lines: &[u8]) -> Result<Value, Complaint> {
        let path = self.path(id)?;
        let written =
            DirBuilder::new().recursive(true).mode(0o700).create(&self.0).and_then(|()| {
                let mut file =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
                file.write_all(lines)
            });
        match written {
            Ok(()) => Ok(json!({ "id": id, "bytes": lines.len() })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let message = format!("There is a recording `{id}` already.");
                Err(Complaint::new(StatusCode::CONFLICT, message).advice("Choose another name."))
            }
            Err(error) => {
                let message = format!("The recording cannot be written: {error}.");
                Err(Complaint::new(StatusCode::INTERNAL_SERVER_ERROR, message))
            }
        }
    }

    /// Its lines.
    pub(super) fn lines(&self, id: &str) -> Result<String, Complaint> {
        fs::read_to_string(self.path(id)?).map_err(|_| {
            let message = format!("There is no recording `{id}`.");
            Complaint::new(StatusCode::NOT_FOUND, message)
                .advice("`/v1/recordings` has those there are.")
        })
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
        Ok(Path::new(&self.0).join(format!("{id}{END}")))
    }
}

const END: &str = ".jsonl";

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
        let kept = KeptRecordings(folder.join("recordings"));
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
}
