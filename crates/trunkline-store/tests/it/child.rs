//! Starts this test program again as another process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const FOLDER: &str = "TRUNKLINE_STORE_CHILD";
const NUMBER: &str = "TRUNKLINE_STORE_NUMBER";

/// In a child: the folder to work in and a start number.
pub(crate) fn role() -> Option<(PathBuf, u64)> {
    let folder = std::env::var_os(FOLDER)?;
    let number = std::env::var(NUMBER).expect("the parent sets both");
    Some((folder.into(), number.parse().expect("the parent sets a number")))
}

/// Starts the test `name` as a child.
pub(crate) fn start(name: &str, folder: &Path, number: u64) -> Child {
    Command::new(std::env::current_exe().expect("a program knows where it is"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test program starts once more")
}

/// In a child: sends a line to the parent. Exits if the parent is gone.
pub(crate) fn tell(line: &str) {
    // The harness writes to the same pipe and may not have ended its line.
    let line = format!("\n{MARK}{line}\n");
    if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

/// The message in a line of a child's output, if there is one.
pub(crate) fn told(line: &str) -> Option<&str> {
    line.strip_prefix(MARK)
}

const MARK: &str = "told: ";
