//! `#[trunkline::test]`: one body, a test for each revision and transport.

use trunkline::testing::Peer;
use trunkline::{Context, Form, Server, ToolError, tool};

#[derive(Form)]
struct Who {
    name: String,
}

/// Asks for a name.
#[tool]
async fn greet(cx: Context) -> Result<String, ToolError> {
    let who: Who = cx.ask("Who are you?").await?.accepted()?;
    cx.progress(1.0, 1.0).await;
    Ok(format!("Hello, {}!", who.name))
}

fn server() -> Server {
    Server::builder("greet", "1").tool(greet).build()
}

#[trunkline::test]
async fn a_question_is_answered(peer: Peer) -> Result<(), Box<dyn std::error::Error>> {
    peer.answers([serde_json::json!({ "name": "Ada" })]);
    let result = peer.call_tool("greet", ()).await?;
    assert_eq!(result.content[0].as_text(), Some("Hello, Ada!"));
    assert_eq!(peer.questions().len(), 1);
    Ok(())
}

#[trunkline::test(revisions = "all", transports = [memory], server = self::server)]
async fn every_revision_lists_the_tool(peer: Peer) {
    assert_eq!(peer.list_tools().await.unwrap()[0].name, "greet");
}

#[trunkline::test(eras = [stateless], transports = [memory], server = crate::matrix::server)]
#[should_panic(expected = "Nobody is here.")]
async fn attributes_of_tests_reach_them(peer: Peer) {
    assert!(peer.list_tools().await.unwrap().is_empty(), "Nobody is here.");
}

#[trunkline::test(revisions = ["2025-06-18", "2026-07-28"], transports = [memory, stdio])]
async fn the_peer_speaks_what_was_asked_for(peer: Peer) {
    let revision = peer.revision().to_string();
    assert!(["2025-06-18", "2026-07-28"].contains(&&*revision), "{revision}");
}
