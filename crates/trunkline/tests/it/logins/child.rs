//! This test binary, started again as another process that uses the same login.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use trunkline::auth::fetch::{Answer, Ask, Fetch, FetchError};
use trunkline::auth::vault::{Vault, VaultError};
use trunkline::auth::{self, FileVault, HttpFetch, Pending};

use super::{Setup, who};

/// A child process and its output.
pub(super) struct Child {
    process: std::process::Child,
    lines: BufReader<std::process::ChildStdout>,
}

/// Starts a child in this role, with its clock this many hours ahead.
pub(super) fn start(role: &str, hours: u64, setup: &Setup) -> Child {
    let mut process = Command::new(std::env::current_exe().expect("a program knows where it is"))
        .args(["--exact", "logins::child::another_process", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(HOURS, hours.to_string())
        .env(FOLDER, &setup.folder)
        .env(URL, &setup.url)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test program starts once more");
    let lines = BufReader::new(process.stdout.take().expect("its stdout is ours"));
    Child { process, lines }
}

impl Child {
    /// Waits for this line of the child.
    pub(super) fn hear(&mut self, expected: &str) {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "it never says `{expected}`, but: {all}");
            if line.trim_end().ends_with(&format!("{MARK}{expected}")) {
                return;
            }
            all += &line;
        }
    }

    /// Waits until it exits.
    pub(super) fn end(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In a child: hours later the access token has expired, so the child refreshes it.
#[tokio::test]
async fn another_process() {
    let Ok(role) = std::env::var(ROLE) else {
        assert!(std::env::var_os(FOLDER).is_none(), "the parent sets all or none");
        return;
    };
    let folder = std::env::var_os(FOLDER).expect("the parent sets a folder");
    let url = std::env::var(URL).expect("the parent sets a URL");
    let vault = Told { vault: FileVault::new(folder), dies: role == "die" };
    let hours: u64 = std::env::var(HOURS).expect("the parent sets hours").parse().unwrap();
    let fetch = Later(HttpFetch::for_server(&url), Duration::from_secs(3600 * hours));
    let oauth = auth::oauth(&*url).vault(Arc::new(vault)).fetch(Arc::new(fetch));
    let name = who(Arc::new(oauth), &url).await;
    assert_eq!(name, "alice");
    tell("I am alice");
}

/// The network, with a clock ahead.
struct Later(HttpFetch, Duration);

impl Fetch for Later {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        self.0.fetch(ask)
    }

    fn now(&self) -> SystemTime {
        self.0.now() + self.1
    }
}

/// A vault that reports when it is about to be locked, and may exit the process instead of saving.
struct Told {
    vault: FileVault,
    dies: bool,
}

impl Vault for Told {
    fn get<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Option<String>, VaultError>> {
        self.vault.get(name)
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str) -> Pending<'a, Result<(), VaultError>> {
        Box::pin(async move {
            // Before the refresh, the old login is stored once more, to check that it can be.
            let is_new = self.vault.get(name).await?.as_deref() != Some(text);
            if self.dies && is_new && name.starts_with("token ") {
                let process = std::process::id().to_string();
                let _ = Command::new("kill").args(["-9", &process]).status();
                return std::future::pending().await;
            }
            self.vault.put(name, text).await
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, Result<(), VaultError>> {
        self.vault.remove(name)
    }

    fn names(&self) -> Pending<'_, Result<Vec<String>, VaultError>> {
        self.vault.names()
    }

    fn lock<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, VaultError>> {
        tell("about to refresh");
        self.vault.lock(name)
    }
}

/// Reports to the parent. Exits when the parent is gone.
fn tell(line: &str) {
    // The test harness writes to stdout too, perhaps without a newline.
    let line = format!("\n{MARK}{line}\n");
    if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

const ROLE: &str = "TRUNKLINE_LOGINS_ROLE";
const HOURS: &str = "TRUNKLINE_LOGINS_HOURS";
const FOLDER: &str = "TRUNKLINE_LOGINS_FOLDER";
const URL: &str = "TRUNKLINE_LOGINS_URL";
const MARK: &str = "told: ";
