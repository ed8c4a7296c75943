//! The options that name a server → a connection to it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use trunkline::client::{Client, Command, Framing};
use trunkline::model::LogLevel;
use trunkline::{Limits, Revision};
use trunkline_transport::http::client::HttpTarget;

use crate::answer::{Answering, Host};
use crate::failure::Failure;
use crate::logins::{Logins, Profile, StoredLogin, certificate};
use crate::output::Screen;
use crate::words::is_url;

/// Which server to talk to, and how.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// Speak only this revision, such as 2025-11-25.
    #[arg(long, value_name = "REV")]
    protocol: Option<Revision>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// Give up after this many seconds without a message.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// How messages are separated.
    #[arg(long, value_enum, default_value_t)]
    framing: FramingChoice,
    #[command(flatten)]
    given: Given,
    /// Show the server's log from this level on.
    #[arg(long, value_name = "LEVEL")]
    log: Option<LogLevel>,
    /// Show what the server writes to stderr as it comes.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    answering: Answering,
    /// The server: a program and its arguments, or a URL, which needs no `--` before it.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a server is given that is reached or started from the command line.
#[derive(clap::Args)]
pub(crate) struct Given {
    /// Send a header with every request to a server at a URL, such as 'Authorization: Bearer …'.
    #[arg(long, value_name = "'NAME: VALUE'", value_parser = header)]
    header: Vec<(String, String)>,
    /// Trust a server at a URL whose certificate was issued by one in this PEM file, too.
    #[arg(long, value_name = "FILE")]
    cacert: Vec<PathBuf>,
    /// Set a variable for the server, or hand on one of ours by its name alone.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    env: Vec<String>,
}

impl Given {
    /// The server at `url`.
    pub(crate) fn http_target(&self, url: &str) -> Result<HttpTarget, Failure> {
        let mut target = HttpTarget::new(url);
        for (name, value) in &self.header {
            target = target.header(name, value);
        }
        for file in &self.cacert {
            target = target.root_certificate(certificate(file)?);
        }
        Ok(target)
    }

    /// A program and its arguments.
    pub(crate) fn command(&self, words: &[OsString]) -> Command {
        let (program, args) = words.split_first().expect("clap requires a command");
        self.env.iter().fold(Command::new(program).args(args), |command, variable| {
            match variable.split_once('=') {
                Some((name, value)) => command.env(name, value),
                None => command.inherit(variable),
            }
        })
    }

    /// The values of variables and headers, which may be secrets.
    pub(crate) fn values(&self) -> impl Iterator<Item = String> {
        let variables = self.env.iter().filter_map(|it| match it.split_once('=') {
            Some((_, value)) => Some(value.to_owned()),
            None => std::env::var(it).ok(),
        });
        variables.chain(self.header.iter().map(|(_, value)| value.clone()))
    }

