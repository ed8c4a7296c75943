//! Command-line words → what to measure over stdio.

use std::time::Duration;

use crate::amount::Amount;
use crate::calls::Revision;
use crate::words::{self, number};

/// What one run of the driver does.
pub struct Options {
    pub label: String,
    pub revision: Revision,
    pub payload: usize,
    pub depth: usize,
    pub amount: Amount,
    /// After this long the server is killed, whatever it does.
    pub deadline: Duration,
    pub command: Vec<String>,
    mode: Option<Mode>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Sequential,
    Pipelined,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Sequential => "sequential",
            Mode::Pipelined => "pipelined",
        }
    }
}

impl Options {
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            label: "server".into(),
            revision: Revision::V2025_11_25,
            payload: 100,
            depth: 64,
            amount: Amount::Time(Duration::from_secs(1)),
            deadline: Duration::from_secs(60),
            command: Vec::new(),
            mode: None,
        };
        let command = words::options(words, |word, value| {
            match word {
                "--label" => options.label = value,
                "--revision" => options.revision = Revision::named(&value)?,
                "--mode" => options.mode = Some(mode(&value)?),
                "--payload" => options.payload = number(word, &value)?,
                "--depth" => options.depth = number(word, &value)?,
                "--calls" => options.amount = Amount::Calls(number(word, &value)?),
                "--milliseconds" => {
                    options.amount = Amount::Time(Duration::from_millis(number(word, &value)?))
                }
                "--deadline" => options.deadline = Duration::from_secs(number(word, &value)?),
                _ => return words::unknown(word),
            }
            Ok(())
        })?;
        Ok(Options { command, ..options })
    }

    pub fn modes(&self) -> Vec<Mode> {
        self.mode.map_or(vec![Mode::Sequential, Mode::Pipelined], |mode| vec![mode])
    }
}

fn mode(value: &str) -> Result<Mode, String> {
    [Mode::Sequential, Mode::Pipelined]
        .into_iter()
        .find(|mode| mode.name() == value)
        .ok_or_else(|| format!("`{value}` is no mode; say `sequential` or `pipelined`."))
}

pub const USAGE: &str = "\
driver stdio [OPTIONS] -- SERVER [ARGUMENT…]
  --label NAME          printed with the figures
  --revision REVISION   2025-11-25 (default) or 2026-07-28
  --mode MODE           sequential or pipelined; both unless told
  --payload BYTES       length of the text that is echoed (100)
  --depth N             calls in flight when pipelined (64)
  --milliseconds N      how long one measurement takes (1000), after a warm-up of a fifth of it
  --calls N             a number of calls instead of a time, and no warm-up
  --deadline SECONDS    when a silent server is killed (60)";
