//! Command-line words → what to measure over HTTP.

use super::measure::Shape;
use crate::amount::Volume;
use crate::calls::{PROGRESS, Revision};
use crate::words::{Measurement, Subject};

/// What one run of the driver does.
pub struct Options {
    pub revision: Revision,
    pub shape: Shape,
    pub volume: Volume,
}

impl Default for Options {
    fn default() -> Options {
        let (shape, volume) = Default::default();
        Options { revision: Revision::V2026_07_28, shape, volume }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--revision" => self.revision = Revision::named(value)?,
            "--reply" => self.shape.wants_progress = reply(value)?,
            _ => return Ok(self.volume.takes(option, value)? || self.shape.takes(option, value)?),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        super::measure(self, subject)
    }
}

impl Options {
    pub fn tool(&self) -> &'static str {
        if self.shape.wants_progress { PROGRESS } else { "echo" }
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
  --parked-stateless N  connections with a call of 2026-07-28 that is not answered
  --show yes            print the first request and response to stderr
  --ready COMMAND       run when all is ready, before the calls; `{pid}` becomes the server's
  --deadline SECONDS    when a silent server is killed (60)";
