//! The demo over HTTP, until a signal.

use std::future::poll_fn;
use std::io::Write;
use std::net::SocketAddr;
use std::task::Poll;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};
use trunkline::Server;

use super::auth::{Login, Protected};

/// How the demo is reached over HTTP.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Serves HTTP at this address instead of stdin and stdout.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:3000")]
    http: Option<SocketAddr>,
    /// Lets in requests for this host name, beside those of this machine.
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// Lets in the web pages of this origin.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Gives clients before 2026-07-28 no session.
    #[arg(long, requires = "http")]
    stateless: bool,
}

impl Options {
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.http
    }
}

/// Serves until SIGINT or SIGTERM, then drains.
pub(crate) fn run(
    server: Server,
    address: SocketAddr,
    options: &Options,
    login: &Login,
) -> Result<()> {
    if !login.is_on() && !address.ip().is_loopback() && options.allow_host.is_empty() {
        bail!(
            "`{address}` can be reached from other machines, and this demo lets everybody in. \
             Serve it at `127.0.0.1`, or say with `--allow-host NAME` by which name it may be reached."
        );
    }
    let mut http = server.http();
    for host in &options.allow_host {
        http = http.allow_host(host);
    }
    for origin in &options.allow_origin {
        http = http.allow_origin(origin);
    }
    if options.stateless {
        http = http.stateless();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = trunkline::server::bind(address)
            .await
            .with_context(|| format!("Nothing can listen at `{address}`"))?;
        let (asked, address) = (address, listener.local_addr()?);
        // The authorization server lives as long as this.
        let protected = match login.is_on() {
            true => Some(Protected::start(http.clone(), (asked, address), login).await?),
            false => None,
        };
        let (mut term, mut int) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        // The first signal drains, a second ends it at once.
        let (first, stopped) = tokio::sync::oneshot::channel();
        let mut first = Some(first);
        let hurried = poll_fn(move |cx| {
            loop {
                match (term.poll_recv(cx), int.poll_recv(cx)) {
                    (Poll::Pending, Poll::Pending) => return Poll::Pending,
                    _ => match first.take() {
                        Some(first) => drop(first.send(())),
                        None => return Poll::Ready(()),
                    },
                }
            }
        });
        // The reader of stderr may be gone.
        let _ =
            writeln!(std::io::stderr(), "Serving MCP at http://{address}/mcp (2024-11-05: /sse).");
        if let Some(protected) = &protected {
            protected.announce(&format!("http://{address}/mcp"));
            http = protected.http.clone();
        }
        tokio::select! {
            served = http.serve(listener, async { drop(stopped.await) }) => Ok(served?),
            () = hurried => Ok(()),
        }
    })
}
