//! A command line → what that server offers, and the answer to its first question.
//!
//! `cargo run -p trunkline --example client -- some-server its arguments`; without a command it
//! talks to a small server in the same process.

use serde_json::json;
use trunkline::client::{Client, Command, ConnectError, Hooks};
use trunkline::model::{ElicitParams, ElicitResult};
use trunkline::{Context, Form, RawJson, Server, ToolError, tool};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = connect(std::env::args().skip(1).collect()).await?;
    let name = client.server_info().map_or("a server without a name", |it| it.name.as_str());
    say(&format!("{name} speaks {}", client.revision()));
    for tool in client.list_tools().await? {
        say(&format!("  {} {}", tool.name, tool.description.unwrap_or_default()));
        if tool.name == "greet" {
            let result = client.call_tool("greet", json!({})).await?;
            say(&format!("    {}", result.content[0].as_text().unwrap_or_default()));
        }
    }
    client.close().await;
    Ok(())
}

async fn connect(words: Vec<String>) -> Result<Client, ConnectError> {
    // Answers every form alike. A real host shows the question and lets its user say no.
    let host = Hooks::new().elicit(|question: ElicitParams| async move {
        say(&format!("    asked: {}", question.message()));
        Ok(ElicitResult::accept(RawJson::of(&json!({ "name": "Ada" }))))
    });
    let builder = Client::builder("example-client", "1.0.0").responder(host);
    if let Some((program, arguments)) = words.split_first() {
        return builder.connect(Command::new(program).args(arguments)).await;
    }
    let server = Server::builder("greet", "1.0.0").tool(tool("greet", greet)).build();
    let (ours, theirs) = trunkline::transport::memory::pair();
    tokio::spawn(async move { server.serve(theirs.0, theirs.1).await });
    builder.connect_io(ours.0, ours.1).await
}

#[derive(Form)]
struct Who {
    name: String,
}

async fn greet(cx: Context) -> Result<String, ToolError> {
    let who: Who = cx.ask("What is your name?").await?.accepted()?;
    Ok(format!("Hello, {}!", who.name))
}

#[allow(clippy::print_stdout, reason = "this program talks to a person, not a protocol")]
fn say(line: &str) {
    println!("{line}");
}
