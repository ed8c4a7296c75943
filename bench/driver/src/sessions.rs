//! A Streamable HTTP server → the memory of the sessions it holds.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::calls::{Calls, Revision};
use crate::http::{Endpoint, NO_SESSION};
use crate::process::Cores;
use crate::round;
use crate::words::{Measurement, Subject, number};

pub struct Options {
    count: usize,
    streams: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { count: 1000, streams: false }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--count" => self.count = number(option, value)?,
            "--streams" => self.streams = value == "yes",
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        measure(self, subject)
    }
}

fn measure(options: &Options, subject: &Subject) -> Result<(), String> {
    let mut server = Cores::two()?.spawn(&subject.command, DEADLINE)?;
    let endpoint = Endpoint::new(server.address()?);
    let calls = Calls::new(Revision::V2025_11_25, "echo", 1);
    // One session first, so that what a server sets up once is not billed to the rest.
    let mut common = endpoint.connect()?;
    let first = common.greet(&calls)?.ok_or(NO_SESSION)?;
    let farewell = common.about("DELETE", &first);
    let (response, _) = common.exchange(&farewell)?;
    if response.status >= 300 {
        return Err(format!("it answered DELETE with {}.", response.status));
    }
    thread::sleep(SETTLE);
    let base = server.resident_kib()?;
    let mut held = Vec::new();
    for _ in 0..options.count {
        if !options.streams {
            common.greet(&calls)?.ok_or(NO_SESSION)?;
            continue;
        }
        held.push(endpoint.stream(&calls)?);
    }
    thread::sleep(SETTLE);
    let full = server.resident_kib()?;
    println!(
        "{}",
        json!({
            "label": subject.label,
            "sessions": options.count,
            "streams": options.streams,
            "base_kib": base,
            "full_kib": full,
            "kib_per_session": round((full as f64 - base as f64) / options.count as f64),
            "next": common.greet(&calls).map_or_else(|refusal| first_line(&refusal), |_| "accepted".into()),
        })
    );
    drop(held);
    server.stop()
}

/// A refusal quotes the response; its status line is enough.
fn first_line(refusal: &str) -> String {
    let at = refusal.find("HTTP/1.1").unwrap_or(0);
    refusal[at..].lines().next().unwrap_or_default().to_owned()
}

const USAGE: &str = "\
driver sessions [OPTIONS] -- SERVER [ARGUMENT…]
  --label NAME          printed with the figures
  --count N             how many sessions are held (1000)
  --streams yes         each on a connection of its own, with a GET stream open";

const DEADLINE: Duration = Duration::from_secs(120);
/// An allocator may give back what the last request used.
const SETTLE: Duration = Duration::from_millis(300);
