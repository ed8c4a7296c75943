//! How do I test a server? One body runs in both eras, over memory, stdio and HTTP.

use trunkline::model::{CreateMessageParams, SamplingMessage};
use trunkline::serde_json::json;
use trunkline::testing::{Peer, Reply, ScriptedModel};
use trunkline::{Context, Server, ToolError, tool};

/// Writes a poem, if the user agrees.
#[tool]
async fn poem(cx: Context, about: String) -> Result<String, ToolError> {
    cx.progress(1.0, 2.0).await;
    cx.ask::<bool>("May the model write a poem?").await?.accepted()?;
    let wish = SamplingMessage::user(format!("A poem about {about}, please."));
    let poem = cx.sample(CreateMessageParams::new(vec![wish], 100)).await?;
    cx.progress(2.0, 2.0).await;
    Ok(poem.text())
}

fn server() -> Server {
    Server::builder("poet", "1.0.0").tool(poem).build()
}

#[trunkline::test]
async fn a_poem_is_written(peer: Peer) -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new(["Snow falls on Oslo."]);
    peer.answers([true]);
    peer.model(model.clone());
    let result = peer.call_tool("poem", json!({ "about": "Oslo" })).await?;
    assert_eq!(result.content[0].as_text(), Some("Snow falls on Oslo."));
    assert_eq!(model.asked()[0].messages, [SamplingMessage::user("A poem about Oslo, please.")]);
    let steps: Vec<_> = peer.progress().iter().map(|it| it.progress).collect();
    assert_eq!(steps, [1.0, 2.0], "nothing is told twice, though the call may run three times");
    Ok(())
}

#[trunkline::test]
async fn no_is_an_answer(peer: Peer) {
    peer.answers([Reply::decline()]);
    let result = peer.call_tool("poem", json!({ "about": "Oslo" })).await.unwrap();
    assert!(result.is_error());
    assert_eq!(result.content[0].as_text(), Some("The user declined."));
}

#[trunkline::test(revisions = "all", transports = [memory])]
async fn every_revision_lists_the_tool(peer: Peer) {
    assert_eq!(peer.list_tools().await.unwrap()[0].name, "poem");
}
