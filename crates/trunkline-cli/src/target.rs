//! The options that name a server → a connection to it.

use std::ffi::OsString;
use std::time::Duration;

use clap::ValueEnum;
use trunkline::client::{Client, Command, Framing};
use trunkline::model::LogLevel;
use trunkline::{Limits, Revision};

use crate::answer::{Answering, Host};
use crate::failure::Failure;
use crate::output::Screen;

/// Which server to talk to, and how.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// Speak only this revision, such as 2025-11-25.
    #[arg(long, value_name = "REV")]
    protocol: Option<Revision>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// Give up after so many seconds without news.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// How messages are separated.
    #[arg(long, value_enum, default_value_t)]
    framing: FramingChoice,
    /// Set a variable for the server, or hand on one of ours by its name alone.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    env: Vec<String>,
    /// Show the server's log from this level on.
    #[arg(long, value_name = "LEVEL")]
    log: Option<LogLevel>,
    /// Show what the server writes to stderr as it comes.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    answering: Answering,
    /// The server: a program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
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
    /// Starts the server and shakes hands with it.
    pub(crate) async fn connect(&self, screen: &Screen) -> Result<Client, Failure> {
        let (program, args) = self.command.split_first().expect("clap requires a command");
        let mut command = Command::new(program).args(args);
        for variable in &self.env {
            command = match variable.split_once('=') {
                Some((name, value)) => command.env(name, value),
                None => command.inherit(variable),
            };
        }
        if self.verbose {
            let screen = screen.clone();
            command = command.on_stderr(move |line| screen.aside("stderr", line));
        }
        let framing = match self.framing {
            FramingChoice::Newline => Framing::Newline,
            FramingChoice::ContentLength => Framing::ContentLength,
        };
        let host = Host::new(&self.answering, screen, self.log.is_some())?;
        let mut builder = Client::builder("trunkline", env!("CARGO_PKG_VERSION"))
            .limits(self.limits())
            .framing(framing)
            .host(host);
        if let Some(revision) = self.protocol {
            builder = builder.protocol(revision);
        }
        if let Some(level) = self.log {
            builder = builder.log_level(level);
        }
        Ok(builder.connect(command).await?)
    }

    fn limits(&self) -> Limits {
        let limits = Limits::default();
        match self.timeout {
            Some(timeout) => limits.call_deadline(timeout).init_deadline(timeout),
            None => limits,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
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

/// `KEY=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}
