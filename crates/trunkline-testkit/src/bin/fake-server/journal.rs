//! What happens to this process into lines of a file that the test reads.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::exit;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::Options;

/// The log; several processes may append to one file.
pub(crate) struct Journal {
    file: Option<File>,
    name: String,
}

impl Journal {
    /// Opens the file that the options name.
    pub(crate) fn open(options: &Options) -> Journal {
        let file = options.log.as_ref().map(|path| {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            opened.unwrap_or_else(|error| panic!("`{}` cannot be opened: {error}", path.display()))
        });
        Journal { file, name: options.name.clone() }
    }

    /// Appends `{event, name, pid, at, …fields}`, `at` in milliseconds since 1970.
    pub(crate) fn write(&self, event: &str, fields: Value) {
        let Some(mut file) = self.file.as_ref() else { return };
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis());
        let mut line = json!({
            "event": event, "name": self.name, "pid": std::process::id(), "at": at as u64,
        });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        // One write for each line: the kernel keeps those of several processes whole.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }

    /// Ends the process, which is the last thing written.
    pub(crate) fn exit(&self, code: i32) -> ! {
        self.write("exit", json!({ "code": code }));
        exit(code)
    }
}
