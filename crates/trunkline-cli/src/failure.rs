//! A failure → an exit code, and a message for the user or the program: stage, cause, what to do.

use std::fmt;
use std::io;

use serde_json::{Map, Value, json};
use trunkline::ErrorObject;
use trunkline::auth::vault::VaultError;
use trunkline::auth::{AuthError, Login};
use trunkline::client::{CallError, Client, ConnectCause, ConnectError, Exit, OpenError};
use trunkline_auth::url::shown;

use crate::words::{as_word, word};

/// The command line is invalid.
pub(crate) const USAGE: u8 = 2;
/// There is no connection, or it was lost.
pub(crate) const CONNECT: u8 = 3;
/// The server answered with an error.
pub(crate) const PEER: u8 = 4;
/// It took too long.
pub(crate) const TIMEOUT: u8 = 5;

/// Why the command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// The stage: `spawn`, `handshake`, `tools/call` …
    pub(crate) stage: String,
    pub(crate) cause: String,
    pub(crate) advice: Option<String>,
    /// The last lines of the server's stderr.
    pub(crate) stderr: Vec<String>,
    /// Whether the server disconnected during it.
    pub(crate) is_hung_up: bool,
    /// Whether something that we stored cannot be parsed.
    pub(crate) is_damaged: bool,
    /// Whether no credentials were available.
    is_denied: bool,
    /// The HTTP status that the server refused it with.
    status: Option<u16>,
    /// The error the server answered with.
    peer: Option<Box<ErrorObject>>,
    /// How the server ended.
    exit: Option<Exit>,
}

/// Why a stored login was not sufficient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Denial {
    /// The scopes to log in with, if those of this login were not sufficient.
    pub(crate) lacks: Option<String>,
    /// Whether a person has to log in again.
    pub(crate) has_ended: bool,
}

impl Failure {
    fn new(code: u8, stage: impl Into<String>, cause: impl Into<String>) -> Self {
        Self {
            code,
            stage: stage.into(),
            cause: cause.into(),
            advice: None,
            stderr: Vec::new(),
            is_hung_up: false,
            is_damaged: false,
            is_denied: false,
            status: None,
            peer: None,
            exit: None,
        }
    }

    pub(crate) fn usage(cause: impl Into<String>) -> Self {
        Self::new(USAGE, "usage", cause)
    }

    pub(crate) fn given_twice(key: &str) -> Self {
        Self::usage(format!("`{key}` is given twice.")).advice("Give it once.")
    }

    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// A failed conversation in which we are the server.
    pub(crate) fn serving(error: &anyhow::Error) -> Self {
        Self::new(CONNECT, "serve", format!("{error:#}"))
    }

    /// A server that cannot be started or reached, before there is a conversation with it.
    pub(crate) fn reach(stage: &str, cause: impl Into<String>) -> Self {
        Self::new(CONNECT, stage, cause)
    }

    /// A gateway that cannot be reached, or refuses.
    pub(crate) fn admin(code: u8, cause: impl Into<String>) -> Self {
        Self::new(code, "admin", cause)
    }

    /// The store that replicas share cannot be used.
    pub(crate) fn store(cause: impl Into<String>) -> Self {
        Self::new(CONNECT, "store", cause)
    }

    /// Any other failure: most likely the output cannot be written.
    pub(crate) fn other(error: &anyhow::Error) -> Self {
        let is_io = error.chain().any(|cause| cause.is::<io::Error>());
        Self::new(CONNECT, if is_io { "output" } else { "start" }, format!("{error:#}."))
    }

    /// A failed call.
    pub(crate) fn call(stage: &str, error: &CallError, client: &Client) -> Self {
        let is_hung_up = *error == CallError::Closed
            || (matches!(error, CallError::Unreachable(_)) && client.is_closed());
        let (code, advice) = match error {
            CallError::TimedOut => (TIMEOUT, Some("Give it more time with `--timeout SECONDS`.")),
            _ if is_hung_up => (CONNECT, Some("Run the command in a terminal to see why it ends.")),
            CallError::Unreachable(_) => {
                (CONNECT, Some("Check the address, and that the server is running."))
            }
            CallError::Lost(_) => {
                (CONNECT, Some("See whether it was carried out before you call again."))
            }
            // Not offered; a question that the host refused has another code.
            CallError::Refused(error) if error.code == -32600 => {
                (PEER, Some("See what it offers with `trunkline list -- COMMAND`."))
            }
            CallError::Peer(error) if error.code == -32602 => {
                (PEER, Some("See names and arguments with `trunkline list -- COMMAND`."))
            }
            CallError::Invalid(_) | CallError::Decode { .. } => {
                (PEER, Some("Tell the author of the server."))
            }
            _ => (PEER, None),
        };
        Self {
            advice: advice.map(str::to_owned),
            stderr: lines(client.stderr()),
            is_hung_up,
            is_denied: matches!(error, CallError::Credentials(_)),
            status: if let CallError::Http(it) = error { Some(it.status) } else { None },
            peer: if let CallError::Peer(it) = error { Some(it.clone().into()) } else { None },
            ..Self::new(code, stage, error.to_string())
        }
    }

    /// A failed login.
    pub(crate) fn login(error: AuthError) -> Self {
        let (code, advice) = match &error {
            AuthError::Unreachable(_) | AuthError::Vault(_) => (CONNECT, None),
            AuthError::Forbidden(_) => {
                (CONNECT, Some("Give `--allow-private-network` if that address is yours."))
            }
            AuthError::Unregistered(_) => (
                PEER,
                Some("Give `--client-id ID`, and `--client-secret env:NAME` if it has a secret."),
            ),
            AuthError::NotOffered(_) => (
                PEER,
                Some(
                    "It takes a token that its operator gives out: \
                     `--header 'Authorization: Bearer TOKEN'` with each call.",
                ),
            ),
            AuthError::Setup(_) => (USAGE, None),
            _ => (PEER, None),
        };
        let failure = Self::new(code, "login", error.to_string());
        Self { advice: advice.map(str::to_owned), ..failure }
    }

