//! How the end of a connection looks to its callers.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::timeout;
use trunkline_proto::CallError;
use trunkline_proto::client::Config;
use trunkline_transport::connection::Connection;
use trunkline_transport::conversation_handle::Request;
use trunkline_transport::handler::Nobody;
use trunkline_transport::{Limits, memory};
use trunkline_wire::frame::Framing;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::Implementation;
use trunkline_wire::revision::{Revision, Revisions};

const PATIENCE: Duration = Duration::from_secs(10);

/// A server after the handshake.
struct Peer {
    lines: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.lines.read_line(&mut line)).await.expect("a line comes").unwrap();
        line
    }
}

async fn open() -> (Connection, Peer) {
    let mut config = Config::new(Implementation::new("c", "1"));
    config.revisions = Revisions::only(Revision::V2025_06_18);
    let (near, (reader, writer)) = memory::pair();
    let (config, nobody, limits) = (Arc::new(config), Arc::new(Nobody), Limits::default());
    let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
    let mut peer = Peer { lines: BufReader::new(reader), writer };
    let serving = async {
        assert!(peer.line().await.contains("initialize"));
        let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
        peer.writer.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
        assert!(peer.line().await.contains("notifications/initialized"));
    };
    let (connection, ()) = tokio::join!(opening, serving);
    (connection.unwrap(), peer)
}

type Calling = std::pin::Pin<Box<dyn Future<Output = Result<Json, CallError>> + Send>>;

fn call(connection: &Connection) -> Calling {
    let params = Object::parse(r#"{"name":"t"}"#).unwrap();
    Box::pin(connection.call(Request::new("tools/call", params)))
}

async fn is_pending<T>(future: &mut (impl Future<Output = T> + Unpin)) -> bool {
    poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())).await
}

fn was_not_made(outcome: &Result<Json, CallError>) -> bool {
    matches!(outcome, Err(CallError::Unreachable(_)))
}

#[tokio::test]
async fn a_call_that_was_sent_fails_differently_from_one_that_was_not() {
    let (connection, mut peer) = open().await;
    let (mut sent, mut queued) = (call(&connection), call(&connection));
    assert!(is_pending(&mut sent).await);
    assert!(peer.line().await.contains("tools/call"));
    // After one poll it is queued; the driver has not run yet.
    assert!(is_pending(&mut queued).await);
    let late = call(&connection);
    drop(connection);
    assert_eq!(timeout(PATIENCE, sent).await.expect("it ends"), Err(CallError::Closed));
    let queued = timeout(PATIENCE, queued).await.expect("it ends");
    assert!(was_not_made(&queued), "{queued:?}");
    let late = timeout(PATIENCE, late).await.expect("it ends");
    assert!(was_not_made(&late), "{late:?}");
}

#[tokio::test]
async fn everyone_who_waits_for_the_end_learns_of_it() {
    let (connection, mut peer) = open().await;
    let (mut one, other) = (Box::pin(connection.ended()), connection.ended());
    let mut sent = call(&connection);
    assert!(is_pending(&mut sent).await && is_pending(&mut one).await);
    assert!(peer.line().await.contains("tools/call"));
    drop(peer);
    timeout(PATIENCE, async { tokio::join!(one, other) }).await.expect("it is told");
    // By then everything else is known too.
    assert!(connection.is_closed());
    assert!(!is_pending(&mut sent).await, "its outcome is there already");
    let late = timeout(PATIENCE, call(&connection)).await.expect("it does not wait");
    assert!(was_not_made(&late), "{late:?}");
    timeout(PATIENCE, connection.ended()).await.expect("it stays so");
}

#[tokio::test]
async fn a_connection_that_is_dropped_or_closed_has_ended() {
    let (connection, _peer) = open().await;
    let ended = connection.ended();
    drop(connection);
    timeout(PATIENCE, ended).await.expect("dropped");
    let (connection, _peer) = open().await;
    let ended = connection.ended();
    connection.close().await;
    timeout(PATIENCE, ended).await.expect("closed");
}

#[tokio::test]
async fn once_the_end_has_begun_no_call_is_made() {
    let (connection, mut peer) = open().await;
    connection.handle().close();
    let late = timeout(PATIENCE, call(&connection)).await.expect("it does not wait");
    assert!(was_not_made(&late), "{late:?}");
    timeout(PATIENCE, connection.ended()).await.expect("it ends");
    drop(connection);
    assert_eq!(peer.line().await, "", "nothing more was sent");
}
