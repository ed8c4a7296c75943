//! The loop itself: peers that stop reading, callers that give up, handlers that fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use trunkline_proto::client::{Client, Config as ClientConfig};
use trunkline_proto::server::{Config, Server};
use trunkline_proto::{Call, PeerNotification};
use trunkline_transport::Limits;
use trunkline_transport::conversation_handle::{ConversationHandle, Request};
use trunkline_transport::drive::{DriveError, Driver};
use trunkline_transport::handler::{Answer, Handler, Nobody};
use trunkline_transport::memory;
use trunkline_wire::frame::Framing;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{Implementation, ListChanged, RootsCapability, ServerCapabilities};
use trunkline_wire::revision::{Revision, Revisions};

const PATIENCE: Duration = Duration::from_secs(60);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#;

/// Answers `tools/list` with 64 KiB at once, and `tools/call` once the client has answered
/// `roots/list`.
struct Answers;

impl Handler for Answers {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        if call.method.name == "tools/list" {
            return Answer::Now(Ok(Json::of(&"x".repeat(64 << 10))));
        }
        let request =
            Request { during: Some(call.key), ..Request::new("roots/list", Object::default()) };
        let roots = handle.ask(request);
        Answer::later(async move { Ok(roots.await.unwrap_or_else(|_| Json::null())) })
    }
}

fn server(limits: Limits) -> (memory::End, tokio::task::JoinHandle<Result<(), DriveError>>) {
    let mut config = Config::new(Implementation::new("s", "1"));
    config.capabilities = ServerCapabilities::new();
    config.capabilities.tools = Some(ListChanged::new(true));
    let (near, far) = memory::pair();
    let core = Server::new(Arc::new(config));
    let driver = Driver::new(core, Arc::new(Answers), far, None, limits);
    (near, tokio::spawn(driver.run()))
}

fn lists(count: usize) -> String {
    let list = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    (1..=count).map(|id| list(id) + "\n").collect()
}

#[tokio::test]
async fn a_peer_that_hangs_up_without_reading_is_not_waited_for_long() {
    let limits = Limits::default().drain(Duration::from_millis(100));
    let ((reader, mut writer), serving) = server(limits);
    writer.write_all(format!("{INITIALIZE}\n{}", lists(3)).as_bytes()).await.unwrap();
    writer.shutdown().await.unwrap();
    let started = Instant::now();
    timeout(PATIENCE, serving).await.expect("it ends").unwrap().unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(reader);
}