    /// Logins that cannot be read or stored.
    pub(crate) fn vault(error: &VaultError) -> Self {
        Self::new(CONNECT, "login", error.to_string())
    }

    /// A login that another process keeps locked.
    pub(crate) fn late(error: &AuthError) -> Self {
        Self::new(TIMEOUT, "login", error.to_string())
    }

    /// Whether waiting for another process timed out.
    pub(crate) fn is_late(&self) -> bool {
        self.code == TIMEOUT
    }

    /// There is no login for this server.
    pub(crate) fn logged_out(url: &str) -> Self {
        Self::new(PEER, "whoami", format!("Nobody is logged in to `{}`.", shown(url)))
            .advice(format!("`trunkline login {}`", as_word(url)))
    }

    /// Says what to do if the server at this URL requires a login, another one, or more scopes.
    /// `denial` is why the stored login was not sufficient, if there is one.
    pub(crate) fn explain(&mut self, url: &str, denial: Option<&Denial>, has_header: bool) {
        let login = format!("`trunkline login {}`", as_word(url));
        self.hide(url);
        let (whole, url) = (url, shown(url));
        match (self.status, denial) {
            (Some(401), None) if has_header => {
                self.advice =
                    Some(format!("Check the `Authorization` header, or leave it out and {login}."));
            }
            (Some(401), None) => {
                self.cause = format!("`{url}` wants a login, and there is none.");
                let token = "--header 'Authorization: Bearer TOKEN'";
                self.advice = Some(format!("{login}, or `{token}` if you were given one."));
            }
            (None, Some(denial)) if self.is_denied => {
                if let Some(scopes) = &denial.lacks {
                    self.cause = format!("The login to `{url}` lacks a scope that this takes.");
                    self.advice = Some(format!(
                        "`trunkline login --scope {} {}`",
                        word(scopes),
                        as_word(whole)
                    ));
                } else if denial.has_ended {
                    self.cause = format!("The login to `{url}` has ended.");
                    self.advice = Some(login);
                }
            }
            _ => {}
        }
    }

    /// Removes the secret parts of a server's URL.
    pub(crate) fn hide(&mut self, url: &str) {
        let safe = shown(url);
        if safe != url {
            self.cause = self.cause.replace(url, &safe);
            self.advice = self.advice.take().map(|it| it.replace(url, &safe));
        }
    }

    /// A login that succeeded, but whose tokens the server refuses.
    pub(crate) fn unwelcome(url: &str, login: &Login) -> Self {
        let bound = if login.is_bound { ", which is bound to a key (DPoP)" } else { "" };
        let cause = format!(
            "The login at `{}` worked, but `{}` refuses its token{bound}. It was given back, and \
             nothing of it is kept.",
            shown(&login.issuer),
            shown(url)
        );
        let advice = match login.is_bound {
            true => format!("Log in without a key: `trunkline login --no-dpop {}`", as_word(url)),
            false => "Tell the operator of the server; its log may say why.".to_owned(),
        };
        Self::new(PEER, "login", cause).advice(advice)
    }

    /// Adds how the server ended.
    pub(crate) fn ended(&mut self, exit: Exit) {
        self.cause = format!("{} The server {exit}.", self.cause);
        self.exit = Some(exit);
    }

    /// The failure for programs.
    pub(crate) fn to_json(&self) -> Value {
        let message = self.peer.as_ref().map_or(&self.cause, |it| &it.message);
        let mut error = Map::new();
        error.insert("stage".to_owned(), self.stage.clone().into());
        error.insert("message".to_owned(), message.clone().into());
        if let Some(peer) = &self.peer {
            error.insert("code".to_owned(), peer.code.into());
            if let Some(data) = peer.data.as_ref().and_then(|it| it.to().ok()) {
                error.insert("data".to_owned(), data);
            }
        }
        if let Some(exit) = self.exit {
            let exit = match exit {
                Exit::Code(code) => json!({ "code": code }),
                Exit::Signal(signal) => json!({ "signal": signal }),
            };
            error.insert("exit".to_owned(), exit);
        }
        json!({ "error": error })
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let cause = match &error.cause {
            ConnectCause::Handshake(cause) => match (&error.command, error.exit) {
                (Some(command), Some(exit)) => format!("{cause} `{command}` {exit}."),
                (Some(command), None) => format!("{cause} It was started as `{command}`."),
                _ => match &error.url {
                    Some(url) => format!("{cause} This was `{url}`."),
                    None => cause.to_string(),
                },
            },
            ConnectCause::Spawn(cause) => cause.to_string(),
            cause => format!("{cause:?}"),
        };
        let code = if error.is_timeout() { TIMEOUT } else { CONNECT };
        let peer = match &error.cause {
            ConnectCause::Handshake(OpenError::Refused(it)) => Some(it.clone().into()),
            _ => None,
        };
        Self {
            advice: error.advice().map(str::to_owned),
            peer,
            is_denied: matches!(&error.cause, ConnectCause::Handshake(OpenError::Credentials(_))),
            status: match &error.cause {
                ConnectCause::Handshake(OpenError::Http(it)) => Some(it.status),
                _ => None,
            },
            exit: error.exit,
            stderr: lines(error.stderr.clone()),
            ..Self::new(code, error.stage(), cause)
        }
    }
}

fn lines(mut stderr: Vec<String>) -> Vec<String> {
    stderr.retain(|line| !line.trim().is_empty());
    stderr
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.cause)
    }
}

impl std::error::Error for Failure {}
