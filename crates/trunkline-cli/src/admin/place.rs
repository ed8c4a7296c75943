//! The address of an admin API → a connection to it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::tls;
use crate::failure::{CONNECT, Failure};

/// The address of an admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Unix(PathBuf),
    /// The address, with its port.
    Http {
        host: String,
        is_secure: bool,
    },
}

/// Any byte stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The default sockets of gateways in a state folder.
pub(super) fn sockets(state: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let is_socket = |it: &PathBuf| {
        let name = it.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("admin") && name.ends_with(".sock")
    };
    let mut found: Vec<_> = std::fs::read_dir(state)
        .into_iter()
        .flatten()
        .filter_map(|it| Some(it.ok()?.path()))
        .filter(is_socket)
        .collect();
    found.sort();
    found.into_iter()
}

impl Place {
    pub(super) async fn connect(&self, files: &tls::Files<'_>) -> Result<Box<dyn Stream>, Failure> {
        match self {
            Self::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(self.nobody(&error)),
            },
            Self::Http { host, is_secure } => {
                let stream = TcpStream::connect(host).await.map_err(|error| self.nobody(&error))?;
                match is_secure {
                    false => Ok(Box::new(stream)),
                    true => {
                        let name = host.rsplit_once(':').map_or(&**host, |it| it.0);
                        let name = name.trim_start_matches('[').trim_end_matches(']');
                        Ok(Box::new(tls::secure(stream, name, files).await?))
                    }
                }
            }
        }
    }

    /// Its name in messages.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Unix(_) => "localhost",
            Self::Http { host, .. } => host,
        }
    }

    /// Whether the stored token may be sent there.
    pub(super) fn is_own(&self) -> bool {
        match self {
            Self::Unix(_) => false,
            Self::Http { is_secure: true, .. } => true,
            Self::Http { host, .. } => {
                let name = host.rsplit_once(':').map_or(&**host, |it| it.0);
                let name = name.trim_start_matches('[').trim_end_matches(']');
                let is_loopback = |it: std::net::IpAddr| it.is_loopback();
                name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
            }
        }
    }

    fn nobody(&self, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Failure::admin(CONNECT, format!("There is no gateway at `{self}`."))
                    .advice("Start one with `trunkline serve`, or say where it is with `--admin`.")
            }
            io::ErrorKind::PermissionDenied => {
                Failure::admin(CONNECT, format!("The gateway at `{self}` is somebody else's."))
                    .advice("Run this as the user that runs the gateway.")
            }
            _ => Failure::admin(CONNECT, format!("`{self}` cannot be reached: {error}.")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Http { host, is_secure: false } => write!(f, "http://{host}"),
            Self::Http { host, is_secure: true } => write!(f, "https://{host}"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|it| !it.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let uri = text.parse::<http::Uri>().ok();
        let parts = uri.as_ref().and_then(|it| Some((it.scheme_str()?, it.authority()?)));
        match (parts, uri.as_ref().map(http::Uri::path)) {
            (Some((scheme @ ("http" | "https"), authority)), Some("" | "/")) => {
                let is_secure = scheme == "https";
                let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
                Ok(Self::Http { host: format!("{}:{port}", authority.host()), is_secure })
            }
            _ => Err("write it as unix:PATH, http://HOST:PORT or https://HOST:PORT".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_in_three_ways() {
        for (text, expected) in [
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("http://127.0.0.1:7374", "http://127.0.0.1:7374"),
            ("http://localhost:7374/", "http://localhost:7374"),
            ("https://gate.example", "https://gate.example:443"),
            ("https://[::1]:9", "https://[::1]:9"),
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), expected);
        }
        for text in ["", "unix:", "7374", "ftp://a", "http://a/v1", "http://", "/run/x.sock"] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains("unix:PATH"), "{text}: {error}");
        }
    }

    #[test]
    fn a_kept_token_is_not_sent_in_clear() {
        for (text, expected) in [
            ("http://127.0.0.1:7374", true),
            ("http://[::1]:7374", true),
            ("http://localhost:7374", true),
            ("https://gate.example", true),
            ("http://gate.example:7374", false),
            ("http://192.0.2.1:7374", false),
            ("unix:/run/x.sock", false),
        ] {
            assert_eq!(text.parse::<Place>().unwrap().is_own(), expected, "{text}");
        }
    }
}
