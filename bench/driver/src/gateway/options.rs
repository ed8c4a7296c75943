//! Command-line words → which gateway is measured, and how.

use crate::amount::Volume;
use crate::calls::Revision;
use crate::http::Idle;
use crate::words::{Measurement, Subject, number};

/// What one run of the driver does.
pub struct Options {
    pub revision: Revision,
    pub connections: usize,
    pub volume: Volume,
    pub idle: Idle,
    pub show: bool,
    /// Where the gateway takes its calls, and by what name it offers `echo`.
    pub path: String,
    pub tool: String,
    /// The words of an HTTP server to start first, which prints its address.
    pub upstream: Vec<String>,
    /// The program of a stdio server that the gateway starts.
    pub child: Option<String>,
    /// A configuration to write first.
    pub config: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        let (volume, idle, upstream) = Default::default();
        let (path, tool) = ("/mcp".into(), "echo".into());
        let (revision, connections, show) = (Revision::V2025_11_25, 1, false);
        let (child, config) = (None, None);
        Options { revision, connections, volume, idle, show, path, tool, upstream, child, config }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;
    const LABEL: &str = "gateway";

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--revision" => self.revision = Revision::named(value)?,
            "--connections" => self.connections = number(option, value)?,
            "--show" => self.show = value == "yes",
            "--path" => self.path = value.into(),
            "--tool" => self.tool = value.into(),
            "--upstream" => self.upstream.push(value.into()),
            "--child" => self.child = Some(value.into()),
            "--config" => self.config = Some(value.into()),
            _ => return Ok(self.volume.takes(option, value)? || self.idle.takes(option, value)?),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        super::measure(self, subject)
    }
}

const USAGE: &str = "\
driver gateway [OPTIONS] -- GATEWAY [ARGUMENT…]
  --upstream PROGRAM    an HTTP server to start first; `{upstream}` becomes the address it prints; said again, an
                        argument of it
  --child PROGRAM       the stdio server that the gateway starts; `{child}` becomes it, and its CPU is not the gateway's
  --config TEXT         written to a file whose name `{config}` becomes; `{folder}` is an empty folder
  --path PATH           where the gateway takes calls (/mcp)
  --tool NAME           what it calls the upstream's `echo` (echo)
  --label, --revision (2025-11-25), --connections, --payload, --milliseconds, --calls, --sessions …,
                        --show, --deadline   as with `http`
  `{port}` in the arguments or the text becomes a free port; a gateway without it prints its address first";
