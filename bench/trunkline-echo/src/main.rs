//! The echo server as a user of trunkline writes it.

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline::{Args, Server, server::ServeError, tool};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Args(it): Args<Echo>) -> String {
    it.text
}

fn main() -> Result<(), ServeError> {
    let echo = tool("echo", echo).about("Returns the text");
    Server::builder("echo", "0.1.0").tool(echo).build().run_stdio()
}
