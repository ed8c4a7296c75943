//! `tools/call` of `echo`, `progress`, `park` and `question` over Streamable HTTP, as a user of trunkline writes it.

use std::error::Error;
use std::future::pending;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline::{Args, Context, Limits, Server, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Args(it): Args<Echo>) -> String {
    it.text
}

async fn progress(cx: Context, Args(it): Args<Echo>) -> String {
    cx.progress(1.0, 2.0).await;
    it.text
}

async fn park(Args(_): Args<Echo>) -> String {
    pending().await
}

async fn question(cx: Context, Args(it): Args<Echo>) -> Result<String, ToolError> {
    cx.ask::<bool>("Shall it be so?").await?.accepted()?;
    Ok(it.text)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let extra: usize = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 0,
    };
    let mut server = Server::builder("echo", "0.1.0")
        .limits(limits())
        .tool(tool("echo", echo).about("Returns the text"))
        .tool(tool("progress", progress).about("Reports progress once and returns the text"))
        .tool(tool("park", park).about("Never answers"))
        .tool(tool("question", question).about("Asks first"));
    for number in 0..extra {
        server = server.tool(tool(format!("extra_{number}"), echo).about("Never called"));
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    Ok(server.build().http().serve(listener, pending()).await?)
}

fn limits() -> Limits {
    let limits = Limits::default().body_bytes(LONGEST).message_bytes(LONGEST);
    let limits = limits.bodies_bytes(2 * LONGEST).bodies_share(2 * LONGEST);
    let limits = limits.answers_bytes(2 * LONGEST).answers_share(2 * LONGEST);
    limits.header_read(NEVER).keep_alive(NEVER).stream_keep_alive(NEVER)
}

/// What is measured may be longer than clients need.
const LONGEST: usize = 32 << 20;
/// What happens by the clock, a comment on each quiet stream and a look at each connection, would be counted as part of the
/// calls that it happens to fall among.
const NEVER: Duration = Duration::from_secs(3600);
