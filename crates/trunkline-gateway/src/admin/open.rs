//! Opens the admin API's listener as the plan says, and decides who may use it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use trunkline_auth::digest::sha256;
use trunkline_auth::tag::random_name;
use trunkline_proto::http::door::Door;
use trunkline_proto::http::fields::Fields;
use trunkline_transport::http::Listener;

use super::Complaint;
use super::console::Console;
use super::console_keys::is_same;
use super::page::WebFiles;
use crate::catalog::plan::AdminPlan;
use crate::certificates::Certificates;
use crate::socket::{self, Socket};

/// A bound listener that does not answer yet.
#[derive(Debug)]
pub struct Opened {
    pub(super) listener: Listener,
    pub(super) entry: Entry,
    pub(super) certificates: Option<Certificates>,
    pub(super) socket: Option<Socket>,
    pub(super) console: Arc<Console>,
    /// The listener for browsers, if the API itself is at a socket.
    pub(super) beside: Option<(Listener, Entry)>,
    pub(super) files: Option<WebFiles>,
    /// `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`.
    pub place: String,
    /// The token that callers must send; `None` for the Unix socket.
    pub token: Option<String>,
}

impl Opened {
    /// Serves the console's page.
    #[must_use]
    pub fn with_page(mut self, files: WebFiles) -> Self {
        self.files = Some(files);
        self
    }

    /// A link to the console, good once and for five minutes; `None` if there is no page, or no browser reaches it.
    pub fn console_link(&self) -> Option<String> {
        self.files?;
        self.console.link().ok()
    }
}

/// Listens where the plan says, or else at `admin.sock` in the state folder.
///
/// Over TCP a token is always required: the one in `admin.token` of the state folder, which is generated if
/// missing and admits every user that can read the file, or the plan's. Beyond loopback, client certificates
/// are required as well.
pub async fn open(plan: &AdminPlan, state: &Path) -> io::Result<Opened> {
    let path = match plan.listen.as_deref() {
        None => state.join("admin.sock"),
        Some(listen) => match listen.strip_prefix("unix:") {
            Some(path) => path.into(),
            None => return tcp(listen, plan, state).await,
        },
    };
    let mut opened = open_at(&path).await?;
    note(state, &opened.place);
    match beside(state).await {
        Ok((listener, entry, place)) => {
            opened.beside = Some((listener, entry));
            opened.console = Console::new(Some(place));
        }
        // Without it there is no console, and everything else.
        Err(error) => tracing::warn!(%error, "the console cannot listen"),
    }
    Ok(opened)
}

/// A listener for browsers: at the usual port, or at another if that is taken.
async fn beside(state: &Path) -> io::Result<(Listener, Entry, String)> {
    let usual = trunkline_transport::http::bind(CONSOLE).await;
    let listener = match usual {
        Ok(listener) => listener,
        Err(_) => trunkline_transport::http::bind("127.0.0.1:0").await?,
    };
    let place = format!("http://{}", listener.local_addr()?);
    // Without a token, only browsers with a link get in.
    let token = kept_token(state).unwrap_or_else(|_| random_name() + &random_name());
    let entry = Entry { tokens: vec![sha256(token.as_bytes())], door: Some(Door::default()) };
    Ok((listener.into(), entry, place))
}

/// Listens at a path without announcing it.
pub async fn open_at(path: &Path) -> io::Result<Opened> {
    let (listener, socket) = socket::bind(path).await?;
    let place = format!("unix:{}", path.display());
    Ok(Opened {
        listener: listener.into(),
        entry: Entry { tokens: Vec::new(), door: None },
        certificates: None,
        socket: Some(socket),
        console: Console::new(None),
        beside: None,
        files: None,
        place,
        token: None,
    })
}

