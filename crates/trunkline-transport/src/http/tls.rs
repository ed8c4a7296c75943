//! Certificates and a key as PEM → TLS for a server; they can be replaced while it runs.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{Error, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::listener::Listener;

/// TLS 1.2 and 1.3 for a server: its certificates and key, and optionally the authorities of its
/// clients.
///
/// ALPN chooses between HTTP/2 and HTTP/1.1. Clones share what [`reload`](Self::reload) changes.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Current>>);

/// The material for the next handshake.
struct Current {
    config: Arc<ServerConfig>,
    /// The authorities whose clients are let in (mutual TLS).
    clients: Option<Arc<RootCertStore>>,
}

impl Tls {
    /// Takes PEM texts: the certificate chain, the server's own first; its key; and, if clients must
    /// show a certificate, the authorities that may have issued it.
    pub fn new(certificates: &[u8], key: &[u8], clients: Option<&[u8]>) -> io::Result<Self> {
        let current = Current::new(certificates, key, clients.map(authorities).transpose()?)?;
        Ok(Self(Arc::new(RwLock::new(current))))
    }

    /// Replaces the certificates from the next connection on; open connections keep theirs. If the new
    /// ones are invalid, nothing changes. With `clients` as `None`, the authorities stay: a reload
    /// never turns client certificates off.
    pub fn reload(
        &self,
        certificates: &[u8],
        key: &[u8],
        clients: Option<&[u8]>,
    ) -> io::Result<()> {
        let clients = match clients {
            Some(clients) => Some(authorities(clients)?),
            None => self.current(|it| it.clients.clone()),
        };
        let new = Current::new(certificates, key, clients)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Wraps a listener in TLS.
    ///
    /// Handshakes have the deadline of a request head (`Limits::header_read`) and do not delay each
    /// other. A peer that does not speak TLS is disconnected.
    pub fn listen(&self, listener: TcpListener) -> Listener {
        Listener::secured(listener, self.clone())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current(|it| Arc::clone(&it.config)).into()
    }

    fn current<T>(&self, look: impl FnOnce(&Current) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = self.current(|it| it.clients.as_ref().map(|it| it.len()));
        f.debug_struct("Tls").field("clients", &clients).finish_non_exhaustive()
    }
}

impl Current {
    fn new(
        certificates: &[u8],
        key: &[u8],
        clients: Option<Arc<RootCertStore>>,
    ) -> io::Result<Self> {
        let chain = certificates_in(certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            wrong(
                "There is no key in what was given as one; \
                 give a PEM file with a `BEGIN PRIVATE KEY`.",
            )
        })?;
        let provider = Arc::new(default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("ring has ciphers for TLS 1.2 and 1.3");
        let config = match &clients {
            None => config.with_no_client_auth(),
            Some(roots) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider)
                        .build()
                        .map_err(|why| wrong(format!("No client can be let in: {why}.")))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let mut config = config.with_single_cert(chain, key).map_err(|why| match why {
            Error::InconsistentKeys(_) => {
                wrong("The key is not the one of the certificate; give the pair.")
            }
            why => wrong(format!("The certificate and its key cannot be used: {why}.")),
        })?;
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), clients })
    }
}

/// Whether ALPN chose HTTP/2.
pub(super) fn is_h2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}

fn authorities(pem: &[u8]) -> io::Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_in(pem)? {
        roots.add(certificate).map_err(|why| {
            wrong(format!(
                "A certificate that clients are to be checked by is not in order: {why}."
            ))
        })?;
    }
    Ok(Arc::new(roots))
}

fn certificates_in(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read =
        read.map_err(|why| wrong(format!("A certificate that was given is no PEM: {why}.")))?;
    if read.is_empty() {
        return Err(wrong(
            "There is no certificate in what was given as one; \
             give a PEM file with a `BEGIN CERTIFICATE`.",
        ));
    }
    Ok(read)
}

fn wrong(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.into())
}

const H2: &[u8] = b"h2";
