//! The travel server, with rmcp 3.8: over stdio, or with `--http` at a free port, which it says on stderr.
#![forbid(unsafe_code)]

/// The server itself, whose build is measured as well.
#[allow(dead_code)] // Its `main` serves stdio alone.
#[path = "../../../../bench/build/rmcp.rs"]
mod travel;

use std::error::Error;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use travel::Travel;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        None => drop(Travel.serve(stdio()).await?.waiting().await?),
        Some("--http") => serve_http().await?,
        Some(other) => return Err(format!("`{other}` is not `--http`.").into()),
    }
    Ok(())
}

async fn serve_http() -> Result<(), Box<dyn Error>> {
    let config = StreamableHttpServerConfig::default();
    let sessions = Arc::<LocalSessionManager>::default();
    let service = StreamableHttpService::new(|| Ok(Travel), sessions, config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("Serving at http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
