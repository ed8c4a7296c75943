//! An invalid command line → what to write instead.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, ValueEnum};

use crate::cmd::list::What;
use crate::failure::{Failure, USAGE};
use crate::output::{ColorWhen, Screen};
use crate::target::with_url;
use crate::words::{as_word, is_url, word};
use crate::{Cli, Command};

/// Says what is wrong with our own command line, or prints the requested help or version.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let line = with_url(std::env::args_os().collect());
    let screen = Screen::new(ColorWhen::Auto);
    let failure = match with_dashes(&line, error) {
        Some(corrected) => {
            let failure =
                Failure::usage("The server's command goes after `--`, and there is no `--`.")
                    .advice(shown(&corrected));
            screen.failure(&failure);
            failure
        }
        None => {
            let _ = error.print();
            let text = error.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            Failure::usage(first.trim_start_matches("error: "))
        }
    };
    if is_for_a_program(&line) {
        // If stdout cannot be written, stderr has said so.
        let _ = screen.json_failure(&failure);
    }
    ExitCode::from(USAGE)
}

/// The command line with the missing `--`, if that is the fault.
fn with_dashes(line: &[OsString], error: &clap::Error) -> Option<Vec<OsString>> {
    let is_about_words = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(name)) if !name.starts_with('-'))
        }
        _ => false,
    };
    if !is_about_words || line.iter().any(|word| word == "--") {
        return None;
    }
    (2..line.len()).find_map(|place| {
        let (ours, server) = line.split_at(place);
        let mut corrected = ours.to_vec();
        corrected.push("--".into());
        corrected.extend_from_slice(server);
        let command = Cli::try_parse_from(&corrected).ok()?.command?;
        let first = server[0].to_string_lossy();
        let is_ours = match command {
            Command::List(_) => What::from_str(&first, false).is_ok(),
            Command::Call(_) | Command::Prompt(_) => first.contains('='),
            _ => false,
        };
        (!is_ours && !first.starts_with('-')).then_some(corrected)
    })
}

/// A command line as it would be typed.
fn shown(line: &[OsString]) -> String {
    let words = line.iter().enumerate().map(|(place, text)| {
        let text = text.to_string_lossy();
        match place {
            0 => "trunkline".to_owned(),
            _ if is_url(&text) => as_word(&text),
            _ => word(&text),
        }
    });
    format!("`{}`", words.collect::<Vec<_>>().join(" "))
}

/// Whether `--json` comes before the server's command.
fn is_for_a_program(line: &[OsString]) -> bool {
    line.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let line: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let error = Cli::try_parse_from(&line).err().expect("it makes no sense");
        let found = with_dashes(&line, &error).map(|it| shown(&it));
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn the_place_of_the_dashes_is_found() {
        check("x list trunkline demo", Some("`trunkline list -- trunkline demo`"));
        check("x list tools trunkline demo", Some("`trunkline list tools -- trunkline demo`"));
        check("x list npx -y it's", Some(r"`trunkline list -- npx -y 'it'\''s'`"));
        check("x ping --timeout 5 srv", Some("`trunkline ping --timeout 5 -- srv`"));
        check("x call sum a=1 b=2 srv --json", Some("`trunkline call sum a=1 b=2 -- srv --json`"));
        check("x prompt review code=x srv", Some("`trunkline prompt review code=x -- srv`"));
        check("x read demo://a srv arg", Some("`trunkline read demo://a -- srv arg`"));
        check("x list", None);
        check("x list all", None);
        check("x dance", None);
        check("x ping --timeout soon srv", None);
        check("x list nothing -- srv", None);
    }
}
