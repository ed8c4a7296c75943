//! `trunkline replay FILE -- COMMAND | URL` and `trunkline replay FILE --as-server`

mod as_server;
mod stage;
mod to_command;
mod to_url;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use trunkline_recording::as_client::ClientPlayer;
use trunkline_recording::compare::compare;
use trunkline_recording::recording::{Conversation, Recording};
use trunkline_transport::child::Command;
use trunkline_transport::http::client::Direct;

use crate::failure::Failure;
use crate::output::Screen;
use crate::recordings::{self, Compared};
use crate::target::{self, Given, seconds};

/// Says again to a server what the client said in a recording, and compares the answers; or plays the server of the
/// recording for another client.
///
/// A request waits for the answers that came before it. The server's questions are answered as recorded. Exits with 1
/// if anything differs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The recording.
    file: PathBuf,
    /// Play the server, over stdin and stdout or where `--listen` says.
    #[arg(long, conflicts_with = "command")]
    as_server: bool,
    /// Play the server over HTTP at this address.
    #[arg(long, value_name = "ADDR", requires = "as_server")]
    listen: Option<SocketAddr>,
    /// Give up after this many seconds without a message.
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "60")]
    timeout: Duration,
    #[command(flatten)]
    given: Given,
    /// Show what the server writes to stderr as it comes.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    pub(crate) compared: Compared,
    /// The server: a program and its arguments, or a URL, which needs no `--` before it.
    #[arg(last = true, required_unless_present = "as_server", value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    fn direct(&self, url: &str) -> Result<Direct, Failure> {
        let target = self.given.http_target(url)?;
        Direct::new(&target, &Default::default()).map_err(Failure::usage)
    }

    fn command(&self, screen: &Screen) -> Command {
        let command = self.given.command(&self.command);
        if self.verbose { target::with_stderr(command, screen) } else { command }
    }
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let ignore = args.compared.ignore()?;
    let recording = recordings::read(&args.file)?;
    recordings::warn_of_gaps(screen, &args.file, &recording);
    if args.as_server {
        return match args.listen {
            Some(address) => stage::run(&recording, address, screen).await,
            None => as_server::run(&recording, screen).await,
        };
    }
    let mut live = Recording::default();
    for conversation in &recording.conversations {
        live.conversations.push(play(&args, conversation, screen).await?);
    }
    let found = compare(&recording, &live, &ignore);
    args.compared.show(screen, ["the recording", "the replay"], &found)
}

/// Plays one conversation, and returns what was said this time.
async fn play(args: &Args, recorded: &Conversation, screen: &Screen) -> Result<Conversation> {
    let url = target::url(&args.command);
    let mut player = ClientPlayer::new(recorded, url.is_some());
    if player.masked() > 0 {
        let count = player.masked();
        screen.aside("note", &format!("{count} messages hold a masked secret, sent as `***`."));
    }
    let ended = match url {
        Some(url) => to_url::play(&mut player, args.direct(url)?, args.timeout).await?,
        None => to_command::play(&mut player, args.command(screen), args.timeout).await?,
    };
    if let Some(why) = ended {
        let open = player.unanswered().len();
        screen.aside("note", &format!("{why} {open} requests have no answer."));
    }
    Ok(player.into_live())
}

/// How long to wait before a task is asked for again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to wait for notifications that the recording has and nothing else waits for.
const LAST_NEWS: Duration = Duration::from_secs(1);
