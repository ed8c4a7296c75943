//! A recording in the place of a server, or of a client, in both eras.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use trunkline::client::{ClientBuilder, Hooks, Responder};
use trunkline::model::ElicitResult;
use trunkline::testing::Recorded;
use trunkline::transport::memory;
use trunkline::{Client, Context, Form, Revision, Server, ToolError, tool};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(Form)]
struct Sure {
    value: bool,
}

async fn book(cx: Context) -> Result<String, ToolError> {
    cx.progress(1.0, 2.0).await;
    let sure: Sure = cx.ask("Sure?").await?.accepted()?;
    Ok(if sure.value { "booked" } else { "left" }.to_owned())
}

fn server(about: &str) -> Server {
    let book = tool("book", book).about("Books a room.");
    let price = tool("price", async || "12 crowns").about(about);
    Server::builder("inn", "1.0.0").tool(book).tool(price).build()
}

fn client(revision: Revision, answer: bool) -> ClientBuilder<impl Responder> {
    let host = Hooks::new().elicit(move |_| async move {
        Ok(ElicitResult::accept(json!({ "value": answer }).into()))
    });
    Client::builder("guest", "1.0.0").protocol(revision).responder(host)
}

/// What the client of these tests does; returns what it heard.
async fn stay(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    let mut heard: Vec<_> = tools.iter().map(|it| it.name.clone()).collect();
    for name in ["price", "book"] {
        let result = client.call_tool(name, ()).await.unwrap();
        heard.push(result.content[0].as_text().unwrap().to_owned());
    }
    heard
}

/// Copies lines, and notes them as a recorder does.
async fn note(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    dir: &str,
    lines: Arc<Mutex<Vec<String>>>,
) {
    let mut from = BufReader::new(from).lines();
    while let Ok(Some(line)) = from.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        {
            let mut lines = lines.lock().unwrap();
            let t = lines.len();
            let noted = json!({ "v": 1, "t": t, "side": "client", "dir": dir, "message": message });
            lines.push(noted.to_string());
        }
        to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
}

/// The recording of a stay, and what the client heard.
async fn recorded(revision: Revision) -> (Recorded, Vec<String>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let ((reader, writer), (near_reader, near_writer)) = memory::pair();
    let ((far_reader, far_writer), (server_reader, server_writer)) = memory::pair();
    tokio::spawn(async move { server("Its price.").serve(server_reader, server_writer).await });
    tokio::spawn(note(near_reader, far_writer, "in", Arc::clone(&lines)));
    tokio::spawn(note(far_reader, near_writer, "out", Arc::clone(&lines)));
    let client = client(revision, true).connect_io(reader, writer).await.unwrap();
    let heard = stay(&client).await;
    let text = lines.lock().unwrap().join("\n");
    (Recorded::read(&text).unwrap(), heard)
}

#[tokio::test]
async fn a_client_hears_of_the_recording_what_it_heard_of_the_server() {
    for revision in ERAS {
        let (recorded, heard) = recorded(revision).await;
        assert_eq!(heard, ["book", "price", "12 crowns", "booked"]);
        // As often as it likes.
        for _ in 0..2 {
            let client = recorded.connect(client(revision, true)).await.unwrap();
            assert_eq!(client.revision(), revision);
            assert_eq!(stay(&client).await, heard, "{revision}");
        }
        assert_eq!(recorded.remarks(), Vec::<String>::new(), "{revision}");
        let client = recorded.connect(client(revision, false)).await.unwrap();
        let error = client.call_tool("sleep", ()).await.unwrap_err().to_string();
        let why = "The recording has no `tools/call sleep` with these parameters.";
        assert!(error.contains(why), "{error}");
        assert_eq!(recorded.remarks(), [why]);
    }
}

#[tokio::test]
async fn a_server_differs_from_its_recording_in_what_was_changed() {
    for revision in ERAS {
        let (recorded, _) = recorded(revision).await;
        let same = recorded.differences(&server("Its price.")).await;
        assert_eq!(same, Vec::<String>::new(), "{revision}");
        let changed = server("Its price. Pay first.");
        let expected =
            r#"tool price: `/description` was "Its price." and is "Its price. Pay first."."#;
        assert_eq!(recorded.differences(&changed).await, [expected], "{revision}");
        let ignoring = recorded.ignoring("tool price:/description");
        assert_eq!(ignoring.differences(&changed).await, Vec::<String>::new());
        let empty = Server::builder("inn", "1.0.0").build();
        assert!(!ignoring.differences(&empty).await.is_empty(), "{revision}");
    }
}
