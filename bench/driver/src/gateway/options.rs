//! Command-line words → which gateway is measured, and how.

use crate::amount::Volume;
use crate::calls::Revision;
use crate::http::Shape;
use crate::words::{Measurement, Subject};

/// What one run of the driver does.
pub struct Options {
    pub revision: Revision,
    pub shape: Shape,
    pub volume: Volume,
    /// Where the gateway takes its calls, and by what name it offers `echo`.
    pub path: String,
    pub tool: String,
    /// A configuration to write first.
    pub config: Option<String>,
    pub upstream: Upstream,
}

/// What is behind the gateway.
#[derive(Default)]
pub enum Upstream {
    #[default]
    Nothing,
    /// The words of an HTTP server to start first, which prints its address.
    Http(Vec<String>),
    /// The program of a stdio server that the gateway starts.
    Child(String),
}

impl Upstream {
    /// One more word of an HTTP server.
    fn push(&mut self, word: &str) {
        match self {
            Upstream::Http(words) => words.push(word.into()),
            _ => *self = Upstream::Http(vec![word.into()]),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        let (shape, volume, config, upstream) = Default::default();
        let (revision, path, tool) = (Revision::V2025_11_25, "/mcp".into(), "echo".into());
        Options { revision, shape, volume, path, tool, config, upstream }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;
    const LABEL: &str = "gateway";

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--revision" => self.revision = Revision::named(value)?,
            "--path" => self.path = value.into(),
            "--tool" => self.tool = value.into(),
            "--config" => self.config = Some(value.into()),
            "--upstream" => self.upstream.push(value),
            "--child" => self.upstream = Upstream::Child(value.into()),
            _ => return Ok(self.volume.takes(option, value)? || self.shape.takes(option, value)?),
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
                        --show, --ready, --deadline   as with `http`
  `{port}` in the arguments or the text becomes a free port; a gateway without it prints its address first";
