//! Recordings as files, and what differs between them as text.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use trunkline_recording::compare::{Comparison, Difference, Ignore};
use trunkline_recording::recording::Recording;
use trunkline_recording::tree::Tree;

use crate::failure::Failure;
use crate::output::{Screen, Tone, one_line};

/// How recordings are compared, and how that is shown.
#[derive(clap::Args)]
pub(crate) struct Compared {
    /// Ignore differences at this path and below it: `/result/content/*/text`, `/**/duration`, or with what it is
    /// about, `tool sum:/description`.
    #[arg(long, value_name = "PATH")]
    ignore: Vec<String>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Compared {
    pub(crate) fn ignore(&self) -> Result<Ignore, Failure> {
        Ignore::read(&self.ignore).map_err(|error| Failure::usage(error.to_string()))
    }

    /// Shows what differs. The exit code says whether anything does.
    pub(crate) fn show(
        &self,
        screen: &Screen,
        names: [&str; 2],
        found: &Comparison,
    ) -> Result<ExitCode> {
        match self.json {
            true => screen.json(found)?,
            false => screen.print(&text(screen, names, found))?,
        }
        Ok(ExitCode::from(u8::from(!found.equal)))
    }
}

/// Reads a recording.
pub(crate) fn read(path: &Path) -> Result<Recording, Failure> {
    let shown = path.display();
    let text = match path.as_os_str() == "-" {
        true => io::read_to_string(io::stdin()),
        false => std::fs::read_to_string(path),
    };
    let text = text.map_err(|why| Failure::usage(format!("`{shown}` cannot be read: {why}.")))?;
    let recording = Recording::read(&text)
        .map_err(|why| Failure::usage(format!("`{shown}` is no recording. {why}")))?;
    if recording.is_empty() {
        return Err(Failure::usage(format!("There is no message in `{shown}`."))
            .advice("Record a conversation with `trunkline record FILE -- COMMAND`."));
    }
    Ok(recording)
}

/// Warns of a recording that is not whole.
pub(crate) fn warn_of_gaps(screen: &Screen, path: &Path, recording: &Recording) {
    if recording.dropped > 0 {
        let count = recording.dropped;
        let path = path.display();
        screen.aside("note", &format!("`{path}` lacks its last {count} messages (`--max`)."));
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn text(screen: &Screen, names: [&str; 2], found: &Comparison) -> String {
    let mut out = String::new();
    let mut about = None;
    for difference in &found.differences {
        if about != Some((&difference.of, difference.call)) {
            let title = screen.tone(Tone::Bold, &one_line(&difference.of));
            let arguments = difference.arguments.as_ref().map(|it| clip(&it.to_text(), 0));
            let _ = match arguments {
                Some(arguments) => writeln!(out, "{title} {arguments}"),
                None => writeln!(out, "{title}"),
            };
            about = Some((&difference.of, difference.call));
        }
        match (difference.path.as_str(), &difference.a, &difference.b) {
            ("", Some(_), None) => drop(writeln!(out, "  only in {}", names[0])),
            ("", None, Some(_)) => drop(writeln!(out, "  only in {}", names[1])),
            (path, ..) => {
                let _ = writeln!(out, "  {}", one_line(if path.is_empty() { "/" } else { path }));
                let (a, b) = values(difference);
                let _ = writeln!(out, "    {}", screen.tone(Tone::Bad, &format!("- {a}")));
                let _ = writeln!(out, "    {}", screen.tone(Tone::Good, &format!("+ {b}")));
            }
        }
    }
    let compared = format!(
        "{} and {}",
        counted(found.calls, "call"),
        counted(found.definitions, "definition")
    );
    let _ = match found.differences.len() {
        0 => writeln!(out, "No difference in {compared}."),
        count => writeln!(out, "{} in {compared}.", counted(count, "difference")),
    };
    out
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Both values on one line each, from shortly before they begin to differ.
fn values(difference: &Difference) -> (String, String) {
    let text = |it: &Option<Tree>| it.as_ref().map(Tree::to_text);
    let (a, b) = (text(&difference.a), text(&difference.b));
    let common = match (&a, &b) {
        (Some(a), Some(b)) => a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let shown = |it: Option<String>| it.map_or_else(|| "absent".to_owned(), |it| clip(&it, common));
    (shown(a), shown(b))
}

fn clip(text: &str, common: usize) -> String {
    let count = text.chars().count();
    let skipped = if count > WIDTH { common.saturating_sub(BEFORE) } else { 0 };
    let mut clipped: String = text.chars().skip(skipped).take(WIDTH).collect();
    if skipped > 0 {
        clipped.insert(0, '…');
    }
    if count > skipped + WIDTH {
        clipped.push('…');
    }
    one_line(&clipped)
}

/// How much of a value is shown.
const WIDTH: usize = 160;
/// How much of it is shown before the first difference.
const BEFORE: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_shown_where_it_differs() {
        let long = |end: &str| Some(Tree::Text(format!("{}{end}", "x".repeat(500))));
        let difference = |a, b| Difference {
            of: String::new(),
            call: None,
            arguments: None,
            path: "/a".to_owned(),
            a,
            b,
        };
        let (a, b) = values(&difference(long("one"), long("two\n")));
        assert_eq!(a, format!("…{}one\"", "x".repeat(40)));
        assert_eq!(b, format!("…{}two\\n\"", "x".repeat(40)));
        assert_eq!(
            values(&difference(Some(Tree::Null), None)),
            ("null".to_owned(), "absent".to_owned())
        );
    }
}
