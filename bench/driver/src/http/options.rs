//! Command-line words → what to measure over HTTP.

use std::time::Duration;

use super::idle::Idle;
use super::measure::Shape;
use crate::amount::Amount;
use crate::calls::{PROGRESS, Revision};
use crate::words::{self, number};

/// What one run of the driver does.
pub struct Options {
    pub label: String,
    pub revision: Revision,
    pub wants_progress: bool,
    pub connections: usize,
    pub payload: usize,
    pub amount: Amount,
    idle: Idle,
    /// Whether to print the first response.
    pub show: bool,
    /// After this long the server is killed, whatever it does.
    pub deadline: Duration,
    pub command: Vec<String>,
}

impl Options {
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            label: "server".into(),
            revision: Revision::V2026_07_28,
            wants_progress: false,
            connections: 1,
            payload: 100,
            amount: Amount::Time(Duration::from_secs(1)),
            idle: Idle::default(),
            show: false,
            deadline: Duration::from_secs(60),
            command: Vec::new(),
        };
        let command = words::options(words, |word, value| {
            match word {
                "--label" => options.label = value,
                "--revision" => options.revision = Revision::named(&value)?,
                "--reply" => options.wants_progress = reply(&value)?,
                "--connections" => options.connections = number(word, &value)?,
                "--payload" => options.payload = number(word, &value)?,
                "--calls" => options.amount = Amount::Calls(number(word, &value)?),
                "--milliseconds" => {
                    options.amount = Amount::Time(Duration::from_millis(number(word, &value)?))
                }
                "--show" => options.show = value == "yes",
                "--deadline" => options.deadline = Duration::from_secs(number(word, &value)?),
                _ if options.idle.takes(word, &value)? => {}
                _ => return words::unknown(word),
            }
            Ok(())
        })?;
        Ok(Options { command, ..options })
    }

    pub fn shape(&self) -> Shape {
        let Options { connections, wants_progress, show: shows, idle, .. } = *self;
        Shape { connections, wants_progress, shows, idle }
    }

    pub fn tool(&self) -> &'static str {
        if self.wants_progress { PROGRESS } else { "echo" }
    }
}

fn reply(value: &str) -> Result<bool, String> {
    match value {
        "json" => Ok(false),
        "sse" => Ok(true),
        _ => Err(format!("`{value}` is no kind of reply; say `json` or `sse`.")),
    }
}

pub const USAGE: &str = "\
driver http [OPTIONS] -- SERVER [ARGUMENT…]      the server prints its address first
  --label NAME          printed with the figures
  --revision REVISION   2026-07-28 (default), or 2025-11-25 with one session for each connection
  --reply KIND          json (default) calls `echo`; sse calls `progress`, which reports once and then answers
  --connections N       how many are kept alive, one call at a time on each (1)
  --payload BYTES       length of the text that is echoed (100)
  --milliseconds N      how long one measurement takes (1000), after a warm-up of a fifth of it
  --calls N             a number of calls instead of a time, and no warm-up
  --sessions N          sessions of 2025-11-25 that are opened first and do nothing, all on one connection; or
  --idle, --streams, --parked, --questions N    with a connection each; a GET stream; a call that is not answered; a
                        call that has asked
  --show yes            print the first request and response to stderr
  --deadline SECONDS    when a silent server is killed (60)";
