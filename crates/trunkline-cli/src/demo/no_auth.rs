//! The demo of a build without the feature `authority`: it has no authorization server.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use trunkline::server::{Http, ServerBuilder};

/// There is no login.
#[derive(clap::Args)]
pub(crate) struct Login {}

impl Login {
    pub(crate) fn is_on(&self) -> bool {
        false
    }
}

/// A demo behind a login, which this build cannot start.
pub(crate) struct Protected {
    pub(crate) http: Http,
}

impl Protected {
    pub(crate) async fn start(_: Http, _: (SocketAddr, SocketAddr), _: &Login) -> Result<Self> {
        bail!("This build has no authorization server. Build it with the feature `authority`.")
    }

    pub(crate) fn announce(&self, _: &str) {}
}

/// What only a demo behind a login can show: nothing here.
pub(crate) fn register(server: ServerBuilder) -> ServerBuilder {
    server
}

/// The scope of clients that notify others of changes.
pub(crate) const WRITE: &str = "demo:write";
