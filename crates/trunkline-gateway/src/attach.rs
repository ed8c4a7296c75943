//! Lets several hosts of one user share a gateway. Each connects over a Unix socket as it would over stdin and
//! stdout: one line that selects servers, then MCP.

use std::future::Future;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::gateway::Gateway;
use crate::selector::Selector;
use crate::socket::{self, Socket};

/// The socket that hosts connect to.
#[derive(Debug)]
pub struct Attach {
    listener: UnixListener,
    _socket: Socket,
}

impl Attach {
    /// Listens at a path that only its owner can reach. One listener per path.
    pub async fn open(path: &Path) -> io::Result<Self> {
        let (listener, _socket) = socket::bind(path).await?;
        Ok(Self { listener, _socket })
    }

    /// Serves hosts until `shutdown`, or until none was connected for `linger`.
    pub async fn serve(
        self,
        gateway: Gateway,
        linger: Option<Duration>,
        shutdown: impl Future<Output = ()>,
    ) {
        let (stop, stopped) = watch::channel(false);
        let mut hosts = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let alone = linger.filter(|_| hosts.is_empty());
            let left = async {
                match alone {
                    Some(linger) => sleep(linger).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut shutdown => break,
                () = left => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if hosts.len() < HOSTS => {
                        hosts.spawn(host(gateway.clone(), stream, stopped.clone()));
                    }
                    // Over the bound: closing the connection is the answer.
                    Ok(_) => {}
                    // Out of file descriptors for now.
                    Err(_) => sleep(PAUSE).await,
                },
                Some(_) = hosts.join_next() => {}
            }
        }
        // A host that connects now finds no listener and starts its own gateway.
        drop((self.listener, self._socket));
        stop.send_replace(true);
        while hosts.join_next().await.is_some() {}
    }
}

/// The first line that a host sends.
pub fn hello(selector: &Selector) -> String {
    let wanted = match selector {
        Selector::All => serde_json::json!({}),
        Selector::Server(name) => serde_json::json!({ "server": name }),
        Selector::Tags(tags) => serde_json::json!({ "tags": tags }),
        Selector::Untagged => serde_json::json!({ "untagged": true }),
    };
    format!("{wanted}\n")
}

fn wanted(line: &str) -> Option<Selector> {
    #[derive(serde::Deserialize)]
    struct Wanted {
        server: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        untagged: bool,
    }
    let wanted: Wanted = serde_json::from_str(line).ok()?;
    Some(match wanted.server {
        Some(server) => Selector::Server(server),
        None if wanted.untagged => Selector::Untagged,
        None if wanted.tags.is_empty() => Selector::All,
        None => Selector::Tags(wanted.tags),
    })
}

async fn host(gateway: Gateway, stream: UnixStream, mut stopped: watch::Receiver<bool>) {
    let (read, mut write) = stream.into_split();
    let (mut read, mut line) = (BufReader::new(read), String::new());
    let first = async { (&mut read).take(LONGEST).read_line(&mut line).await };
    if !matches!(timeout(PATIENCE, first).await, Ok(Ok(1..))) {
        return;
    }
    let Some(selector) = wanted(&line) else { return };
    if write.write_all(WELCOME.as_bytes()).await.is_err() {
        return;
    }
    let shutdown = async move { drop(stopped.wait_for(|it| *it).await) };
    // A host that disconnects in the middle of a line is gone like any other.
    let _ = gateway.serve_stream(selector, (read, write), shutdown).await;
}

/// The first line that a host receives: from now on it is served.
pub const WELCOME: &str = "{\"attached\":true}\n";
/// The bound on hosts.
const HOSTS: usize = 256;
/// How long a host may take for its first line, and how long the line may be.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: u64 = 64 << 10;
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hello_line_selects_servers() {
        let tags = Selector::Tags(vec!["a".to_owned(), "b".to_owned()]);
        let server = Selector::Server("git".to_owned());
        for selector in [Selector::All, Selector::Untagged, server, tags] {
            let line = hello(&selector);
            assert_eq!((wanted(&line), line.matches('\n').count()), (Some(selector), 1));
        }
        assert_eq!(wanted("GET / HTTP/1.1"), None);
    }
}
