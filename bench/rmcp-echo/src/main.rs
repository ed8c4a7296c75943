//! `tools/call` of `echo` → its text, with rmcp over `stdio()`, or over `stdio_pipes()` when asked by the argument `pipes`.

use std::error::Error;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::stdio;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        None => Echo.serve(stdio()).await?.waiting().await?,
        Some("pipes") => Echo.serve(stdio_pipes()).await?.waiting().await?,
        Some(other) => {
            return Err(format!("`{other}` is no transport; leave it out or say `pipes`.").into());
        }
    };
    Ok(())
}

#[derive(Clone)]
struct Echo;

#[tool_router]
impl Echo {
    #[tool(description = "Returns the text")]
    async fn echo(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }
}

#[tool_handler]
impl ServerHandler for Echo {}

#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    text: String,
}
