//! Command-line words → what to measure over stdio.

use crate::amount::Volume;
use crate::calls::Revision;
use crate::words::{Measurement, Subject, number};

/// What one run of the driver does.
pub struct Options {
    pub revision: Revision,
    pub depth: usize,
    pub volume: Volume,
    mode: Option<Mode>,
}

impl Default for Options {
    fn default() -> Options {
        let volume = Volume::default();
        Options { revision: Revision::V2025_11_25, depth: 64, volume, mode: None }
    }
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

impl Measurement for Options {
    const USAGE: &str = USAGE;

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--revision" => self.revision = Revision::named(value)?,
            "--mode" => self.mode = Some(mode(value)?),
            "--depth" => self.depth = number(option, value)?,
            _ => return self.volume.takes(option, value),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        super::measure(self, subject)
    }
}

impl Options {
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

const USAGE: &str = "\
driver stdio [OPTIONS] -- SERVER [ARGUMENT…]
  --label NAME          printed with the figures
  --revision REVISION   2025-11-25 (default) or 2026-07-28
  --mode MODE           sequential or pipelined; both unless told
  --payload BYTES       length of the text that is echoed (100)
  --depth N             calls in flight when pipelined (64)
  --milliseconds N      how long one measurement takes (1000), after a warm-up of a fifth of it
  --calls N             a number of calls instead of a time, and no warm-up
  --ready COMMAND       run when all is ready, before the calls; `{pid}` becomes the server's
  --deadline SECONDS    when a silent server is killed (60)";
