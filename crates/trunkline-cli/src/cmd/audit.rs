//! `trunkline audit verify FILE…`

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;
use trunkline_gateway::policy::audit::chain::{Broken, Found, Verifier};
use trunkline_gateway::policy::audit::read_head;

use crate::output::{Screen, Tone, one_line};

/// Looks at what a gateway has noted of calls.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Checks that nothing in an audit was changed, taken out, put in or moved.
    #[command(after_help = "\
The exit code is 0 if the chain holds, 1 if it is broken, and 3 if a file cannot be read.

Whoever can write the file can also compute a new chain: keep the last hash elsewhere, and check
with `--last HASH` that it is still in there. Files that were rotated are given in their order.")]
    Verify(Verify),
}

#[derive(clap::Args)]
struct Verify {
    /// The audit; if it was rotated, its files from the oldest on.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// A hash that was noted elsewhere, and that a line must have.
    #[arg(long, value_name = "HASH")]
    last: Option<String>,
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn is_json(&self) -> bool {
        let Command::Verify(args) = &self.command;
        args.json
    }
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let Command::Verify(args) = args.command;
    let verified = verify(&args)?;
    if args.json {
        screen.json(&match &verified {
            Ok(found) => json!({ "ok": true, "found": found }),
            Err((file, broken)) => json!({ "ok": false, "file": file, "broken": broken }),
        })?;
    } else {
        match &verified {
            Ok(found) => screen.print(&good(found))?,
            Err((file, broken)) => {
                let file = one_line(&file.display().to_string());
                let label = screen.err_tone(Tone::Bad, "error:");
                screen.say(&format!("{label} `{file}`: {broken}\n"));
            }
        }
    }
    Ok(if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verify(args: &Verify) -> Result<Result<Found, (PathBuf, Broken)>> {
    let mut verifier = Verifier::default();
    if let Some(hash) = &args.last {
        verifier = verifier.expects(hash);
    }
    let newest = args.files.last().map(PathBuf::as_path).unwrap_or(Path::new(""));
    // Before the file itself: a running gateway appends to it.
    let head = read_head(newest);
    for path in &args.files {
        verifier.next_file();
        if let Err(broken) = read(path, &mut verifier)? {
            return Ok(Err((path.clone(), broken)));
        }
    }
    let found = verifier.finish();
    let found = found.and_then(|found| match head {
        Some(head) if head.seq > found.last.seq && found.lines > 0 => Err(Broken {
            line: found.lines,
            why: format!(
                "Lines are missing at the end: this is number {}, and the gateway has written {}.",
                found.last.seq, head.seq
            ),
        }),
        Some(head) if head.seq == found.last.seq && head.hash != found.last.hash => Err(Broken {
            line: found.lines,
            why: "The last line is another than the gateway has written.".to_owned(),
        }),
        _ => Ok(found),
    });
    Ok(found.map_err(|broken| (newest.to_owned(), broken)))
}

fn read(path: &Path, verifier: &mut Verifier) -> Result<Result<(), Broken>> {
    let why = || format!("Cannot read `{}`", path.display());
    let mut file = BufReader::new(File::open(path).with_context(why)?);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line).with_context(why)? > 0 {
        let whole = line.strip_suffix(b"\n");
        if let Err(broken) = verifier.line(whole.unwrap_or(&line), whole.is_some()) {
            return Ok(Err(broken));
        }
        line.clear();
    }
    Ok(Ok(()))
}

fn good(found: &Found) -> String {
    if found.lines == 0 {
        return "There is no line of a chain here.".to_owned();
    }
    let mut text = format!(
        "The chain holds: {} lines, from number {} to {}.\nThe last hash is {}",
        found.lines, found.first, found.last.seq, found.last.hash
    );
    let mut note = |is_so: bool, told: String| {
        if is_so {
            text.push('\n');
            text.push_str(&told);
        }
    };
    note(
        found.first != 1,
        format!("It goes on with another file, which ends with number {}.", found.first - 1),
    );
    note(
        found.unprotected > 0,
        format!("{} lines before it are of an older version and not protected.", found.unprotected),
    );
    note(found.lost > 0, format!("{} calls were not noted, as the file says.", found.lost));
    note(found.recovered > 0, format!("{} lines were cut off by a crash.", found.recovered));
    note(found.is_cut_off, "The last line is cut off, as by a crash.".to_owned());
    text
}