    fn is_authorized(&self) -> bool {
        self.header.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum FramingChoice {
    /// One message a line, as MCP has it.
    #[default]
    Newline,
    /// A `Content-Length` header before each message.
    ContentLength,
}

impl Target {
    /// Starts or reaches the server and performs the handshake, with the stored login if there is
    /// one.
    pub(crate) async fn connect(
        &self,
        screen: &Screen,
    ) -> Result<(Client, Option<Arc<StoredLogin>>), Failure> {
        let host = Host::new(&self.answering, screen, self.log.is_some())?;
        let roots = host.roots();
        let watched = |client: Client| {
            if let Some(roots) = &roots {
                client.watch_roots(roots, LOOK_AT_ROOTS).detach();
            }
            client
        };
        let mut builder = Client::builder("trunkline", env!("CARGO_PKG_VERSION"))
            .limits(self.limits())
            .responder(host);
        if let Some(revision) = self.protocol {
            builder = builder.protocol(revision);
        }
        if let Some(level) = self.log {
            builder = builder.log_level(level);
        }
        if let Some(url) = self.url() {
            for (name, value) in &self.given.header {
                builder = builder.header(name, value);
            }
            let login = self.login(url).await?;
            let trusted = login.iter().flat_map(|(profile, _)| &profile.cacert);
            for file in trusted.chain(self.given.cacert.iter().filter(|_| login.is_none())) {
                builder = builder.root_certificate(&certificate(file)?);
            }
            let stored = login.map(|(_, stored)| stored);
            if let Some(stored) = &stored {
                builder = builder.credentials(Arc::clone(stored) as _);
            }
            return match builder.connect_http(url).await {
                Ok(client) => Ok((watched(client), stored)),
                Err(error) => {
                    let mut failure = Failure::from(error);
                    failure.hide(url);
                    self.explain(&mut failure, stored.as_deref());
                    Err(failure)
                }
            };
        }
        let Given { header, cacert, .. } = &self.given;
        let given = [("--header", header.is_empty()), ("--cacert", cacert.is_empty())];
        if let Some((option, _)) = given.iter().find(|(_, is_empty)| !is_empty) {
            let why = format!("`{option}` is for servers at a URL, and this is a command.");
            return Err(
                Failure::usage(why).advice("Set variables of the server with `--env NAME=VALUE`.")
            );
        }
        let client = builder.framing(self.framing()).connect(self.command(screen)).await?;
        Ok((watched(client), None))
    }

    /// Says what to do about a server that requires a login.
    pub(crate) fn explain(&self, failure: &mut Failure, stored: Option<&StoredLogin>) {
        if let Some(url) = self.url() {
            failure.explain(
                url,
                stored.map(StoredLogin::denial).as_ref(),
                self.given.is_authorized(),
            );
        }
    }

    /// The stored login for the server, unless the command line has its own credentials.
    async fn login(&self, url: &str) -> Result<Option<(Profile, Arc<StoredLogin>)>, Failure> {
        if self.given.is_authorized() {
            return Ok(None);
        }
        // Without a folder for logins there are none.
        let Ok(logins) = Logins::open() else { return Ok(None) };
        let Some(mut profile) = logins.find(url).await? else { return Ok(None) };
        profile.cacert.extend(self.given.cacert.iter().cloned());
        let stored = StoredLogin::new(logins.way_in(&profile).await?);
        Ok(Some((profile, Arc::new(stored))))
    }

    /// The server's URL, if it is no program.
    fn url(&self) -> Option<&str> {
        url(&self.command)
    }

    fn command(&self, screen: &Screen) -> Command {
        let command = self.given.command(&self.command);
        if self.verbose { with_stderr(command, screen) } else { command }
    }

    fn framing(&self) -> Framing {
        match self.framing {
            FramingChoice::Newline => Framing::Newline,
            FramingChoice::ContentLength => Framing::ContentLength,
        }
    }

    fn limits(&self) -> Limits {
        let limits = Limits::default();
        match self.timeout {
            Some(timeout) => limits.call_deadline(timeout).init_deadline(timeout),
            None => limits,
        }
    }
}

/// The URL of a server, if these words are no program and its arguments.
pub(crate) fn url(words: &[OsString]) -> Option<&str> {
    match words {
        [only] => only.to_str().filter(|it| is_url(it)),
        _ => None,
    }
}

/// Shows what a server writes to stderr (`--verbose`).
pub(crate) fn with_stderr(command: Command, screen: &Screen) -> Command {
    let screen = screen.clone();
    command.on_stderr(move |line| screen.aside("stderr", line))
}

/// A command line with a URL in the place of a command: without a `--`, the last word that is a URL
/// is the server.
pub(crate) fn with_url(mut line: Vec<OsString>) -> Vec<OsString> {
    // These commands name it themselves.
    let is_about_servers = line.get(1).is_some_and(|it| OTHERS.iter().all(|verb| it != verb));
    if !is_about_servers || line.iter().any(|word| word == "--") {
        return line;
    }
    if let Some(at) = line.iter().rposition(|word| word.to_str().is_some_and(is_url)) {
        let url = line.remove(at);
        line.extend(["--".into(), url]);
    }
    line
}

/// How often the folders of `--root` are checked.
const LOOK_AT_ROOTS: Duration = Duration::from_secs(1);

/// Commands that are not about one server, or name it themselves.
const OTHERS: &[&str] = &[
    "approve", "check", "connect", "demo", "diff", "doctor", "import", "login", "logout", "logs",
    "ps", "reload", "retry", "schema", "serve", "stats", "tour", "whoami",
];

/// `Name: value`.
fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write it as 'Name: value'".to_owned()),
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("give a number of seconds above zero".to_owned()),
    }
}

/// `NAME` or `NAME=VALUE`.
fn variable(text: &str) -> Result<String, String> {
    match text.split('=').next() {
        None | Some("") => Err("write it as NAME=VALUE or NAME".to_owned()),
        Some(_) => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let line = line.split(' ').map(Into::into).collect();
        let found: Vec<_> =
            with_url(line).into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn a_url_is_a_server_without_dashes() {
        check("x list http://a/mcp", "x list -- http://a/mcp");
        check("x call sum a=1 HTTPS://a --json", "x call sum a=1 --json -- HTTPS://a");
        check("x read http://page http://a", "x read http://page -- http://a");
        check("x read http://page -- srv", "x read http://page -- srv");
        check("x call get url=http://page -- srv", "x call get url=http://page -- srv");
        check("x demo --http http://a", "x demo --http http://a");
        check("x login http://a --port 1", "x login http://a --port 1");
        check("x whoami http://a --json", "x whoami http://a --json");
        check("x list srv", "x list srv");
    }
}
