//! One binary for MCP: a command line → a conversation with a server, an output and an exit code.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod cmd;
mod demo;
mod failure;
mod output;
mod target;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::output::{ColorWhen, Screen};

/// Talks to any MCP server over stdio, in every revision of the protocol.
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
    /// Serves a built-in server that shows every feature, over stdin and stdout.
    Demo,
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
    /// Asks whether a server is there.
    Ping(cmd::ping::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let screen = Screen::new(cli.color);
    // The demo has a runtime of its own.
    if let Some(Command::Demo) = cli.command {
        return finish(&screen, demo::run().map(|()| ExitCode::SUCCESS));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return finish(&screen, Err(error.into())),
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = run(cli.command, &screen) => outcome,
            // Whatever was started is killed on the way out.
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
        }
    });
    // A thread may still wait for someone to type; nobody needs what they type now.
    runtime.shutdown_background();
    finish(&screen, outcome)
}

async fn run(command: Option<Command>, screen: &Screen) -> anyhow::Result<ExitCode> {
    match command {
        None => cmd::welcome::run(screen).await,
        Some(Command::Demo) => demo::run().map(|()| ExitCode::SUCCESS),
        Some(Command::List(args)) => cmd::list::run(args, screen).await,
        Some(Command::Call(args)) => cmd::call::run(args, screen).await,
        Some(Command::Read(args)) => cmd::read::run(args, screen).await,
        Some(Command::Prompt(args)) => cmd::prompt::run(args, screen).await,
        Some(Command::Complete(args)) => cmd::complete::run(args, screen).await,
        Some(Command::Ping(args)) => cmd::ping::run(args, screen).await,
    }
}

fn finish(screen: &Screen, outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| match error.downcast::<Failure>() {
        Ok(failure) => {
            screen.failure(&failure);
            ExitCode::from(failure.code)
        }
        // Whoever reads our output has seen enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            screen.failure(&Failure::usage(format!("{error:#}")));
            ExitCode::from(failure::USAGE)
        }
    })
}

const EXIT_CODES: &str = "\
Exit codes:
  0  it worked
  1  the tool reported an error
  2  the command line makes no sense
  3  there is no connection: the server did not start, refused the handshake or hung up
  4  the server answered with an error, or does not offer what was asked for
  5  it took too long

Try `trunkline list -- trunkline demo`.";
