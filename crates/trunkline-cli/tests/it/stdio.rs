//! The demo server, reached in four ways: in this process and in one of its own, with lines and
//! with `Content-Length` headers.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use trunkline::Revision;
use trunkline::client::{Command, Exit, Framing};
use trunkline::server::ServeError;
use trunkline::transport::child::{self, Child};
use trunkline::transport::memory;
use trunkline::{Limits, Server};
use trunkline_testkit::peer::{PATIENCE, Peer};

/// The demo itself, so that it can be served without a process.
#[path = "../../src"]
pub(crate) mod binary {
    #[allow(dead_code)] // Its `run` is for `main`.
    pub(crate) mod demo;
}

/// How the demo is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Memory(Framing),
    Process(Framing),
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [
        Self::Memory(Framing::Newline),
        Self::Memory(Framing::ContentLength),
        Self::Process(Framing::Newline),
        Self::Process(Framing::ContentLength),
    ];
}

/// A peer and the server at its other end.
pub(crate) struct Session {
    pub(crate) peer: Peer,
    pub(crate) end: End,
}

/// The server's end.
pub(crate) enum End {
    Task(JoinHandle<Result<(), ServeError>>),
    Process(Box<Child>),
}

impl Session {
    /// Reaches the demo; nothing is said yet.
    pub(crate) async fn new(way: Way, revision: Revision) -> Self {
        match way {
            Way::Memory(framing) => {
                let server = binary::demo::server().expect("the demo can be built");
                Self::serve(&server, framing, revision)
            }
            Way::Process(framing) => {
                let command = child::Command::new(TRUNKLINE).arg("demo");
                let child = Child::spawn(command, &Limits::default()).await;
                let mut child = child.expect("the binary can be run");
                let stdin = child.take_stdin().expect("nobody else has taken it");
                let stdout = child.take_stdout().expect("nobody else has taken it");
                let peer = Peer::new(stdout, stdin, framing, revision);
                Self { peer, end: End::Process(Box::new(child)) }
            }
        }
    }

    /// Serves `server` in this process.
    pub(crate) fn serve(server: &Server, framing: Framing, revision: Revision) -> Self {
        let ((reader, writer), (far_reader, far_writer)) = memory::pair();
        let server = server.clone();
        let task = tokio::spawn(async move { server.serve(far_reader, far_writer).await });
        Self { peer: Peer::new(reader, writer, framing, revision), end: End::Task(task) }
    }

    /// The demo in a process of its own, past the handshake.
    pub(crate) async fn demo(revision: Revision) -> Self {
        let mut session = Self::new(Way::Process(Framing::Newline), revision).await;
        session.peer.open().await;
        session
    }

    /// Hangs up and sees that the server ends well, having said nothing more.
    pub(crate) async fn end(mut self) {
        self.peer.hang_up().await;
        assert_eq!(self.peer.try_next().await, None, "nothing was owed");
        match self.end {
            End::Task(task) => {
                let served = timeout(PATIENCE, task).await.expect("the server ends");
                served.expect("it does not panic").expect("it ends in good order");
            }
            End::Process(mut child) => {
                let exit = timeout(PATIENCE, child.exited()).await.expect("the server ends");
                assert_eq!(exit, Exit::Code(0), "{}", child.stderr());
            }
        }
    }
}

/// Plays a script against the demo, past the handshake, in each of these revisions.
pub(crate) async fn in_each(
    revisions: impl IntoIterator<Item = Revision>,
    script: impl AsyncFn(Revision, &mut Peer),
) {
    for revision in revisions {
        let mut session = Session::demo(revision).await;
        script(revision, &mut session.peer).await;
        session.end().await;
    }
}

impl End {
    /// The process, which there must be.
    pub(crate) fn process(&mut self) -> &mut Child {
        match self {
            Self::Process(child) => child,
            Self::Task(_) => panic!("this server has no process of its own"),
        }
    }
}

/// The demo as a command for a client.
pub(crate) fn demo() -> Command {
    Command::new(TRUNKLINE).arg("demo")
}

/// A server that misbehaves in the way `mode` names.
pub(crate) fn fault(mode: &str) -> Command {
    Command::new(trunkline_testkit::fault::child()).arg(mode)
}

/// Bounds a wait.
pub(crate) async fn within<T>(limit: Duration, what: impl Future<Output = T>) -> T {
    timeout(limit, what).await.unwrap_or_else(|_| panic!("it took longer than {limit:?}"))
}

/// A line of `/proc/PID/status`, in KiB: `VmHWM` is the most memory a process ever had.
pub(crate) fn memory_of(pid: u32, line: &str) -> u64 {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{path}: {err}"));
    let value = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'));
    let number = value.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok());
    number.unwrap_or_else(|| panic!("{path} has no `{line}`"))
}

pub(crate) const TRUNKLINE: &str = env!("CARGO_BIN_EXE_trunkline");
