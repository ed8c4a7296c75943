//! A connection and a host name → a TLS connection with a verified certificate. Nothing turns
//! verification off.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Trusted roots, and the TLS session cache.
pub(crate) struct Tls {
    /// Roots beyond those that browsers trust.
    extra: RootCertStore,
    /// Built on first use.
    connector: OnceLock<TlsConnector>,
}

impl Tls {
    /// Trusts the roots that browsers trust, and those in these PEM files.
    pub(crate) fn new(files: &[Vec<u8>]) -> Result<Self, String> {
        let mut extra = RootCertStore::empty();
        for file in files {
            let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(file).collect();
            let read =
                read.map_err(|why| format!("a root certificate that was given is no PEM: {why}."))?;
            // A bundle may hold a few unusable certificates; one without any usable is a mistake.
            if extra.add_parsable_certificates(read).0 == 0 {
                let why = "give a PEM file with at least one `BEGIN CERTIFICATE` that is in order.";
                return Err(format!("a root file that was given holds no certificate; {why}"));
            }
        }
        Ok(Self { extra, connector: OnceLock::new() })
    }

    /// Performs the TLS handshake with `host`. Errors are whole sentences.
    pub(crate) async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: S,
    ) -> Result<TlsStream<S>, String> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| "no certificate can be made out to that name".to_owned())?;
        let connector = self.connector.get_or_init(|| connector(self.extra.clone()));
        connector.connect(name, stream).await.map_err(|error| explain(&error, host))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("extra", &self.extra.len()).finish_non_exhaustive()
    }
}

fn connector(mut roots: RootCertStore) -> TlsConnector {
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has ciphers for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config).into()
}

/// Why the handshake failed, and what to do.
fn explain(error: &io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(why)) => distrust(why, host),
        Some(Error::InvalidMessage(_)) => {
            format!("it answers with something else than TLS. {PERHAPS_PLAIN}")
        }
        Some(Error::PeerIncompatible(_)) => TOO_OLD.to_owned(),
        Some(Error::AlertReceived(alert)) => match alert {
            AlertDescription::ProtocolVersion
            | AlertDescription::HandshakeFailure
            | AlertDescription::InsufficientSecurity => TOO_OLD.to_owned(),
            AlertDescription::UnrecognisedName => {
                format!("it knows no server called `{host}`. Check the name in the address")
            }
            AlertDescription::NoApplicationProtocol => {
                "it speaks no HTTP/1.1. Check that the address is the one of an MCP server"
                    .to_owned()
            }
            alert => format!("it refused the TLS handshake: {alert:?}"),
        },
        Some(other) => format!("the TLS handshake went wrong: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("it hung up during the TLS handshake. {PERHAPS_PLAIN}")
        }
        None => format!("the TLS handshake broke off: {error}"),
    }
}

fn distrust(why: &CertificateError, host: &str) -> String {
    use CertificateError as Why;
    match why {
        Why::Expired | Why::ExpiredContext { .. } => {
            "its certificate has expired. The operator of the server must renew it; \
             if others get through, set the clock of this machine"
                .to_owned()
        }
        Why::NotValidYet | Why::NotValidYetContext { .. } => {
            "its certificate is not valid yet. Set the clock of this machine; \
             if it is right, the operator of the server must wait or get another certificate"
                .to_owned()
        }
        Why::NotValidForName => format!("its certificate is not for `{host}`. {USE_ITS_NAME}"),
        Why::NotValidForNameContext { presented, .. } => {
            let names = names(presented);
            format!("its certificate is not for `{host}`{names}. {USE_ITS_NAME}")
        }
        Why::UnknownIssuer => {
            "its certificate was issued by somebody we do not know. If you trust them, give their \
             root certificate (`root_certificate`, `--cacert FILE`); if not, somebody may be \
             listening in"
                .to_owned()
        }
        Why::BadSignature => {
            "its certificate is not signed by the issuer that it names. If the issuer has another \
             root certificate by now, give that one; if not, somebody may be listening in"
                .to_owned()
        }
        // rustls has no variant for this.
        Why::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            "its certificate is one that issues others (`CA:TRUE`), not one of a server. The \
             operator must get another one, with `CA:FALSE`"
                .to_owned()
        }
        Why::Revoked => {
            "its certificate was revoked. The operator of the server must get another".to_owned()
        }
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            format!("its certificate is not meant for servers. {GET_ANOTHER}")
        }
        other => format!("its certificate is not in order: {other}. {GET_ANOTHER}"),
    }
}

/// The names in a certificate, as far as they can be shown.
fn names(presented: &[String]) -> String {
    let shown = presented.iter().take(SHOWN).filter_map(|it| {
        // They come as `DnsName("a.example")` and `IpAddress(127.0.0.1)`.
        let (_, name) = it.split_once('(')?;
        let name = name.trim_end_matches(')').trim_matches('"');
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.*:".contains(it);
        (name.len() < 100 && name.chars().all(is_plain)).then(|| format!("`{name}`"))
    });
    let shown: Vec<_> = shown.collect();
    match (shown.is_empty(), presented.len() > shown.len()) {
        (true, _) => String::new(),
        (false, false) => format!(", but for {}", shown.join(", ")),
        (false, true) => format!(", but for {} and others", shown.join(", ")),
    }
}

const PERHAPS_PLAIN: &str =
    "Check the port; if the server has no TLS, its address begins with `http://`";
const TOO_OLD: &str = "it speaks no TLS that we do (1.2 and 1.3, with ciphers that are still safe). \
                       The operator of the server must bring it up to date";
const USE_ITS_NAME: &str = "Use a name that the certificate is for";
const GET_ANOTHER: &str = "The operator of the server must get another one";
/// How many names of a certificate are shown.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_with_a_sentence() {
        let block = |label: &str, body: &str| {
            format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes()
        };
        for (file, expected) in [
            (Vec::new(), "holds no certificate"),
            (b"what is this".to_vec(), "holds no certificate"),
            (block("PRIVATE KEY", "AAAA"), "holds no certificate"),
            (block("CERTIFICATE", "AAAA"), "holds no certificate"),
            (block("CERTIFICATE", "\u{1}!"), "is no PEM"),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n".to_vec(), "is no PEM"),
        ] {
            let why = Tls::new(&[file]).unwrap_err();
            assert!(why.contains(expected) && why.ends_with('.'), "{why}");
        }
        assert!(Tls::new(&[]).is_ok());
    }

    #[test]
    fn names_of_a_certificate_cannot_say_anything_else() {
        let names = |them: &[&str]| {
            let them: Vec<_> = them.iter().map(|it| (*it).to_owned()).collect();
            super::names(&them)
        };
        assert_eq!(names(&[]), "");
        assert_eq!(names(&["DnsName(\"*.a\")", "IpAddress(::1)"]), ", but for `*.a`, `::1`");
        assert_eq!(names(&["DnsName(\"a\")", "Uri(\"a b\")"]), ", but for `a` and others");
        assert_eq!(names(&["DnsName(\"\\u{1b}[2J`\")"]), "");
        assert!(names(&["DnsName(\"a\")"; 9]).ends_with("`a` and others"));
    }
}
