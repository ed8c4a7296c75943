//! A Streamable HTTP server → one JSON object per measurement.

mod exchange;
mod measure;
mod options;
mod response;

use serde_json::{Value, json};

pub use self::exchange::Endpoint;
use self::measure::{Load, Measured};
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
    let mut load = Load::connect(&endpoint, calls, options)?;
    if let Amount::Time(time) = options.amount {
        load.run(&server, Amount::Time(time / WARM_UP))?;
    }
    let measured = load.run(&server, options.amount)?;
    println!("{}", report(options, cores.are_two(), measured));
    drop(load);
    server.stop()
}

fn report(options: &Options, pinned: bool, measured: Measured) -> Value {
    let per_call =
        |time: std::time::Duration| round(time.as_secs_f64() * 1e6 / measured.calls as f64);
    let mut latencies = measured.latencies;
    latencies.sort_unstable();
    let at = |share: f64| {
        round(latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6)
    };
    json!({
        "label": options.label,
        "revision": options.revision.name(),
        "tool": options.tool(),
        "connections": options.connections,
        "payload": options.payload,
        "calls": measured.calls,
        "seconds": round(measured.wall.as_secs_f64()),
        "calls_per_s": round(measured.calls as f64 / measured.wall.as_secs_f64()),
        "p50_us": at(0.50),
        "p99_us": at(0.99),
        "server_cpu_us": per_call(measured.server_cpu),
        "driver_cpu_us": per_call(measured.driver_cpu),
        "is_stream": measured.is_stream,
        "response_bytes": measured.response_bytes,
        "pinned": pinned,
    })
}
