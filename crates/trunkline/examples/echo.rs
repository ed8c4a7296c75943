//! Arguments → the same text: the smallest server worth the name.
//!
//! `trunkline call echo text=hello -- cargo run -q -p trunkline --example echo`

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline::server::ServeError;
use trunkline::{Args, Server, tool};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

async fn echo(Args(it): Args<Echo>) -> String {
    it.text
}

fn main() -> Result<(), ServeError> {
    let echo = tool("echo", echo).about("Says the text back.");
    Server::builder("echo", "1.0.0").tool(echo).build().run_stdio()
}
