//! Whatever goes wrong, the client gets exactly one answer and the model a useful text: over real
//! pipes and over HTTP, in both eras.

mod dropped;
mod panics;
mod refused;
mod slow;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::sync::Semaphore;
use trunkline::client::Framing;
use trunkline::server::ToolEntry;
use trunkline::{Revision, Server, State, tool};
use trunkline_testkit::http::{Guest, Line};
use trunkline_testkit::peer::Peer;

use crate::http::House;
use crate::server::{builder, soon};

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Pipes,
    Http,
}

pub(crate) const TRANSPORTS: [Transport; 2] = [Transport::Pipes, Transport::Http];

/// Every combination of transport and revision.
pub(crate) fn transports_of(revisions: &[Revision]) -> Vec<(Transport, Revision)> {
    let all = TRANSPORTS
        .iter()
        .flat_map(|transport| revisions.iter().map(|revision| (*transport, *revision)));
    // 2024-11-05 has its own HTTP transport, with its own tests.
    all.filter(|it| *it != (Transport::Http, Revision::V2024_11_05)).collect()
}

/// A client that validates every message it gets.
pub(crate) enum Side {
    Pipes(Box<Peer>),
    Http(Box<Guest>, House),
}

/// A server with this tool, one that says `hi`, and a gate.
fn with_hi(gate: &Arc<Gate>, entry: ToolEntry) -> Server {
    let hi = tool("hi", async || "hi");
    builder().shared_state(Arc::clone(gate)).tool(entry).tool(hi).build()
}

/// A call in flight.
pub(crate) struct Begun {
    asked: Value,
    line: Option<Line>,
}

/// The server's and the client's end of two pipes of the operating system.
pub(crate) fn pipes() -> ((pipe::Receiver, pipe::Sender), (pipe::Receiver, pipe::Sender)) {
    let one = || {
        let (reader, writer) = std::io::pipe().expect("the system has pipes");
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        (reader, pipe::Sender::from_owned_fd(OwnedFd::from(writer)).unwrap())
    };
    let ((there, to), (back, from)) = (one(), one());
    ((there, from), (back, to))
}

impl Side {
    pub(crate) async fn of(server: &Server, transport: Transport, revision: Revision) -> Self {
        Self::with(server, transport, revision, |_| {}).await
    }

    /// A client with these capabilities.
    pub(crate) async fn with(
        server: &Server,
        transport: Transport,
        revision: Revision,
        change: impl FnOnce(&mut Value),
    ) -> Self {
        match transport {
            Transport::Pipes => {
                let ((far_reader, far_writer), (reader, writer)) = pipes();
                let server = server.clone();
                tokio::spawn(async move { server.serve(far_reader, far_writer).await });
                let mut peer = Peer::new(reader, writer, Framing::Newline, revision);
                change(&mut peer.capabilities);
                peer.open().await;
                Self::Pipes(Box::new(peer))
            }
            Transport::Http => {
                let house = House::of(server).await;
                let mut guest = Guest::new(house.address, revision);
                change(&mut guest.capabilities);
                guest.shake_hands().await;
                Self::Http(Box::new(guest), house)
            }
        }
    }

    /// Sends a request, valid or not, without waiting for its answer.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> Begun {
        match self {
            Self::Pipes(peer) => {
                let asked = peer.prepare(method, params);
                peer.send_text(&asked.to_string()).await;
                Begun { asked, line: None }
            }
            Self::Http(guest, _) => {
                let asked = guest.prepare(method, params);
                let mut line = Line::to(guest.address).await;
                line.send(guest.text(&asked)).await;
                Begun { asked, line: Some(line) }
            }
        }
    }

    pub(crate) async fn answer_to(&mut self, begun: Begun) -> Result<Value, Value> {
        match (self, begun.line) {
            (Self::Pipes(peer), None) => soon(peer.answer_to(&begun.asked["id"])).await,
            (Self::Http(guest, _), Some(mut line)) => {
                let head = line.head().await;
                let mut answer = guest.answer(&begun.asked, &mut line, head).await.message;
                match answer.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(answer["result"].take()),
                }
            }
            _ => unreachable!("what is begun one transport is answered that transport"),
        }
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let begun = self.begin(method, params).await;
        self.answer_to(begun).await
    }

    pub(crate) async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let params = serde_json::json!({ "name": name, "arguments": arguments });
        self.call("tools/call", params).await.unwrap_or_else(|it| panic!("`{name}` failed: {it}"))
    }

    /// Panics if any request got two answers. Over HTTP each answer has checked that already.
    pub(crate) fn assert_no_answer_came_twice(&self) {
        let Self::Pipes(peer) = self else { return };
        let answers = peer.heard.iter().filter(|it| it.get("method").is_none());
        let ids: Vec<_> = answers.map(|it| it["id"].to_string()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    }
}

/// Where handlers wait, and the signals that they send.
pub(crate) struct Gate {
    pub(crate) entered: Semaphore,
    pub(crate) open: Semaphore,
    pub(crate) dropped: Semaphore,
    pub(crate) told: Semaphore,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        let closed = || Semaphore::new(0);
        Arc::new(Self { entered: closed(), open: closed(), dropped: closed(), told: closed() })
    }

    /// Waits for one more signal.
    pub(crate) async fn pass(&self, what: &Semaphore) {
        soon(what.acquire()).await.unwrap().forget();
    }
}

/// Signals when it is dropped.
pub(crate) struct Bell(pub(crate) Arc<Gate>);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.dropped.add_permits(1);
    }
}

/// A tool that waits at the gate.
pub(crate) async fn wait(State(gate): State<Gate>) -> &'static str {
    let _bell = Bell(Arc::clone(&gate));
    gate.entered.add_permits(1);
    gate.open.acquire().await.unwrap().forget();
    "waited"
}
