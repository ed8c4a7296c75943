use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use tokio::net::TcpListener;
use trunkline::Revision;
use trunkline::serde_json::json;
use trunkline_authority::{Authority, Serving, Settings};

use crate::common::{ERAS, Served, builder, example, follow, text};

/// An authorization server where alice approves of everything, and the example that trusts it.
async fn served() -> (Serving, Served) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = Settings::new().approve_as("alice").scopes(["notes", "notes:write"]);
    let authority = Authority::serve(listener, settings).unwrap();
    let served = Served::start(example!("protected-server"), &[authority.issuer(), "127.0.0.1:0"]);
    (authority, served)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_and_is_asked_again_for_more() {
    let (authority, served) = served().await;
    let mut client = Command::new(example!("protected-client"));
    client.arg(&served.url).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let lines = BufReader::new(client.stderr.take().unwrap()).lines();
    // The user at the browser.
    let mut visits = 0;
    for line in lines {
        let line = line.unwrap();
        let Some(page) = line.strip_prefix("Open ") else { panic!("{line}") };
        follow(page);
        visits += 1;
    }
    let output = client.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alice\nalice writes: hello\n");
    assert!(output.status.success());
    assert_eq!(visits, 2, "once to come in, and once for `notes:write`");
    assert_eq!(authority.stats().registrations, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lets_in_and_nothing_else_does() {
    let (authority, served) = served().await;
    let now = std::time::SystemTime::now();
    let token = |scopes| authority.token("bob", &served.url, scopes, now);
    let with = |revision: Revision, token: String| {
        builder(revision).ask_anew().header("authorization", format!("Bearer {token}"))
    };
    for revision in ERAS {
        let bob = with(revision, token("notes")).connect_http(&served.url).await.unwrap();
        assert_eq!(text(&bob.call_tool("whoami", ()).await.unwrap()), "bob");
        let error =
            bob.call::<String>("write", json!({ "text": "hello" })).await.unwrap_err().to_string();
        assert!(error.contains("403"), "{error}");
        let other = authority.token("bob", "http://127.0.0.1:1/mcp", "notes", now);
        let error = with(revision, other).connect_http(&served.url).await.unwrap_err().to_string();
        assert!(error.contains("401"), "{error}");
    }
}
