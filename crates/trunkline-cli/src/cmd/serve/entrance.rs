//! Where clients connect: a port, a socket for hosts that share the gateway, or stdin and stdout.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use trunkline_gateway::admin::{self, Opened, WebFile};
use trunkline_gateway::attach::Attach;
use trunkline_gateway::catalog::plan::{AdminPlan, GatewayPlan};
use trunkline_gateway::certificates::Certificates;
use trunkline_gateway::{Front, Gateway, Operation, Selector, reached_at};
use trunkline_transport::Limits;
use trunkline_transport::http::{Answers, UntilLeft, bind};

use super::attach::{HostSockets, own_admin};
use super::replica::Joined;
use super::until;

/// Where clients connect.
pub(super) enum Entrance {
    /// One host, at stdin and stdout.
    Stdio(Selector),
    /// The hosts that share it, until there has been none for this long; and its admin socket.
    Hosts { hosts: Attach, linger: Duration, admin: PathBuf },
    /// Clients at a port, and the hosts of its catalog unless another gateway serves them.
    Http { door: Door, names: Vec<String>, hosts: Option<Attach> },
}

impl Entrance {
    /// For hosts only; `None` if they have another gateway.
    pub(super) async fn hosts(sockets: Option<&HostSockets>, linger: u64) -> Option<Self> {
        let sockets = sockets?;
        let hosts = Attach::open(&sockets.socket()).await.ok()?;
        Some(Self::Hosts { hosts, linger: Duration::from_secs(linger), admin: sockets.admin() })
    }

    pub(super) async fn http(plan: &GatewayPlan, sockets: Option<&HostSockets>) -> Result<Self> {
        let door = Door::open(&plan.listen, plan.tls.clone()).await?;
        let hosts = match sockets {
            Some(sockets) => Attach::open(&sockets.socket()).await.ok(),
            None => None,
        };
        Ok(Self::Http { door, names: plan.hosts.clone(), hosts })
    }

    /// Opens the admin API. A host is served even without it.
    pub(super) async fn admin(&self, plan: &AdminPlan, state: &Path) -> Result<Option<Opened>> {
        let opened = match self {
            Self::Http { .. } => {
                let opened = admin::open(plan, state).await.context("The admin API cannot open")?;
                return Ok(Some(opened.with_page(web_file)));
            }
            Self::Hosts { admin, .. } => admin::open_at(admin).await,
            Self::Stdio(_) => admin::open_at(&own_admin(state).await).await,
        };
        Ok(opened.map(Some).unwrap_or_else(|error: io::Error| {
            let text = "Nobody can look into this gateway with `trunkline ps`";
            let _ = writeln!(io::stderr(), "{text}: {error}");
            None
        }))
    }

    /// Serves clients. Announces the address once clients can connect.
    pub(super) async fn serve(
        self,
        gateway: &Gateway,
        operation: &Operation,
        joined: Option<Joined>,
        stopped: watch::Receiver<bool>,
        tell: impl FnOnce(&str),
    ) -> Result<()> {
        let process = std::process::id();
        match self {
            Self::Stdio(selector) => {
                operation.serves(&format!("stdin and stdout of process {process}"));
                let served = gateway.serve_stdio(selector, until(stopped)).await;
                served.context("Serving stdin and stdout failed")
            }
            Self::Hosts { hosts, linger, .. } => {
                operation.serves(&format!("the hosts that share process {process}"));
                hosts.serve(gateway.clone(), Some(linger), until(stopped)).await;
                Ok(())
            }
            Self::Http { door, names, hosts } => {
                let front = Front::new(gateway, door.address).map_err(anyhow::Error::msg)?;
                let url = door.url(&names);
                operation.listens(url.clone(), Arc::clone(&front));
                tell(&url);
                let hosts = hosts.map(|it| {
                    tokio::spawn(it.serve(gateway.clone(), None, until(stopped.clone())))
                });
                let served = match joined {
                    None => door.serve(front, until(stopped)).await,
                    Some(joined) => as_replica(door, front, joined, stopped).await,
                };
                if let Some(hosts) = hosts {
                    // Open connections finish, unless no shutdown was requested.
                    match &served {
                        Ok(()) => drop(hosts.await),
                        Err(_) => hosts.abort(),
                    }
                }
                served
            }
        }
    }
}

/// Serves as one of several replicas. When it is time to stop, the others take over what it had.
async fn as_replica(
    door: Door,
    front: Arc<Front>,
    joined: Joined,
    stopped: watch::Receiver<bool>,
) -> Result<()> {
    let replica = joined.serve(&front);
    let (closing, mut is_closing) = watch::channel(false);
    let is_served = AtomicBool::new(false);
    let serving = async {
        let leaving = async {
            until(stopped).await;
            replica.linger().await;
            closing.send_replace(true);
        };
        // What other replicas forwarded may still be in flight when the last client is gone.
        let served = door.serve(Arc::new(UntilLeft(front)), leaving).await;
        closing.send_replace(true);
        is_served.store(true, Ordering::Release);
        served
    };
    let handing_over = async {
        let _ = is_closing.wait_for(|it| *it).await;
        replica.hand_over(|| is_served.load(Ordering::Acquire)).await
    };
    let (served, is_all_answered) = tokio::join!(serving, handing_over);
    replica.leave(is_all_answered).await;
    served
}

/// A listening port.
pub(super) struct Door {
    listener: tokio::net::TcpListener,
    address: std::net::SocketAddr,
    certificates: Option<Certificates>,
}

impl Door {
    pub(super) async fn open(listen: &str, tls: Option<(PathBuf, PathBuf)>) -> Result<Self> {
        let certificates = tls.map(|(chain, key)| Certificates::open(&chain, &key, None));
        let certificates = certificates.transpose()?;
        let listener =
            bind(listen).await.with_context(|| format!("Nothing can listen at `{listen}`"))?;
        Ok(Self { address: listener.local_addr()?, listener, certificates })
    }

    /// Its URL for clients.
    pub(super) fn url(&self, hosts: &[String]) -> String {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", reached_at(self.address, hosts))
    }

    pub(super) async fn serve(
        self,
        answers: Arc<impl Answers>,
        until: impl Future<Output = ()>,
    ) -> Result<()> {
        let limits = Limits::default();
        let Some(certificates) = self.certificates else {
            return Ok(
                trunkline_transport::http::serve(self.listener, answers, limits, until).await?
            );
        };
        let listener = certificates.tls().listen(self.listener);
        tokio::select! {
            served = trunkline_transport::http::serve(listener, answers, limits, until) => Ok(served?),
            never = certificates.watch(|error| {
                let _ = writeln!(std::io::stderr(), "{error}");
            }) => match never {},
        }
    }
}

/// A file of the console's page.
fn web_file(path: &str) -> Option<WebFile> {
    let trunkline_console::File { content_type, gzip, tag } = trunkline_console::file(path)?;
    Some(WebFile { content_type, gzip, unpack: trunkline_console::unpack, tag })
}
