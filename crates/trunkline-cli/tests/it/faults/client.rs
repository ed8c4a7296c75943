//! Faults of servers, as the client meets them.

use std::time::{Duration, Instant};

use serde_json::json;
use trunkline::client::{CallError, Client, Command, ConnectCause, Exit, OpenError};
use trunkline::{Limits, Revision};

use super::{ALLOWANCE, alone, figure};
use crate::stdio::{demo, fault, memory_of, within};

const SOON: Duration = Duration::from_secs(10);

async fn connect(command: Command) -> Client {
    let connecting = Client::builder("test", "1").connect(command);
    within(SOON, connecting).await.expect("the server shakes hands")
}

#[tokio::test]
async fn noise_on_stdout_is_passed_over() {
    for mode in ["garbage-in-call", "noise-in-call", "answer-twice"] {
        let client = connect(fault(mode)).await;
        for round in 0..100 {
            let result = within(SOON, client.call_tool("fault", json!({})).into_future()).await;
            assert!(result.is_ok(), "{mode}, round {round}: {result:?}");
        }
        // It has said all it wanted to say once it answers this, and can leave in peace.
        within(SOON, client.ping().into_future()).await.expect("the connection goes on");
        assert_eq!(within(SOON, client.close()).await, Some(Exit::Code(0)));
    }
}

#[tokio::test]
async fn a_server_that_ends_in_a_call_ends_every_call_with_an_error() {
    for (mode, exit) in [
        ("exit-in-call", Exit::Code(3)),
        ("abort-in-call", Exit::Signal(6)),
        ("half-line-in-call", Exit::Code(4)),
    ] {
        let client = connect(fault(mode)).await;
        let started = Instant::now();
        let call = || client.call_tool("fault", json!({})).into_future();
        let (one, two, three) = within(SOON, async { tokio::join!(call(), call(), call()) }).await;
        for outcome in [one, two, three] {
            assert_eq!(outcome, Err(CallError::Closed), "{mode}");
        }
        figure(mode, format!("{:?}", started.elapsed()));
        assert!(client.is_closed());
        let late = within(SOON, client.call_tool("fault", json!({})).into_future()).await;
        assert!(
            matches!(late, Err(CallError::Unreachable(_))),
            "a later call is not made: {late:?}"
        );
        assert_eq!(within(SOON, client.close()).await, Some(exit), "{mode}");
    }
}

