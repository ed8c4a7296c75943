//! How do I compose servers? One under a prefix, one merged, and a remote one that the command line
//! names.

use std::error::Error;
use trunkline::client::{Client, Command};
use trunkline::server::proxy;
use trunkline::{Server, tool};

/// Adds two numbers.
#[tool(read_only)]
async fn add(a: f64, b: f64) -> String {
    (a + b).to_string()
}

/// Says whether all is well.
#[tool(read_only)]
async fn health() -> &'static str {
    "All is well."
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let math = Server::builder("math", "1.0.0").tool(add);
    let watch = Server::builder("watch", "1.0.0").tool(health);
    let mut server = Server::builder("compose", "1.0.0").mount("math", math).merge(watch);
    let mut words = std::env::args().skip(1);
    if let Some(program) = words.next() {
        // This program has no user: it declines the server's questions.
        let client = Client::builder("compose", "1.0.0")
            .on_ask(async |question| question.decline())
            .connect(Command::new(program).args(words));
        let far = proxy(client.await?).await?;
        server = server.mount("far", far);
    }
    Ok(server.build().serve_stdio().await?)
}
