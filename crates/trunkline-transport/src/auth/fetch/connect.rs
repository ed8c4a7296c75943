//! A host → a connection to one of its addresses, all of which were checked.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use trunkline_auth::address::{Guard, Host};
use trunkline_auth::fetch::{FetchError, Pending};

use crate::http::client::target::Origin;
#[cfg(feature = "tls")]
use crate::http::client::tls::Tls;

/// Resolves names and connects to addresses. Tests have one that records both.
pub(super) trait Connector: Send + Sync + 'static {
    /// Resolves a name.
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>>;

    /// Connects to an address.
    fn dial(&self, to: SocketAddr) -> Pending<'_, io::Result<Box<dyn Stream>>>;
}

/// A byte stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// The operating system's resolver and sockets.
pub(super) struct Network;

impl Connector for Network {
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(lookup_host((name, port)).await?.collect()) })
    }

    fn dial(&self, to: SocketAddr) -> Pending<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(to).await?;
            // Requests are written whole, so Nagle's algorithm would only delay them.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// Connects to an origin, with the name that its certificate must match.
pub(super) async fn connect(
    connector: &dyn Connector,
    guard: Guard,
    origin: &Origin,
) -> Result<(Box<dyn Stream>, String), FetchError> {
    let failed =
        |why: String| FetchError::Failed(format!("Connecting to `{origin}` failed: {why}."));
    let (addresses, host) = match guard.check_host(&origin.host)? {
        Host::Address(address) => {
            (vec![SocketAddr::new(address, origin.port)], address.to_string())
        }
        Host::Name(name) => {
            let found = connector.resolve(&name, origin.port).await;
            let found = found.map_err(|error| failed(error.to_string()))?;
            // One forbidden address suggests DNS rebinding.
            for address in &found {
                guard.check(&name, address.ip())?;
            }
            (found, name)
        }
    };
    let mut why = "its name leads nowhere".to_owned();
    for address in addresses.into_iter().take(TRIED) {
        match timeout(PATIENCE, connector.dial(address)).await {
            Ok(Ok(stream)) => return Ok((stream, host)),
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => why = "nobody answers".to_owned(),
        }
    }
    Err(failed(why))
}

/// TLS for `https`.
#[cfg(feature = "tls")]
pub(super) struct Way(Tls);

#[cfg(feature = "tls")]
impl Way {
    pub(super) fn new(roots: &[Vec<u8>]) -> Result<Self, String> {
        Tls::new(roots).map(Self)
    }

    pub(super) async fn secure(
        &self,
        host: &str,
        stream: Box<dyn Stream>,
    ) -> Result<Box<dyn Stream>, String> {
        Ok(Box::new(self.0.secure(host, stream).await?))
    }
}

/// Without the feature `tls` there is no `https`.
#[cfg(not(feature = "tls"))]
pub(super) struct Way;

#[cfg(not(feature = "tls"))]
impl Way {
    pub(super) fn new(_: &[Vec<u8>]) -> Result<Self, String> {
        Err("`https` is not built into this client. Switch on the feature `tls`".to_owned())
    }

    pub(super) async fn secure(
        &self,
        _: &str,
        stream: Box<dyn Stream>,
    ) -> Result<Box<dyn Stream>, String> {
        Ok(stream)
    }
}

/// How many addresses of one host are tried.
const TRIED: usize = 4;
/// The deadline of each.
const PATIENCE: Duration = Duration::from_secs(5);
