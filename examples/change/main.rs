//! How do I add and remove tools while the server runs? Listening clients are notified.

use std::process::ExitCode;
use trunkline::{Context, Server, ToolError, tool};

/// Learns a word, which becomes a tool.
#[tool]
async fn learn(cx: Context, word: String) -> Result<(), ToolError> {
    let server = cx.server().ok_or(ToolError::new("The server is about to end."))?;
    let said = format!("{word}!");
    Ok(server.put_tool(tool(word, move || std::future::ready(said.clone())))?)
}

/// Forgets a word.
#[tool]
async fn forget(cx: Context, word: String) -> Result<(), ToolError> {
    let known = cx.server().is_some_and(|it| it.remove_tool(&word));
    known.then_some(()).ok_or(ToolError::new("That is not a word I know."))
}

fn main() -> ExitCode {
    Server::builder("change", "1.0.0").tool(learn).tool(forget).build().run()
}
