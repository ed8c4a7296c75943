//! How do I observe a server? Spans of `tracing` on stderr, and metrics at `/metrics`. The names
//! are those of OpenTelemetry; they never contain an argument or a result.

use std::future::pending;
use tracing_subscriber::fmt::format::FmtSpan;
use trunkline::observe::Metrics;
use trunkline::server::bind;
use trunkline::{Server, ToolError, tool};

/// Divides one number by another.
#[tool(read_only)]
async fn divide(a: f64, b: f64) -> Result<String, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("Nothing can be divided by zero; choose another `b`."));
    }
    Ok((a / b).to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr);
    log.with_span_events(FmtSpan::CLOSE).init();
    let metrics = Metrics::new();
    let server = Server::builder("observe", "1.0.0").meter(metrics.clone()).tool(divide).build();
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = bind(address).await?;
    eprintln!("Listening at http://{}/mcp", listener.local_addr()?);
    server.http().page("/metrics", move || metrics.render()).serve(listener, pending()).await
}
