//! Faults of the client and of handlers, as the demo server meets them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::timeout;
use trunkline::client::{Exit, Framing};
use trunkline::transport::child::{self, Child};
use trunkline::{Limits, Revision};
use trunkline_testkit::peer::{PATIENCE, Peer};

use super::{ALLOWANCE, figure};
use crate::stdio::{Session, TRUNKLINE, Way, in_each, memory_of, within};

pub(super) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

pub(super) fn sleep(ms: u64) -> Value {
    json!({ "name": "sleep", "arguments": { "ms": ms } })
}

/// A call whose answer comes after everything that was sent before it has been read.
pub(super) async fn sentinel(peer: &mut Peer) {
    let before = peer.heard.len();
    peer.tool("echo", json!({ "text": "sentinel" })).await;
    assert_eq!(peer.heard.len(), before + 1, "nothing else was owed: {:?}", &peer.heard[before..]);
}

#[tokio::test]
async fn a_panicking_handler_costs_its_own_call_alone() {
    for revision in ERAS {
        let mut session = Session::demo(revision).await;
        let pid = session.end.process().id();
        let peer = &mut session.peer;
        let other = peer.request("tools/call", sleep(50)).await;
        let mut base = 0;
        let started = Instant::now();
        for round in 0..1000 {
            let failed = peer.tool("boom", json!({})).await;
            assert_eq!(failed["isError"], true);
            let failed = failed.to_string();
            assert!(
                !failed.contains("what `boom` does"),
                "the panic's text stays inside: {failed}"
            );
            if round == 100 {
                base = memory_of(pid, "VmRSS");
            }
        }
        figure("1,000 panics", format!("{:?}", started.elapsed()));
        let grown = memory_of(pid, "VmRSS").saturating_sub(base);
        assert!(grown < 4 << 10, "900 panics cost {grown} KiB");
        let slept = peer.answer_to(&other).await.unwrap();
        assert_eq!(slept["content"][0]["text"], "slept 50 ms", "the neighbour is unharmed");
        sentinel(peer).await;
        session.end().await;
    }
}

