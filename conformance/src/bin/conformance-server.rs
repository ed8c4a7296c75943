//! A port → the fixtures of the suite at `/mcp`, and the number of executed tool calls at `/calls`.
//!
//! `conformance-server --port N` serves HTTP, with `--json` in JSON where that will do, and with
//! `--protected` only whoever has the token that it prints;
//! `conformance-server --stdio` serves whoever started it.

#![forbid(unsafe_code)]

use std::future::pending;
use std::process::ExitCode;
use std::time::SystemTime;

use serde_json::json;
use trunkline::auth::jose::SigningKey;
use trunkline::server::Http;
use trunkline::server::protect::{Jwks, JwtIssuer, Protect};
use trunkline_conformance::{calls, exit_code, fixtures};

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(serve().await)
}

async fn serve() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let server = fixtures::server();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => server.serve_stdio().await.map_err(|error| error.to_string()),
        ["--port", port, ref rest @ ..]
            if rest.iter().all(|it| matches!(*it, "--json" | "--protected")) =>
        {
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
            let http = match rest.contains(&"--protected") {
                true => protected(http, &format!("http://{address}/mcp"))?,
                false => http,
            };
            http.serve(listener, pending()).await.map_err(|error| error.to_string())
        }
        _ => Err(USAGE.to_owned()),
    }
}

/// Lets in only whoever has a token, and prints one that is good for an hour.
fn protected(http: Http, resource: &str) -> Result<Http, String> {
    let key = SigningKey::generate();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_err(|error| error.to_string())?.as_secs();
    let claims = json!({
        "iss": ISSUER, "aud": resource, "sub": "suite", "client_id": "suite",
        "iat": now, "exp": now + 3600,
    });
    let token = key.sign(json!({ "typ": "at+jwt" }), &claims);
    #[allow(clippy::print_stdout)] // Whoever started this hands it to the suite.
    {
        println!("token {token}");
    }
    let issuer = JwtIssuer::new(ISSUER).jwks(Jwks::new([key.public().clone()]));
    http.protect(Protect::new(resource).jwt(issuer)).map_err(|error| error.to_string())
}

const ISSUER: &str = "https://conformance.example";
const USAGE: &str =
    "Use `conformance-server --port N [--json] [--protected]` or `conformance-server --stdio`.";
