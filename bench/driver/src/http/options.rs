//! Command-line words → what to measure over HTTP.

use super::idle::Idle;
use super::measure::Shape;
use crate::amount::Volume;
use crate::calls::{PROGRESS, Revision};
use crate::words::{Measurement, Subject, number};

/// What one run of the driver does.
pub struct Options {
    pub revision: Revision,
    pub wants_progress: bool,
    pub connections: usize,
    pub volume: Volume,
    idle: Idle,
    /// Whether to print the first response.
    show: bool,
}

impl Default for Options {
    fn default() -> Options {
        let (volume, idle) = Default::default();
        let revision = Revision::V2026_07_28;
        Options { revision, wants_progress: false, connections: 1, volume, idle, show: false }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--revision" => self.revision = Revision::named(value)?,
            "--reply" => self.wants_progress = reply(value)?,
            "--connections" => self.connections = number(option, value)?,
            "--show" => self.show = value == "yes",
            _ => return Ok(self.volume.takes(option, value)? || self.idle.takes(option, value)?),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        super::measure(self, subject)
    }
}

impl Options {
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

const USAGE: &str = "\
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
