//! A port → the fixtures of the suite at `/mcp`, and the number of executed tool calls at `/calls`.
//!
//! `conformance-server --port N` serves HTTP, with `--json` in JSON where that will do, and with
//! `--protected` only whoever has the token that it prints; with `--replicas REDIS ADDRESS` as one of several that
//! share that Redis and reach each other at such addresses;
//! `conformance-server --stdio` serves whoever started it.

#![forbid(unsafe_code)]

use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;
use trunkline::Server;
use trunkline::auth::jose::SigningKey;
use trunkline::server::protect::{Jwks, JwtIssuer, Protect};
use trunkline::server::{Http, Replicas};
use trunkline::store::{Redis, RedisAddress, RedisSettings};
use trunkline_conformance::{calls, exit_code, fixtures};

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(serve().await)
}

async fn serve() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => fixtures::server().serve_stdio().await.map_err(|error| error.to_string()),
        ["--port", port, "--replicas", redis, internal] => {
            serve_http(replica(redis, internal)?, port, &[]).await
        }
        ["--port", port, ref rest @ ..]
            if rest.iter().all(|it| matches!(*it, "--json" | "--protected")) =>
        {
            serve_http(fixtures::server(), port, rest).await
        }
        _ => Err(USAGE.to_owned()),
    }
}

async fn serve_http(server: Server, port: &str, how: &[&str]) -> Result<(), String> {
    let port: u16 =
        port.parse().map_err(|_| format!("`{port}` is no port; use 0 for a free one."))?;
    let listener = trunkline::server::bind(("127.0.0.1", port)).await;
    let listener = listener.map_err(|error| format!("The port {port} cannot be used: {error}."))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    #[allow(clippy::print_stdout)] // Whoever started this waits for it.
    {
        println!("http://{address}/mcp");
    }
    let http = server.http().page("/calls", || calls().to_string());
    // What a balancer before several looks at.
    let http = http.page("/readyz", || "ready".to_owned());
    // The suite looks closer at streams than at plain answers.
    let http = if how.contains(&"--json") { http } else { http.always_stream() };
    let http = match how.contains(&"--protected") {
        true => protected(http, &format!("http://{address}/mcp"))?,
        false => http,
    };
    http.serve(listener, pending()).await.map_err(|error| error.to_string())
}

/// One of several servers, whose key is no secret.
fn replica(redis: &str, internal: &str) -> Result<Server, String> {
    let address = RedisAddress::parse(redis).map_err(|error| error.to_string())?;
    let store = Redis::open(RedisSettings::new(address)).map_err(|error| error.to_string())?;
    let replicas = Replicas::new(Arc::new(store), [7; 32], internal);
    Ok(fixtures::builder().replicas(replicas).build())
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
const USAGE: &str = "Use `conformance-server --port N [--json] [--protected]`, `conformance-server --port N \
    --replicas REDIS ADDRESS` or `conformance-server --stdio`.";
