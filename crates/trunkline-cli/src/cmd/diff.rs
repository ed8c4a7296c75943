//! `trunkline diff A B`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use trunkline_recording::compare::compare;

use crate::output::{Screen, one_line};
use crate::recordings::{self, Compared};

/// Compares two recordings call by call and definition by definition, and exits with 1 if they differ. Ids, times,
/// tokens, states and cursors do not count.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One recording.
    a: PathBuf,
    /// The other; `-` is stdin.
    b: PathBuf,
    #[command(flatten)]
    pub(crate) compared: Compared,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let ignore = args.compared.ignore()?;
    let (a, b) = (recordings::read(&args.a)?, recordings::read(&args.b)?);
    recordings::warn_of_gaps(screen, &args.a, &a);
    recordings::warn_of_gaps(screen, &args.b, &b);
    let names = [&args.a, &args.b].map(|it| one_line(&it.display().to_string()));
    args.compared.show(screen, [&names[0], &names[1]], &compare(&a, &b, &ignore))
}
