//! A command → a running server with its pipes, and no process left afterwards.
//!
//! The child leads its own session and process group. Signals go to the group, so that they also reach
//! what `npx` or `sh` started. They are only sent while the leader is not reaped, so that they never
//! hit another process that got the same number. If this process is killed itself, the
//! [`orphan_reaper`] kills the groups of its children.

mod command;
mod error;
pub mod orphan_reaper;
mod spawn;
mod stderr;

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::limits::Limits;
use spawn::Group;

pub(crate) use spawn::{keep_apart, trim};

pub use command::{Command, INHERITED};
pub use error::{SpawnError, Stage};
pub use stderr::Stderr;

/// How long to wait for the last stderr lines of a child that has ended, in case a process that left
/// the group still holds the pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running child. Dropping it kills the whole process group at once.
#[derive(Debug)]
pub struct Child {
    group: Arc<Group>,
    exit: watch::Receiver<Option<Exit>>,
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Stderr,
    reader: Task,
    stop_after_eof: Duration,
    stop_after_term: Duration,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Child {
    /// Starts `command`. When this returns, the child has executed its program; every earlier failure
    /// is in the error.
    pub async fn spawn(command: Command, limits: &Limits) -> Result<Self, SpawnError> {
        let (command, on_line) = command.into_parts();
        let fail = |stage| {
            let program = command.program().to_owned();
            move |cause: io::Error| SpawnError::new(stage, &program, cause)
        };
        let (input, stdin) = io::pipe().map_err(fail(Stage::Pipes))?;
        let (stdout, output) = io::pipe().map_err(fail(Stage::Pipes))?;
        let (stderr, errors) = io::pipe().map_err(fail(Stage::Pipes))?;
        let stdin = pipe::Sender::from_owned_fd(stdin.into()).map_err(fail(Stage::Pipes))?;
        let stdout = pipe::Receiver::from_owned_fd(stdout.into()).map_err(fail(Stage::Pipes))?;
        let errors_read =
            pipe::Receiver::from_owned_fd(stderr.into()).map_err(fail(Stage::Pipes))?;

        let errors = match command.shares_stderr() {
            true => io::stderr().as_fd().try_clone_to_owned().map_err(fail(Stage::Pipes))?,
            false => errors.into(),
        };

        let ends = [input.into(), output.into(), errors];
        let (group, exit) = spawn::spawn(command, ends).await?;

        let stderr = Stderr::new(limits);
        let reader = Task(tokio::spawn(stderr.clone().read(errors_read, on_line)));
        Ok(Self {
            group,
            exit,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr,
            reader,
            stop_after_eof: limits.stop_after_eof,
            stop_after_term: limits.stop_after_term,
        })
    }

    /// Its process id, which is also its process group id.
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// The write end of its stdin. Dropping it closes the child's stdin.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.stdin.take()
    }

    /// The read end of its stdout.
    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.stdout.take()
    }

    /// The last lines of its stderr, updated live. Stays readable after the child is gone.
    pub fn stderr(&self) -> &Stderr {
        &self.stderr
    }

    /// How it ended, if it did.
    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Waits until it has ended, its group is gone and its stderr is read.
    pub async fn exited(&mut self) -> Exit {
        let exit = ended(&mut self.exit).await;
        // A second call finds the reader finished.
        if !self.reader.0.is_finished() {
            let _ = timeout(LAST_WORDS, &mut self.reader.0).await;
        }
        exit
    }

    /// Stops it gracefully: closes stdin, then sends SIGTERM, then SIGKILL to the whole group. Drop the
    /// result of [`Child::take_stdin`] before, or the first step has no effect.
    pub async fn stop(mut self) -> Exit {
        drop(self.stdin.take());
        // A child that blocks on writing never reads the end of its input.
        let _drain = self.stdout.take().map(|stdout| Task(tokio::spawn(drain(stdout))));
        if timeout(self.stop_after_eof, ended(&mut self.exit)).await.is_err() {
            self.group.terminate();
            if timeout(self.stop_after_term, ended(&mut self.exit)).await.is_err() {
                self.group.kill();
            }
        }
        self.exited().await
    }

    /// Sends a signal to the whole process group, such as one that this process got itself.
    pub fn signal(&self, number: i32) {
        self.group.signal(number);
    }

    /// Kills the whole process group now.
    pub fn kill(&self) {
        self.group.kill();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The thread that waits for the child reaps it.
        self.group.kill();
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// A task that is aborted with its owner.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn ended(exit: &mut watch::Receiver<Option<Exit>>) -> Exit {
    let exit = exit.wait_for(Option::is_some).await.map(|exit| *exit);
    // The sender closes without a value only if waiting failed, which means that other code in this
    // process reaped the child.
    exit.ok().flatten().unwrap_or(Exit::Code(-1))
}

async fn drain(mut stdout: pipe::Receiver) {
    let mut buffer = vec![0; 16 << 10];
    while !matches!(stdout.read(&mut buffer).await, Ok(0) | Err(_)) {}
}
