//! One binary for MCP: a command line → a conversation with a server, an output and an exit code.

#![forbid(unsafe_code)]

mod admin;
mod answer;
mod arguments;
mod catalog;
mod clients;
mod cmd;
mod demo;
mod failure;
mod interrupt;
mod json;
mod log;
mod logins;
mod loopback;
mod output;
mod ready;
mod recordings;
mod secret;
mod state;
mod target;
mod usage;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::output::{ColorWhen, Screen};

/// Talks to any MCP server over stdio and HTTP, in every revision of the protocol.
#[derive(Parser)]
#[command(name = "trunkline", version, after_help = EXIT_CODES)]
struct Cli {
    /// When to use colours.
    #[arg(long, value_enum, default_value_t, global = true)]
    color: ColorWhen,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the gateway of a catalog (the default command).
    Serve(cmd::serve::Args),
    /// Shows what this program can do, on its own demo server.
    Tour,
    /// Serves a built-in server that shows every feature, over stdin and stdout or over HTTP.
    Demo(demo::Args),
    /// Lists what a server offers.
    List(cmd::list::Args),
    /// Calls a tool.
    Call(cmd::call::Args),
    /// Reads a resource.
    Read(cmd::read::Args),
    /// Gets a prompt, filled in.
    Prompt(cmd::prompt::Args),
    /// Completes an argument of a prompt or a resource template.
    Complete(cmd::complete::Args),
    /// Checks whether a server answers.
    Ping(cmd::ping::Args),
    /// Records what a client and a server say to each other, between the two of them.
    Record(Box<cmd::record::Args>),
    /// Compares two recordings.
    Diff(cmd::diff::Args),
    /// Says a recording's requests again to a server and compares the answers, or plays its server.
    Replay(Box<cmd::replay::Args>),
    /// Logs in to a server at a URL, for later calls.
    Login(Box<cmd::login::Args>),
    /// Revokes a login and forgets it.
    Logout(cmd::logout::Args),
    /// Shows who is logged in where.
    Whoami(cmd::whoami::Args),
    /// Shows what a gateway runs.
    Ps(cmd::ps::Args),
    /// Prints a link to the console of a gateway, for a browser.
    Console(cmd::console::Args),
    /// Shows the logs of a gateway and its servers.
    Logs(cmd::logs::Args),
    /// Shows call counts and latencies of a gateway.
    Stats(cmd::stats::Args),
    /// Reloads the catalog of a gateway.
    Reload(cmd::reload::Args),
    /// Starts a server again that a gateway gave up on.
    Retry(cmd::retry::Args),
    /// Revokes the upstream logins of a gateway's principals and forgets them.
    Disconnect(cmd::disconnect::Args),
    /// Approves tools whose definitions have changed.
    Approve(cmd::approve::Args),
    /// Verifies a gateway's audit log of calls.
    Audit(cmd::audit::Args),
    /// Checks a catalog of servers.
    Check(cmd::check::Args),
    /// Prints the JSON Schema of catalogs.
    Schema(cmd::schema::Args),
    /// Imports servers from the settings of other programs.
    Import(cmd::import::Args),
    /// Adds the gateway to the settings of another program, or removes it.
    Connect(cmd::connect::Args),
    /// Checks everything that a call depends on, and says what is wrong.
    Doctor(cmd::doctor::Args),
}

