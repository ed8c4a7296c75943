//! Our one secret in a keyring ⇄ the program that stores it there.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A program that accesses a keyring. Secrets pass through its stdin and stdout, because other users
/// can read its arguments.
#[derive(Clone, Debug)]
pub(super) enum Tool {
    /// `secret-tool`, of the Secret Service.
    Secret(Vec<String>),
    /// `security`, of macOS.
    Security(Vec<String>),
}

impl Default for Tool {
    fn default() -> Self {
        match cfg!(target_os = "macos") {
            true => Self::Security(vec!["security".to_owned()]),
            false => Self::Secret(vec!["secret-tool".to_owned()]),
        }
    }
}

impl Tool {
    /// The secret, if there is one.
    pub(super) async fn lookup(&self) -> Result<Option<String>, String> {
        let (program, args, nothing): (_, &[&str], _) = match self {
            Self::Secret(it) => (it, &["lookup", "service", "trunkline", "account", "logins"], 1),
            Self::Security(it) => {
                let args = &["find-generic-password", "-s", "trunkline", "-a", "logins", "-w"];
                // `errSecItemNotFound`, as an exit status.
                (it, args, 44)
            }
        };
        let said = run(program, args, "").await?;
        match said.status {
            Some(0) => Ok(Some(said.out).filter(|it| !it.is_empty())),
            // The Secret Service has the same status for failures, and explains those on stderr.
            Some(status) if status == nothing => match (self, &*said.error) {
                (Self::Security(_), _) | (_, "") => Ok(None),
                _ => Err(said.failure(program)),
            },
            _ => Err(said.failure(program)),
        }
    }

    /// Stores the secret, which is alphanumeric.
    pub(super) async fn store(&self, secret: &str) -> Result<(), String> {
        let (program, args, input): (_, &[&str], _) = match self {
            Self::Secret(it) => {
                let args = &[
                    "store",
                    "--label=trunkline: the key of logins",
                    "service",
                    "trunkline",
                    "account",
                    "logins",
                ];
                (it, args, secret.to_owned())
            }
            Self::Security(it) => {
                let line = format!("add-generic-password -U -s trunkline -a logins -w {secret}\n");
                (it, &["-i"], line)
            }
        };
        let said = run(program, args, &input).await?;
        if said.status == Some(0) { Ok(()) } else { Err(said.failure(program)) }
    }
}

/// How a program ended, and its output.
struct Said {
    status: Option<i32>,
    out: String,
    error: String,
}

impl Said {
    fn failure(&self, program: &[String]) -> String {
        let name = &program[0];
        let line: String =
            self.error.lines().next().unwrap_or_default().trim().chars().take(200).collect();
        match (line.is_empty(), self.status) {
            (false, _) => format!("`{name}` says: {}", line.trim_end_matches('.')),
            (true, Some(status)) => format!("`{name}` ended with the status {status}"),
            (true, None) => format!("`{name}` was killed"),
        }
    }
}

/// Runs a program to its end, and kills it if the caller stops waiting.
async fn run(program: &[String], args: &[&str], input: &str) -> Result<Said, String> {
    let name = &program[0];
    let started = Command::new(name)
        .args(&program[1..])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = Running(started.map_err(|error| format!("`{name}` does not start: {error}"))?);
    if let Some(mut stdin) = child.0.stdin.take() {
        // A program that does not read its input fails with a status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let by = Instant::now() + UNLOCK_TIMEOUT;
    // Its output fits into the pipe buffer, so it ends without being read.
    let status = loop {
        match child.0.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < by => sleep(PAUSE).await,
            Ok(None) => {
                let seconds = UNLOCK_TIMEOUT.as_secs();
                return Err(format!("`{name}` did not end within {seconds} s"));
            }
            Err(error) => return Err(format!("`{name}` is lost: {error}")),
        }
    };
    let out = text(child.0.stdout.take());
    let error = text(child.0.stderr.take());
    Ok(Said { status: status.code(), out, error })
}

fn text(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let _ = from.take(LONGEST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned()
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// How long a person may take to unlock a keyring.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);
/// How much output is read: less than the pipe buffer holds.
const LONGEST: u64 = 16 * 1024;