#[tokio::test]
async fn a_cancelled_call_is_silent_and_the_next_one_is_answered_at_once() {
    in_each(ERAS, async |_, peer| {
        for _ in 0..100 {
            let id = peer.request("tools/call", sleep(600_000)).await;
            peer.cancel(&id).await;
            within(Duration::from_secs(2), sentinel(peer)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_its_first_owner_answered() {
    in_each(ERAS, async |_, peer| {
        let first = peer.request("tools/call", sleep(200)).await;
        let mut second =
            peer.prepare("tools/call", json!({ "name": "echo", "arguments": { "text": "?" } }));
        second["id"] = first.clone();
        peer.send(&second, None).await;
        let refused = peer.next().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&first, &json!(-32600)));
        let answered = peer.next().await;
        assert_eq!(answered["id"], first);
        assert_eq!(answered["result"]["content"][0]["text"], "slept 200 ms");
        sentinel(peer).await;
    })
    .await;
}

/// Sends `before`, 100 MiB of `x` and `after` as one message.
async fn send_huge(peer: &mut Peer, framing: Framing, before: &str, after: &str) {
    const LENGTH: usize = 100 << 20;
    if framing == Framing::ContentLength {
        let length = before.len() + LENGTH + after.len();
        peer.send_bytes(format!("Content-Length: {length}\r\n\r\n").as_bytes()).await;
    }
    peer.send_bytes(before.as_bytes()).await;
    let part = [b'x'; 1 << 16];
    for _ in 0..LENGTH / part.len() {
        peer.send_bytes(&part).await;
    }
    peer.send_bytes(after.as_bytes()).await;
    if framing == Framing::Newline {
        peer.send_bytes(b"\n").await;
    }
}

#[tokio::test]
async fn a_message_of_100_mib_is_refused_in_bounded_memory() {
    for framing in [Framing::Newline, Framing::ContentLength] {
        let mut session = Session::new(Way::Process(framing), Revision::V2025_11_25).await;
        session.peer.open().await;
        let pid = session.end.process().id();
        let peer = &mut session.peer;
        sentinel(peer).await;
        let base = memory_of(pid, "VmHWM");
        let started = Instant::now();

        // An owner who is known before or after the bulk gets the answer; nobody's is nobody's.
        let echo = r#""method":"tools/call","params":{"name":"echo","arguments":{"text":""#;
        let call = |id: &str| format!(r#"{{"jsonrpc":"2.0",{id}{echo}"#);
        for (before, after, id) in [
            (call(r#""id":"first","#), r#""}}}"#, Some(json!("first"))),
            (call(""), r#""}},"id":"last"}"#, Some(json!("last"))),
            (String::new(), "", None),
        ] {
            send_huge(peer, framing, &before, after).await;
            let answer = peer.next().await;
            assert_eq!(answer["error"]["code"], -32600, "{answer}");
            assert_eq!(answer.get("id"), id.as_ref(), "{answer}");
            sentinel(peer).await;
        }
        let grown = memory_of(pid, "VmHWM") - base;
        figure(
            "3 messages of 100 MiB",
            format!("base {base} KiB, {grown} KiB more at most, {:?}", started.elapsed()),
        );
        assert!(grown <= ALLOWANCE, "it took {grown} KiB");
        session.end().await;
    }
}

/// The demo, past the handshake of 2025-06-18, and both its pipes.
async fn opened() -> (Child, Sender, Lines<BufReader<Receiver>>) {
    let command = child::Command::new(TRUNKLINE).arg("demo");
    let mut child = Child::spawn(command, &Limits::default()).await.unwrap();
    let mut stdin = child.take_stdin().unwrap();
    let mut lines = BufReader::new(child.take_stdout().unwrap()).lines();
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"deaf","version":"1"}}}"#;
    stdin.write_all(format!("{initialize}\n").as_bytes()).await.unwrap();
    within(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    (child, stdin, lines)
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_from_and_loses_nothing() {
    const CALLS: usize = 200;
    let text = "x".repeat(256 << 10);
    let (mut child, mut stdin, mut lines) = opened().await;
    let base = memory_of(child.id(), "VmHWM");

    let params = json!({ "name": "echo", "arguments": { "text": text } });
    let calls: String = (1..=CALLS)
        .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
        .map(|call| format!("{call}\n"))
        .collect();
    let mut left = calls.as_bytes();
    // Until nothing moves any more. Should it move later still, the rest is read below anyway.
    while let Ok(written) = timeout(Duration::from_millis(300), stdin.write(left)).await {
        left = &left[written.unwrap()..];
        assert!(!left.is_empty(), "50 MiB were read though nobody reads the answers");
    }
    figure(
        "read before the client was stopped",
        format!("{} KiB", (calls.len() - left.len()) >> 10),
    );

    let write = async {
        within(PATIENCE, stdin.write_all(left)).await.unwrap();
        drop(stdin);
    };
    let read = async {
        for id in 1..=CALLS {
            let line =
                within(PATIENCE, lines.next_line()).await.unwrap().expect("all are answered");
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["id"], id);
            assert_eq!(
                answer["result"]["content"][0]["text"].as_str().map(str::len),
                Some(text.len())
            );
        }
        assert_eq!(within(PATIENCE, lines.next_line()).await.unwrap(), None);
    };
    // While the process is still there to be measured.
    let grown = memory_of(child.id(), "VmHWM") - base;
    tokio::join!(write, read);
    figure("memory for a client that does not read", format!("{grown} KiB"));
    assert!(grown <= ALLOWANCE, "it took {grown} KiB");
    assert_eq!(within(PATIENCE, child.exited()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_client_that_reads_slowly_but_steadily_costs_no_more_than_one_that_stops() {
    const CALLS: usize = 1500;
    let text = "x".repeat(32 << 10);
    let (child, mut stdin, mut lines) = opened().await;
    let base = memory_of(child.id(), "VmHWM");
    let params = json!({ "name": "echo", "arguments": { "text": text } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let call = format!("{call}\n");
    // Always twenty calls ahead of what is read, so that the server never gets rid of everything.
    for at in 0..CALLS + 20 {
        if at < CALLS {
            within(PATIENCE, stdin.write_all(call.as_bytes())).await.unwrap();
        }
        if at >= 20 {
            within(PATIENCE, lines.next_line()).await.unwrap().expect("all are answered");
        }
    }
    let grown = memory_of(child.id(), "VmHWM").saturating_sub(base);
    figure("memory for a client that reads slowly", format!("{grown} KiB"));
    assert!(grown <= ALLOWANCE / 2, "it took {grown} KiB");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused_and_the_next_call_answered() {
    for revision in Revision::ALL {
        let mut session = Session::demo(revision).await;
        let peer = &mut session.peer;
        peer.send_bytes(b"\xff\xfe\xfd\n").await;
        let refused = peer.next().await;
        assert_eq!(refused["error"]["code"], -32700);
        peer.send_bytes(b"\n\r\n   \n").await;
        sentinel(peer).await;
        session.end().await;
    }
}

/// How long a server takes to leave after the end of its input, and what it says until then.
async fn leave(session: Session) -> (Vec<Value>, Duration) {
    let (last_words, took, exit) = end(session).await;
    assert_eq!(exit, Exit::Code(0));
    (last_words, took)
}

async fn end(mut session: Session) -> (Vec<Value>, Duration, Exit) {
    let started = Instant::now();
    session.peer.hang_up().await;
    let mut last_words = Vec::new();
    while let Some(message) = session.peer.try_next().await {
        last_words.push(message);
    }
    let exit = within(PATIENCE, session.end.process().exited()).await;
    (last_words, started.elapsed(), exit)
}

#[tokio::test]
async fn the_end_of_input_ends_the_server() {
    for revision in ERAS {
        let (last_words, took) = leave(Session::demo(revision).await).await;
        assert!(last_words.is_empty(), "{last_words:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");

        let mut busy = Session::demo(revision).await;
        let id = busy.peer.request("tools/call", sleep(100)).await;
        let (last_words, took) = leave(busy).await;
        assert_eq!(last_words.len(), 1, "what is quick is answered first");
        assert_eq!(last_words[0]["id"], id);
        assert!(took < Duration::from_secs(2), "{took:?}");

        let mut stuck = Session::demo(revision).await;
        stuck.peer.request("tools/call", sleep(600_000)).await;
        let (last_words, took) = leave(stuck).await;
        assert!(last_words.is_empty(), "{last_words:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");
        figure("leaving with a call that never ends", format!("{took:?}"));
    }
}

#[tokio::test]
async fn an_end_in_the_middle_of_a_message_is_an_end() {
    for (framing, half, exit) in [
        // A last line may lack its end, so this one is read and refused.
        (Framing::Newline, r#"{"jsonrpc":"2.0","id":9,"method":"#, Exit::Code(0)),
        // Here it is certain that something was lost.
        (Framing::ContentLength, "Content-Length: 1000\r\n\r\n{\"jsonrpc\":", Exit::Code(3)),
    ] {
        let mut session = Session::new(Way::Process(framing), Revision::V2025_11_25).await;
        session.peer.open().await;
        session.peer.send_bytes(half.as_bytes()).await;
        let (last_words, took, ended) = end(session).await;
        assert_eq!(ended, exit);
        assert!(last_words.len() <= 1, "{last_words:?}");
        assert!(last_words.iter().all(|it| it["error"]["code"] == -32700), "{last_words:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

#[tokio::test]
async fn too_many_calls_at_once_are_refused_one_by_one() {
    in_each(ERAS, async |_, peer| {
        let mut ids = Vec::new();
        for _ in 0..100 {
            ids.push(peer.request("tools/call", sleep(600_000)).await);
        }
        for id in &ids[64..] {
            let error = peer.answer_to(id).await.unwrap_err();
            assert_eq!(
                (&error["code"], &error["data"]["reason"]),
                (&json!(-32603), &json!("overloaded"))
            );
        }
        for id in &ids[..64] {
            peer.cancel(id).await;
        }
        sentinel(peer).await;
    })
    .await;
}
