//! Shared by the tests of HTTP: a server on a port of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use trunkline::server::Http;
use trunkline::{Context, Limits, Server, tool};
use trunkline_testkit::http::{Guest, Head, Line};

use crate::server::{builder, soon};

/// A running server, until it is dropped or shut down.
pub(crate) struct House {
    pub(crate) address: SocketAddr,
    close: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
}

impl House {
    /// Serves with all defaults.
    pub(crate) async fn of(server: &Server) -> Self {
        Self::with(server.http()).await
    }

    /// Serves with the options of `http`.
    pub(crate) async fn with(http: Http) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (close, closed) = oneshot::channel();
        let served = tokio::spawn(http.serve(listener, async move {
            // A test that ends drops its server with its runtime.
            if closed.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        Self { address, close: Some(close), served }
    }

    /// Serves tools that count how often they ran.
    pub(crate) async fn counting(limits: Limits) -> (Self, Arc<AtomicU32>) {
        let (server, runs) = counting(limits);
        (Self::of(&server).await, runs)
    }

    /// Starts a graceful shutdown: calls in flight continue.
    pub(crate) fn close(&mut self) {
        let _ = self.close.take().map(|it| it.send(()));
    }

    /// Ends it as a crash would.
    pub(crate) async fn kill(self) {
        self.served.abort();
        let _ = self.served.await;
    }

    /// Waits until the last connection is done.
    pub(crate) async fn ended(self) {
        soon(self.served).await.unwrap().unwrap();
    }
}

/// A server whose tools `sum` and `sleep` count how often they ran.
pub(crate) fn counting(limits: Limits) -> (Server, Arc<AtomicU32>) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = |text: &'static str| {
        let runs = Arc::clone(&runs);
        move || {
            runs.fetch_add(1, SeqCst);
            async move { text }
        }
    };
    let server = builder()
        .limits(limits)
        .tool(tool("sum", counted("3")))
        .tool(tool("sleep", counted("slept")))
        .build();
    (server, runs)
}

/// Calls a tool that reports progress, and hears that it does: what was asked, the line that waits,
/// and the head of its answer.
pub(crate) async fn speaking(guest: &mut Guest, name: &str) -> (Value, Line, Head) {
    let params = json!({ "name": name, "_meta": { "progressToken": 1 } });
    let asked = guest.prepare("tools/call", params);
    let (mut line, head) = guest.post(&asked).await;
    line.message().await.unwrap();
    (asked, line, head)
}

/// Reports `from..to` as progress.
pub(crate) async fn steps(cx: &Context, from: u32, to: u32) {
    for step in from..to {
        cx.progress(step, to).await;
    }
}
