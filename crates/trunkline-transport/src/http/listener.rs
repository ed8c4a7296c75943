//! Where connections come from: TCP, TCP with TLS, or a Unix socket.

use std::io;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

#[cfg(feature = "tls")]
use super::tls::Tls;

/// Accepts a server's connections: built from a `TcpListener` or a `UnixListener`, or by `Tls::listen`.
///
/// A Unix socket speaks HTTP/1 only. The permissions that its creator set decide who may connect.
#[derive(Debug)]
pub struct Listener(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    #[cfg(feature = "tls")]
    Tls(TcpListener, Tls),
    Unix(UnixListener),
}

/// A connection before its first byte.
pub(super) enum Accepted {
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(TcpStream, tokio_rustls::TlsAcceptor),
    Unix(UnixStream),
}

impl Listener {
    #[cfg(feature = "tls")]
    pub(super) fn secured(listener: TcpListener, tls: Tls) -> Self {
        Self(Kind::Tls(listener, tls))
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        Ok(match &self.0 {
            Kind::Tcp(listener) => Accepted::Tcp(listener.accept().await?.0),
            #[cfg(feature = "tls")]
            Kind::Tls(listener, tls) => Accepted::Tls(listener.accept().await?.0, tls.acceptor()),
            Kind::Unix(listener) => Accepted::Unix(listener.accept().await?.0),
        })
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self(Kind::Tcp(listener))
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self(Kind::Unix(listener))
    }
}
