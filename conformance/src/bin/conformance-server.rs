//! A port → the fixtures of the suite at `/mcp`, and the number of executed tool calls at `/calls`.
//!
//! `conformance-server --port N` serves HTTP, with `--json` in JSON where that will do;
//! `conformance-server --stdio` serves whoever started it.

#![forbid(unsafe_code)]

use std::future::pending;
use std::process::ExitCode;

use trunkline_conformance::{calls, fixtures};

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
        ["--port", port, ref rest @ ..] if rest.iter().all(|it| *it == "--json") => {
            let port: u16 =
                port.parse().map_err(|_| format!("`{port}` is no port; use 0 for a free one."))?;
            let listener = trunkline::server::bind(("127.0.0.1", port)).await;
            let listener =
                listener.map_err(|error| format!("The port {port} cannot be used: {error}."))?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            #[allow(clippy::print_stdout)] // Whoever started this waits for it.
            {
                println!("http://{address}/mcp");
            }
            let http = server.http().page("/calls", || calls().to_string());
            // The suite looks closer at streams than at plain answers.
            let http = if rest.contains(&"--json") { http } else { http.always_stream() };
            http.serve(listener, pending()).await.map_err(|error| error.to_string())
        }
        _ => Err(USAGE.to_owned()),
    }
}

const USAGE: &str = "Use `conformance-server --port N [--json]` or `conformance-server --stdio`.";