impl Command {
    /// Whether the output is for a program.
    fn is_json(&self) -> bool {
        match self {
            Self::Demo(_) | Self::Serve(_) | Self::Tour | Self::Record(_) => false,
            Self::Diff(args) => args.compared.json,
            Self::Replay(args) => args.compared.json,
            Self::List(args) => args.target.json,
            Self::Call(args) => args.target.json,
            Self::Read(args) => args.target.json,
            Self::Prompt(args) => args.target.json,
            Self::Complete(args) => args.target.json,
            Self::Ping(args) => args.target.json,
            Self::Login(args) => args.json,
            Self::Logout(args) => args.json,
            Self::Whoami(args) => args.json,
            Self::Ps(args) => args.gateway.json,
            Self::Console(args) => args.gateway.json,
            Self::Logs(args) => args.gateway.json,
            Self::Stats(args) => args.gateway.json,
            Self::Reload(args) => args.gateway.json,
            Self::Retry(args) => args.gateway.json,
            Self::Disconnect(args) => args.gateway.json,
            Self::Approve(args) => args.gateway.json,
            Self::Audit(args) => args.is_json(),
            Self::Check(args) => args.json,
            Self::Schema(_) => true,
            Self::Import(args) => args.json,
            Self::Connect(_) => false,
            Self::Doctor(args) => args.json,
        }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(target::with_url(std::env::args_os().collect())) {
        Ok(cli) => cli,
        Err(error) => return usage::explain(&error),
    };
    let screen = Screen::new(cli.color);
    let is_json = cli.command.as_ref().is_some_and(Command::is_json);
    let serve = |args| {
        cmd::serve::run(args).map(|()| ExitCode::SUCCESS).map_err(|error| {
            match error.is::<Failure>() {
                true => error,
                false => Failure::serving(&error).into(),
            }
        })
    };
    let outcome = match cli.command {
        // The gateway has its own runtime, and shuts down gracefully.
        None => serve(cmd::serve::Args::default()),
        Some(Command::Serve(args)) => serve(args),
        // The demo has its own runtime, and starts no processes.
        Some(Command::Demo(args)) => demo::run(args)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| Failure::serving(&error).into()),
        // A tap hands its signals on to the server.
        Some(Command::Record(args)) => cmd::record::run(*args),
        command => {
            let screen = screen.clone();
            interrupt::until_signal(move || async move { run(command, &screen).await })
        }
    };
    outcome.unwrap_or_else(|error| fail(&screen, is_json, error))
}

async fn run(command: Option<Command>, screen: &Screen) -> anyhow::Result<ExitCode> {
    match command {
        Some(Command::Tour) => cmd::welcome::run(screen).await,
        None | Some(Command::Demo(_) | Command::Record(_) | Command::Serve(_)) => {
            unreachable!("it has been served already")
        }
        Some(Command::List(args)) => cmd::list::run(args, screen).await,
        Some(Command::Call(args)) => cmd::call::run(args, screen).await,
        Some(Command::Read(args)) => cmd::read::run(args, screen).await,
        Some(Command::Prompt(args)) => cmd::prompt::run(args, screen).await,
        Some(Command::Complete(args)) => cmd::complete::run(args, screen).await,
        Some(Command::Ping(args)) => cmd::ping::run(args, screen).await,
        Some(Command::Diff(args)) => cmd::diff::run(args, screen).await,
        Some(Command::Replay(args)) => cmd::replay::run(*args, screen).await,
        Some(Command::Login(args)) => cmd::login::run(*args, screen).await,
        Some(Command::Logout(args)) => cmd::logout::run(args, screen).await,
        Some(Command::Whoami(args)) => cmd::whoami::run(args, screen).await,
        Some(Command::Ps(args)) => cmd::ps::run(args, screen).await,
        Some(Command::Console(args)) => cmd::console::run(args, screen).await,
        Some(Command::Logs(args)) => cmd::logs::run(args, screen).await,
        Some(Command::Stats(args)) => cmd::stats::run(args, screen).await,
        Some(Command::Reload(args)) => cmd::reload::run(args, screen).await,
        Some(Command::Retry(args)) => cmd::retry::run(args, screen).await,
        Some(Command::Disconnect(args)) => cmd::disconnect::run(args, screen).await,
        Some(Command::Approve(args)) => cmd::approve::run(args, screen).await,
        Some(Command::Audit(args)) => cmd::audit::run(args, screen).await,
        Some(Command::Check(args)) => cmd::check::run(args, screen).await,
        Some(Command::Schema(args)) => cmd::schema::run(args, screen).await,
        Some(Command::Import(args)) => cmd::import::run(args, screen).await,
        Some(Command::Connect(args)) => cmd::connect::run(args, screen).await,
        Some(Command::Doctor(args)) => cmd::doctor::run(args, screen).await,
    }
}

/// Reports a failure.
fn fail(screen: &Screen, is_json: bool, error: anyhow::Error) -> ExitCode {
    // The reader of our output has closed the pipe.
    if output::is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    let failure = error.downcast::<Failure>().unwrap_or_else(|error| Failure::other(&error));
    screen.failure(&failure);
    if is_json {
        // If stdout cannot be written, stderr has said so.
        let _ = screen.json_failure(&failure);
    }
    ExitCode::from(failure.code)
}

const EXIT_CODES: &str = "\
Exit codes:
  0  it worked
  1  the tool reported an error, or two recordings differ
  2  the command line makes no sense
  3  there is no connection: the server did not start, refused the handshake or hung up;
     or the output cannot be written
  4  the server answered with an error, or does not offer what was asked for; or nobody is
     logged in, or may
  5  it took too long
  128 and more: a signal, whose number is added to 128

Try `trunkline list -- trunkline demo`.";
