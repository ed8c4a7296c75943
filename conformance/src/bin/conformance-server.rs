//! A port → the fixtures of the suite at `/mcp`, and the number of executed tool calls at `/calls`.
//!
//! `conformance-server --port N` serves HTTP, `conformance-server --stdio` whoever started it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use tokio::net::TcpListener;
use trunkline_conformance::{door, fixtures};

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            #[allow(clippy::print_stderr)] // It is what this program has to say.
            {
                eprintln!("{message}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let server = fixtures::server();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => server.serve_stdio().await.map_err(|error| error.to_string()),
        ["--port", port] => {
            let port: u16 =
                port.parse().map_err(|_| format!("`{port}` is no port; use 0 for a free one."))?;
            let listener = TcpListener::bind(("127.0.0.1", port)).await;
            let listener =
                listener.map_err(|error| format!("The port {port} cannot be used: {error}."))?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            #[allow(clippy::print_stdout)] // Whoever started this waits for it.
            {
                println!("http://{address}/mcp");
            }
            door::serve(listener, &server).await.map_err(|error| error.to_string())
        }
        _ => Err(USAGE.to_owned()),
    }
}

const USAGE: &str = "Use `conformance-server --port N` or `conformance-server --stdio`.";
