//! A connection to an admin API → the same over TLS, with certificates on both sides.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::failure::{CONNECT, Failure};

/// The trusted certificates and our own: PEM files.
pub(super) struct Files<'a> {
    pub(super) roots: Option<&'a Path>,
    pub(super) pair: Option<(&'a Path, &'a Path)>,
}

/// Performs the TLS handshake. An admin API has a private certificate, so only the given ones are
/// trusted.
pub(super) async fn secure(
    stream: TcpStream,
    host: &str,
    files: &Files<'_>,
) -> Result<TlsStream<TcpStream>, Failure> {
    let Some(roots) = files.roots else {
        return Err(Failure::usage("There is no certificate to know the gateway by.")
            .advice("Give the one of its authority with `--cacert FILE`."));
    };
    let mut store = RootCertStore::empty();
    for certificate in certificates(roots)? {
        store.add(certificate).map_err(|error| unusable(roots, &error))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has ciphers for TLS 1.2 and 1.3")
        .with_root_certificates(store);
    let mut config = match files.pair {
        None => config.with_no_client_auth(),
        Some((chain, key)) => {
            let pair = (certificates(chain)?, PrivateKeyDer::from_pem_file(key));
            let key = pair.1.map_err(|error| unusable(key, &error))?;
            config.with_client_auth_cert(pair.0, key).map_err(|error| unusable(chain, &error))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Failure::usage(format!("No certificate can be for `{host}`.")))?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| {
        Failure::admin(CONNECT, format!("There is no TLS with `{host}`: {error}."))
            .advice("Check `--cacert`, and that the certificate is for that name.")
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(|all| all.collect());
    match read {
        Ok(all) if all.is_empty() => Err(unusable(path, &"there is no certificate in it")),
        Ok(all) => Ok(all),
        Err(error) => Err(unusable(path, &error)),
    }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("`{}` cannot be used: {error}.", path.display()))
        .advice("Give a PEM file.")
}
