//! Command-line words → which gateway is measured, and how.

use std::time::Duration;

use crate::amount::Amount;
use crate::calls::Revision;
use crate::http::Idle;
use crate::words::{self, number};

/// What one run of the driver does.
pub struct Options {
    pub label: String,
    pub revision: Revision,
    pub connections: usize,
    pub payload: usize,
    pub amount: Amount,
    pub idle: Idle,
    pub show: bool,
    pub deadline: Duration,
    /// Where the gateway takes its calls, and by what name it offers `echo`.
    pub path: String,
    pub tool: String,
    /// The words of an HTTP server to start first, which prints its address.
    pub upstream: Vec<String>,
    /// The program of a stdio server that the gateway starts.
    pub child: Option<String>,
    /// A configuration to write first.
    pub config: Option<String>,
    pub command: Vec<String>,
}

impl Options {
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            label: "gateway".into(),
            revision: Revision::V2025_11_25,
            connections: 1,
            payload: 100,
            amount: Amount::Time(Duration::from_secs(1)),
            idle: Idle::default(),
            show: false,
            deadline: Duration::from_secs(60),
            path: "/mcp".into(),
            tool: "echo".into(),
            upstream: Vec::new(),
            child: None,
            config: None,
            command: Vec::new(),
        };
        let command = words::options(words, |word, value| {
            match word {
                "--label" => options.label = value,
                "--revision" => options.revision = Revision::named(&value)?,
                "--connections" => options.connections = number(word, &value)?,
                "--payload" => options.payload = number(word, &value)?,
                "--calls" => options.amount = Amount::Calls(number(word, &value)?),
                "--milliseconds" => {
                    options.amount = Amount::Time(Duration::from_millis(number(word, &value)?))
                }
                "--show" => options.show = value == "yes",
                "--deadline" => options.deadline = Duration::from_secs(number(word, &value)?),
                "--path" => options.path = value,
                "--tool" => options.tool = value,
                "--upstream" => options.upstream.push(value),
                "--child" => options.child = Some(value),
                "--config" => options.config = Some(value),
                _ if options.idle.takes(word, &value)? => {}
                _ => return words::unknown(word),
            }
            Ok(())
        })?;
        Ok(Options { command, ..options })
    }
}

pub const USAGE: &str = "\
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
