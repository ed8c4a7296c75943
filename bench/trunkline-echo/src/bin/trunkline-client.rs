//! Calls → trunkline's Streamable HTTP client, one for each task, or one for all of them.

use std::process::ExitCode;
use std::sync::Arc;

use client_loop::{Caller, Mode, Options};
use serde::Serialize;
use trunkline::{Client, Revision};

fn main() -> ExitCode {
    client_loop::main(connect)
}

async fn connect(options: Options) -> Result<Vec<Task>, String> {
    client_loop::open_each(&options, async |options| Ok(Task(Arc::new(open(options).await?)))).await
}

async fn open(options: &Options) -> Result<Client, String> {
    let revision = match options.mode {
        Mode::Session => Revision::V2025_11_25,
        Mode::Stateless | Mode::Shared => Revision::V2026_07_28,
    };
    let client = Client::builder("trunkline-bench", env!("CARGO_PKG_VERSION")).protocol(revision);
    let client = client.connect_http(&options.url).await;
    client.map_err(|error| format!("The client does not connect: {error}."))
}

#[derive(Clone)]
struct Task(Arc<Client>);

#[derive(Serialize)]
struct Arguments<'a> {
    text: &'a str,
}

impl Caller for Task {
    async fn call(&mut self, text: &str) -> Result<(), String> {
        let result = self.0.call_tool("echo", Arguments { text }).await;
        let result = result.map_err(|error| format!("The call failed: {error}."))?;
        match result.content.first().and_then(|content| content.as_text()) {
            Some(answer) if answer == text => Ok(()),
            _ => Err("The server did not echo the text.".into()),
        }
    }
}
