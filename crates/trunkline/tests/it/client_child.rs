//! The client and the processes that it starts.

use std::time::{Duration, Instant};

use trunkline::client::{Client, Command, ConnectCause, Exit, OpenError};
use trunkline::{Limits, Revision, Revisions};

/// A server in a few lines of shell: it answers `initialize` and one `ping`.
const OLD_SERVER: &str = r#"
    read -r line
    case "$line" in *server/discover*) echo 'unknown method, giving up' >&2; exit 3;; esac
    echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
    read -r initialized
    read -r ping
    echo '{"jsonrpc":"2.0","id":2,"result":{}}'
    read -r more
    exit 0
"#;

fn shell(script: &str) -> Command {
    Command::new("/bin/sh").arg("-c").arg(script)
}

#[tokio::test]
async fn a_server_that_dies_of_the_probe_is_started_again() {
    let client = Client::builder("test", "1").connect(shell(OLD_SERVER)).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
    client.ping().await.unwrap();
    assert_eq!(client.close().await, Some(Exit::Code(0)));
}

#[tokio::test]
async fn a_server_is_started_again_only_in_an_older_revision() {
    let only = Client::builder("test", "1").protocol(Revision::V2026_07_28);
    let error = only.connect(shell(OLD_SERVER)).await.unwrap_err();
    assert_eq!(error.exit, Some(Exit::Code(3)));
    assert_eq!(error.stderr, ["unknown method, giving up"]);
    let text = error.to_string();
    assert!(text.contains("exited with code 3"), "{text}");
    assert!(text.contains("Run the command in a terminal"), "{text}");
    assert!(text.ends_with("unknown method, giving up"), "{text}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_of_the_first_stage() {
    let command = Command::new("no-such-program-anywhere");
    let error = Client::builder("test", "1").connect(command).await.unwrap_err();
    assert_eq!(error.stage(), "spawn");
    assert!(matches!(error.cause, ConnectCause::Spawn(_)));
    assert!(error.to_string().contains("`no-such-program-anywhere` was not found on PATH"));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let limits = Limits::default().init_deadline(Duration::from_millis(300));
    let stateful = Revisions::range(Revision::V2024_11_05, Revision::V2025_11_25);
    let stateless = Revisions::only(Revision::V2026_07_28);
    for revisions in [Revisions::ALL, stateful, stateless] {
        let started = Instant::now();
        let builder = Client::builder("test", "1").limits(limits.clone()).protocols(revisions);
        let error = builder.connect(shell("echo ready >&2; exec sleep 1000")).await.unwrap_err();
        assert!(matches!(error.cause, ConnectCause::Handshake(OpenError::TimedOut)), "{error}");
        assert!(error.is_timeout());
        assert!(started.elapsed() >= limits.init_deadline, "{revisions:?}: all of its time");
        assert_eq!(error.stderr, ["ready"]);
    }
}

#[tokio::test]
async fn a_dropped_client_leaves_no_process() {
    // Every live process holds the named pipe open, so reading it ends when all are gone.
    let directory = std::env::temp_dir().join(format!("trunkline-client-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let pipe = directory.join("alive");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success(), "`mkfifo` is needed for this test");
    let script = format!("exec 9>'{}'; (trap '' TERM; sleep 1000) & {OLD_SERVER}", pipe.display());
    let reading = std::thread::spawn(move || std::fs::read(pipe));

    let old = Client::builder("test", "1").protocol(Revision::V2025_06_18);
    let client = old.connect(shell(&script)).await.unwrap();
    client.ping().await.unwrap();
    assert!(!reading.is_finished());
    drop(client);
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || tell.send(reading.join()));
    let read = tokio::time::timeout(Duration::from_secs(5), told).await;
    assert!(read.expect("every process is gone").unwrap().unwrap().is_ok());
    std::fs::remove_dir_all(directory).unwrap();
}
