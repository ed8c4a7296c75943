//! How do I write a first server? One function, over stdio or, after `--http`, over HTTP.

use std::process::ExitCode;
use trunkline::{Server, tool};

/// Says hello.
#[tool(read_only)]
async fn hello(
    /// Whom to greet.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

fn main() -> ExitCode {
    Server::builder("hello", "1.0.0").tool(hello).build().run()
}