#[tokio::test]
async fn a_server_that_only_closes_its_stdout_is_gone_too() {
    let client = connect(fault("close-stdout-in-call")).await;
    let outcome = within(SOON, client.call_tool("fault", json!({})).into_future()).await;
    assert_eq!(outcome, Err(CallError::Closed));
    assert_eq!(within(SOON, client.close()).await, Some(Exit::Code(0)));
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let error = Client::builder("test", "1").connect(fault("fail").arg("7"));
    let error = within(SOON, error).await.unwrap_err();
    assert_eq!(error.stage(), "handshake");
    assert!(matches!(error.cause, ConnectCause::Handshake(OpenError::Closed { .. })), "{error}");
    assert_eq!(error.exit, Some(Exit::Code(7)));
    // What it wrote to stderr is shown, and cannot write to the terminal.
    assert_eq!(error.stderr.last().map(String::as_str), Some("leaving"));
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_given_up_and_killed() {
    for (mode, revision) in [("mute", None), ("noise", None), ("mute", Some(Revision::V2025_06_18))]
    {
        let limits = Limits::default().init_deadline(Duration::from_millis(500));
        let mut builder = Client::builder("test", "1").limits(limits);
        if let Some(revision) = revision {
            builder = builder.protocol(revision);
        }
        let started = Instant::now();
        let error = within(SOON, builder.connect(fault(mode))).await.unwrap_err();
        assert!(error.is_timeout(), "{mode}: {error}");
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(500), "{took:?}");
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_never_answered_times_out_and_the_connection_goes_on() {
    let client = connect(fault("never-answer")).await;
    let started = Instant::now();
    let call = client.call_tool("fault", json!({})).timeout(Duration::from_millis(200));
    assert_eq!(within(SOON, call.into_future()).await, Err(CallError::TimedOut));
    assert!(started.elapsed() >= Duration::from_millis(200));
    within(SOON, client.ping().into_future()).await.expect("the connection goes on");
    assert_eq!(within(SOON, client.close()).await, Some(Exit::Code(0)));
}

#[test]
fn a_reply_of_100_mib_is_an_error_in_bounded_memory() {
    alone("faults::client::a_reply_of_100_mib_is_an_error_in_bounded_memory", async || {
        let client = connect(fault("long-line")).await;
        within(SOON, client.ping().into_future()).await.unwrap();
        let pid = std::process::id();
        let base = memory_of(pid, "VmHWM");
        for _ in 0..3 {
            let started = Instant::now();
            let call = client.call_tool("fault", json!({})).into_future();
            let outcome = within(Duration::from_secs(30), call).await;
            let Err(CallError::Peer(error)) = outcome else { panic!("{outcome:?}") };
            let reason = error.data.as_ref().map(|it| it.get());
            assert_eq!((error.code, reason), (-32603, Some(r#"{"reason":"message_too_large"}"#)));
            figure("a reply of 100 MiB", format!("{:?}", started.elapsed()));
            let tools = within(SOON, client.list_tools().into_future()).await;
            assert_eq!(tools.expect("the connection goes on").len(), 1);
        }
        let grown = memory_of(pid, "VmHWM") - base;
        figure("memory", format!("base {base} KiB, {grown} KiB more at most"));
        assert!(grown <= ALLOWANCE, "it took {grown} KiB");
        assert_eq!(within(SOON, client.close()).await, Some(Exit::Code(0)));
    });
}

#[tokio::test]
async fn two_full_pipes_do_not_stop_each_other() {
    let client = connect(fault("write-first")).await;
    let started = Instant::now();
    let text = "x".repeat(4 << 20);
    let call = || client.call_tool("fault", json!({ "text": text })).into_future();
    let calls =
        async { tokio::join!(call(), call(), call(), call(), call(), call(), call(), call()) };
    let all = within(Duration::from_secs(30), calls).await;
    let (a, b, c, d, e, f, g, h) = all;
    for outcome in [a, b, c, d, e, f, g, h] {
        assert!(outcome.is_ok(), "{outcome:?}");
    }
    figure("8 calls of 4 MiB against 4 MiB of noise each", format!("{:?}", started.elapsed()));
    assert_eq!(within(SOON, client.close()).await, Some(Exit::Code(0)));
}

/// A server that ignores the end of its input and SIGTERM, as does what it has started; it says
/// who they are on stderr.
const STUBBORN: &str = r#"
    trap '' TERM INT HUP
    (trap '' TERM INT HUP; sleep 1000) & echo $! >&2
    sleep 1000 & echo $! >&2
    echo $$ >&2
    while read -r line; do
        case "$line" in
            *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}';;
            *'"ping"'*) echo '{"jsonrpc":"2.0","id":2,"result":{}}';;
        esac
    done
    wait
"#;

/// Whether a process is gone; one that waits for its parent to notice counts as gone.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_does_not_survive() {
    for kindly in [true, false] {
        let command = Command::new("/bin/sh").arg("-c").arg(STUBBORN);
        let builder = Client::builder("test", "1").protocol(Revision::V2025_06_18);
        let client = within(SOON, builder.connect(command)).await.unwrap();
        within(SOON, client.ping().into_future()).await.unwrap();
        let processes = client.stderr();
        assert_eq!(processes.len(), 3, "{processes:?}");
        assert!(!processes.iter().any(|pid| is_gone(pid)), "all are alive");

        let started = Instant::now();
        match kindly {
            true => assert_eq!(within(SOON, client.close()).await, Some(Exit::Signal(9))),
            false => drop(client),
        }
        let all_gone = async {
            while !processes.iter().all(|pid| is_gone(pid)) {
                tokio::task::yield_now().await;
            }
        };
        within(SOON, all_gone).await;
        let took = started.elapsed();
        figure("no process is left", format!("after {took:?}"));
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[tokio::test]
async fn calls_that_are_dropped_cost_the_others_nothing() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let connecting = Client::builder("test", "1").protocol(revision).connect(demo());
        let client = within(SOON, connecting).await.unwrap();
        for round in 0..100_u64 {
            let forgotten = client.call_tool("sleep", json!({ "ms": round % 3 })).into_future();
            let kept = client.call_tool("echo", json!({ "text": round.to_string() })).into_future();
            // The one is dropped as soon as the other is done, on its way or finished.
            let answered = within(SOON, async {
                tokio::select! {
                    biased;
                    slept = forgotten => { slept.expect("it slept"); None }
                    echoed = kept => Some(echoed),
                }
            });
            if let Some(echoed) = answered.await {
                let echoed = echoed.expect("the neighbour is answered");
                assert_eq!(echoed.content[0].as_text(), Some(&*round.to_string()));
            }
        }
        within(SOON, client.list_tools().into_future()).await.expect("the connection goes on");
        assert_eq!(within(SOON, client.close()).await, Some(Exit::Code(0)));
    }
}