async fn tcp(listen: &str, plan: &AdminPlan, state: &Path) -> io::Result<Opened> {
    let cannot = |error: io::Error| {
        let message = format!("The admin API cannot listen at `{listen}`: {error}.");
        io::Error::new(error.kind(), message)
    };
    let addresses: Vec<SocketAddr> =
        tokio::net::lookup_host(listen).await.map_err(cannot)?.collect();
    let is_local = addresses.iter().all(|it| it.ip().is_loopback());
    if !is_local && plan.mtls.is_none() {
        let message = format!(
            "The admin API would be open to other machines at `{listen}`; listen at \
             `127.0.0.1:PORT` or `unix:PATH`, or let in clients with a certificate alone: set \
             `gateway.admin.mtls`."
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let certificates = match &plan.mtls {
        Some((certificate, key, clients)) => {
            Some(Certificates::open(certificate, key, Some(clients))?)
        }
        None => None,
    };
    let token = match &plan.token {
        Some(token) if token.len() < SHORTEST => {
            let message = format!(
                "`gateway.admin.token` has fewer than {SHORTEST} characters; give a longer one, or \
                 none, and one is made up."
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        own => own.clone(),
    };
    // Commands on this machine find this token, whatever token others use.
    let kept = match (kept_token(state), &token) {
        (Ok(kept), _) => Some(kept),
        (Err(_), Some(_)) => None,
        (Err(error), None) => return Err(error),
    };
    let tokens: Vec<_> = token.iter().chain(&kept).map(|it| sha256(it.as_bytes())).collect();
    let listener = trunkline_transport::http::bind(&addresses[..]).await.map_err(cannot)?;
    let address = listener.local_addr()?;
    let scheme = if certificates.is_some() { "https" } else { "http" };
    let place = format!("{scheme}://{address}");
    note(state, &place);
    Ok(Opened {
        listener: match &certificates {
            Some(it) => it.tls().listen(listener),
            None => listener.into(),
        },
        entry: Entry {
            tokens,
            // A page that tricks a browser has no client certificate.
            door: is_local.then(Door::default),
        },
        certificates,
        socket: None,
        console: Console::new(Some(place.clone())),
        beside: None,
        files: None,
        place,
        token: token.or(kept),
    })
}

/// Writes the address of the admin API into the state folder, where commands find it.
fn note(state: &Path, place: &str) {
    let path = state.join("admin.place");
    // Written under another name and renamed, so that readers see it whole. Without it, `--admin` is needed.
    let new = state.join(format!(".admin.place-{}", &random_name()[..6]));
    let written = DirBuilder::new().recursive(true).mode(0o700).create(state).and_then(|()| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(place.as_bytes())?;
        fs::rename(&new, &path)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&new);
        tracing::warn!(%error, path = %path.display(), "cannot store the address of the admin API");
    }
}

/// The token in the state folder, generated if there is none.
fn kept_token(state: &Path) -> io::Result<String> {
    let path = state.join("admin.token");
    let cannot = |error: io::Error| {
        let message = format!(
            "The admin token cannot be kept in `{}`: {error}. Set `gateway.admin.token`.",
            path.display()
        );
        io::Error::new(error.kind(), message)
    };
    DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(cannot)?;
    let token = random_name() + &random_name();
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match created {
        Ok(mut file) => {
            file.write_all(token.as_bytes()).map_err(cannot)?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let kept = fs::read_to_string(&path).map_err(cannot)?.trim().to_owned();
            if kept.len() < SHORTEST {
                let message = format!(
                    "`{}` holds no token; remove the file, and one is made up.",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            Ok(kept)
        }
        Err(error) => Err(cannot(error)),
    }
}

/// Who may use the API. Reaching the Unix socket is proof enough.
#[derive(Debug)]
pub(super) struct Entry {
    /// The digests of the tokens; any one is enough.
    tokens: Vec<String>,
    /// The Host names it may be called by.
    door: Option<Door>,
}

impl Entry {
    /// As on a local TCP port if there is a token, as on the Unix socket if not.
    pub(super) fn in_memory(token: Option<&str>) -> Self {
        let tokens = token.iter().map(|it| sha256(it.as_bytes())).collect();
        Self { tokens, door: token.map(|_| Door::default()) }
    }

    /// Checks Host and Origin, against DNS rebinding from a browser.
    pub(super) fn admits(&self, head: &Parts) -> Result<(), Complaint> {
        match &self.door {
            Some(door) => door
                .check(&head.uri, &Fields::of(&head.headers))
                .map_err(|it| Complaint::new(it.status, it.error.message)),
            None => Ok(()),
        }
    }

    /// Checks the token.
    pub(super) fn knows(&self, head: &Parts) -> Result<(), Complaint> {
        if self.tokens.is_empty() {
            return Ok(());
        }
        let mut given = head.headers.get_all(AUTHORIZATION).iter();
        let header = given.next().filter(|_| given.next().is_none());
        let token = header.and_then(|it| it.to_str().ok()).and_then(|it| {
            let (scheme, token) = it.split_once(' ')?;
            scheme.eq_ignore_ascii_case("Bearer").then_some(token.trim())
        });
        match token {
            Some(token) if self.has(&sha256(token.as_bytes())) => Ok(()),
            given => {
                let message = match given {
                    Some(_) => "That is not the admin token.",
                    None => "The admin API wants a token.",
                };
                Err(Complaint::new(StatusCode::UNAUTHORIZED, message).advice(TOKEN))
            }
        }
    }
}

impl Entry {
    fn has(&self, digest: &str) -> bool {
        self.tokens.iter().fold(false, |found, it| is_same(digest, it) | found)
    }
}

/// Where the console listens if nothing is said.
const CONSOLE: &str = "127.0.0.1:7374";
/// The shortest token that is accepted, against guessing.
const SHORTEST: usize = 16;
const TOKEN: &str = "Send `Authorization: Bearer TOKEN` with the token of `gateway.admin.token`, \
                     or the one in `admin.token` of the state folder.";