#[tokio::test]
async fn a_peer_that_asks_without_reading_is_not_read_from_even_if_it_owes_an_answer() {
    let ((mut reader, mut writer), serving) = server(Limits::default().unsent_bytes(128 << 10));
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}"#;
    let padded = format!(r#""tools/list","params":{{"pad":"{}"}}"#, "-".repeat(1000));
    let lists = lists(1000).replace(r#""tools/list""#, &padded);
    let flood = format!("{INITIALIZE}\n{call}\n{lists}");
    let mut left = flood.as_bytes();
    // Until nothing moves any more, long before everything is read.
    while let Ok(written) = timeout(Duration::from_millis(300), writer.write(left)).await {
        left = &left[written.unwrap()..];
        assert!(!left.is_empty(), "everything was read though nobody reads the answers");
    }
    // Nothing is lost once the peer reads.
    let asking = async {
        writer.write_all(left).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let reading = async {
        let mut all = Vec::new();
        timeout(PATIENCE, reader.read_to_end(&mut all)).await.expect("it ends").unwrap();
        String::from_utf8(all).unwrap().lines().filter(|line| line.contains("xxx")).count()
    };
    let ((), lines) = tokio::join!(asking, reading);
    assert_eq!(lines, 1000);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_slow_reader_gets_all_its_answers_after_it_has_hung_up() {
    let ((mut reader, mut writer), serving) =
        server(Limits::default().drain(Duration::from_millis(200)));
    writer.write_all(format!("{INITIALIZE}\n{}", lists(8)).as_bytes()).await.unwrap();
    writer.shutdown().await.unwrap();
    let (mut bytes, mut bite) = (Vec::new(), vec![0; 32 << 10]);
    loop {
        // the sleep is the subject: in total it is longer than the drain time, but never at once.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let n = timeout(PATIENCE, reader.read(&mut bite)).await.expect("more comes").unwrap();
        if n == 0 {
            break;
        }
        bytes.extend_from_slice(&bite[..n]);
    }
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, 9);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn calls_before_a_broken_frame_are_answered() {
    let ((mut reader, mut writer), serving) = server(Limits::default());
    let frame = format!("Content-Length: {}\r\n\r\n{INITIALIZE}", INITIALIZE.len());
    writer.write_all(format!("{frame}Content-Length: what?\r\n\r\n").as_bytes()).await.unwrap();
    let mut all = String::new();
    timeout(PATIENCE, reader.read_to_string(&mut all)).await.expect("it ends").unwrap();
    assert!(all.contains(r#""protocolVersion":"2025-06-18""#), "{all}");
    let outcome = serving.await.unwrap();
    assert!(matches!(outcome, Err(DriveError::Framing(_))), "{outcome:?}");
}

#[tokio::test]
async fn answers_wait_for_a_slow_reader_and_none_is_lost() {
    let ((mut reader, mut writer), serving) = server(Limits::default().unsent_bytes(128 << 10));
    let asking = async {
        writer.write_all(format!("{INITIALIZE}\n{}", lists(100)).as_bytes()).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let reading = async {
        let mut all = Vec::new();
        timeout(PATIENCE, reader.read_to_end(&mut all)).await.expect("it ends").unwrap();
        all.iter().filter(|byte| **byte == b'\n').count()
    };
    let ((), lines) = tokio::join!(asking, reading);
    assert_eq!(lines, 101);
    serving.await.unwrap().unwrap();
}

/// A client of 2025-06-18, and the server's end of its conversation after the handshake.
async fn client(
    handler: Arc<impl Handler>,
) -> (
    ConversationHandle,
    BufReader<tokio::io::ReadHalf<tokio::io::DuplexStream>>,
    tokio::io::WriteHalf<tokio::io::DuplexStream>,
) {
    let mut config = ClientConfig::new(Implementation::new("c", "1"));
    config.revisions = Revisions::only(Revision::V2025_06_18);
    config.capabilities.roots = Some(RootsCapability::new(false));
    let (near, (reader, mut writer)) = memory::pair();
    let core = Client::new(Arc::new(config), Instant::now());
    let mut driver = Driver::new(core, handler, near, Some(Framing::Newline), Limits::default());
    let (handle, opened) = (driver.handle(), driver.on_opened());
    tokio::spawn(driver.run());
    let mut lines = BufReader::new(reader);
    let mut line = String::new();
    lines.read_line(&mut line).await.unwrap();
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    writer.write_all(format!("{result}\n").as_bytes()).await.unwrap();
    opened.await.unwrap().unwrap();
    line.clear();
    lines.read_line(&mut line).await.unwrap();
    assert!(line.contains("notifications/initialized"), "{line}");
    (handle, lines, writer)
}

async fn next_line(lines: &mut (impl AsyncBufReadExt + Unpin)) -> String {
    let mut line = String::new();
    timeout(PATIENCE, lines.read_line(&mut line)).await.expect("a line comes").unwrap();
    line
}

#[tokio::test]
async fn a_call_dropped_before_it_is_sent_is_never_sent() {
    let (handle, mut lines, _writer) = client(Arc::new(Nobody)).await;
    let mut asking = Box::pin(handle.ask(Request::new("tools/list", Object::default())));
    // After one poll the call is queued; the driver has not run yet.
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(asking.as_mut().poll(cx))).await;
    assert!(polled.is_pending());
    drop(asking);
    let ping = handle.ask(Request::new("ping", Object::default()));
    let asked = async { ping.await.map(drop) };
    let (line, _) = tokio::join!(next_line(&mut lines), timeout(Duration::from_millis(200), asked));
    assert!(line.contains(r#""method":"ping""#), "{line}");
}

#[tokio::test]
async fn a_listener_that_panics_costs_nothing_else() {
    struct Clumsy;
    impl Handler for Clumsy {
        fn call(&self, _: Call, _: &ConversationHandle) -> Answer {
            Answer::Now(Ok(Json::empty_object()))
        }

        fn heard(&self, _: PeerNotification, _: &ConversationHandle) {
            panic!("a listener of the test fails");
        }
    }
    let (_handle, mut lines, mut writer) = client(Arc::new(Clumsy)).await;
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    writer.write_all(format!("{changed}\n{ping}\n").as_bytes()).await.unwrap();
    assert_eq!(next_line(&mut lines).await, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}\n");
}
