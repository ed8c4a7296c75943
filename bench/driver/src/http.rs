//! A Streamable HTTP server → one JSON object per measurement.

mod exchange;
mod idle;
mod measure;
mod options;
mod response;

use serde_json::{Value, json};

pub use self::exchange::{Endpoint, NO_SESSION};
pub use self::idle::Idle;
pub use self::measure::{Load, Measured, Shape};
use self::options::Options;
pub use self::options::USAGE;
use crate::amount::Amount;
use crate::calls::Calls;
use crate::process::Cores;
use crate::{WARM_UP, round};

/// Measures what the words ask for.
pub fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let options = Options::parse(words).map_err(|error| format!("{error}\n\n{USAGE}"))?;
    measure(&options).map_err(|error| format!("`{}` failed: {error}", options.label))
}

fn measure(options: &Options) -> Result<(), String> {
    let cores = Cores::two()?;
    let mut server = cores.spawn(&options.command, options.deadline)?;
    let endpoint = Endpoint::new(server.address()?);
    let calls = Calls::new(options.revision, options.tool(), options.payload);
    let mut load = Load::connect(&endpoint, calls, options.shape())?;
    if let Amount::Time(time) = options.amount {
        load.run(|| server.cpu(), Amount::Time(time / WARM_UP))?;
    }
    let measured = load.run(|| server.cpu(), options.amount)?;
    let mut report = report(options, cores.are_two(), measured);
    report["resident_kib"] = json!(server.resident_kib()?);
    println!("{report}");
    drop(load);
    server.stop()
}

fn report(options: &Options, pinned: bool, mut measured: Measured) -> Value {
    measured.latencies.sort_unstable();
    let per_call = |time| measured.per_call(time);
    let at = |share| measured.latency(share);
    json!({
        "label": options.label,
        "revision": options.revision.name(),
        "tool": options.tool(),
        "connections": options.connections,
        "payload": options.payload,
        "calls": measured.calls,
        "seconds": round(measured.wall.as_secs_f64()),
        "calls_per_s": measured.calls_per_s(),
        "p50_us": at(0.50),
        "p99_us": at(0.99),
        "server_cpu_us": per_call(measured.server_cpu),
        "driver_cpu_us": per_call(measured.driver_cpu),
        "is_stream": measured.is_stream,
        "response_bytes": measured.response_bytes,
        "pinned": pinned,
    })
}
