//! Whatever goes wrong, the caller gets exactly one answer and the model a useful text: over real
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
use trunkline::{Revision, Server, State};
use trunkline_testkit::http::{Guest, Line};
use trunkline_testkit::peer::Peer;

use crate::http::House;
use crate::server::soon;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Pipes,
    Http,
}

pub(crate) const WAYS: [Way; 2] = [Way::Pipes, Way::Http];

/// The way and revision in every combination there is.
pub(crate) fn ways_of(revisions: &[Revision]) -> Vec<(Way, Revision)> {
    let all = WAYS.iter().flat_map(|way| revisions.iter().map(|revision| (*way, *revision)));
    // 2024-11-05 has an HTTP of its own, with tests of its own.
    all.filter(|it| *it != (Way::Http, Revision::V2024_11_05)).collect()
}

/// A caller that judges every message it gets.
pub(crate) enum Side {
    Pipes(Box<Peer>),
    Http(Box<Guest>, House),
}

/// A call that is not answered yet.
pub(crate) struct Begun {
    asked: Value,
    line: Option<Line>,
}

/// A server's end of two pipes of the operating system, and a client's.
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
    pub(crate) async fn of(server: &Server, way: Way, revision: Revision) -> Self {
        Self::with(server, way, revision, |_| {}).await
    }

    /// A caller that can do less than everything, perhaps.
    pub(crate) async fn with(
        server: &Server,
        way: Way,
        revision: Revision,
        change: impl FnOnce(&mut Value),
    ) -> Self {
        match way {
            Way::Pipes => {
                let ((far_reader, far_writer), (reader, writer)) = pipes();
                let server = server.clone();
                tokio::spawn(async move { server.serve(far_reader, far_writer).await });
                let mut peer = Peer::new(reader, writer, Framing::Newline, revision);
                change(&mut peer.capabilities);
                peer.open().await;
                Self::Pipes(Box::new(peer))
            }
            Way::Http => {
                let house = House::of(server).await;
                let mut guest = Guest::new(house.address, revision);
                change(&mut guest.capabilities);
                guest.shake_hands().await;
                Self::Http(Box::new(guest), house)
            }
        }
    }

    /// Sends a request, right or wrong, and does not wait for its answer.
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
            _ => unreachable!("what is begun one way is answered that way"),
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

    /// Panics unless everything was answered at most once. Over HTTP that was seen with each answer.
    pub(crate) fn assert_no_answer_came_twice(&self) {
        let Self::Pipes(peer) = self else { return };
        let answers = peer.heard.iter().filter(|it| it.get("method").is_none());
        let ids: Vec<_> = answers.map(|it| it["id"].to_string()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    }
}

/// Where handlers wait, and what they tell.
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

    /// Waits until something has happened once more.
    pub(crate) async fn pass(&self, what: &Semaphore) {
        soon(what.acquire()).await.unwrap().forget();
    }
}

/// Tells when it is dropped.
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
