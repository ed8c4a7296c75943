//! A Streamable HTTP server → one JSON object per measurement.

mod exchange;
mod idle;
mod measure;
mod options;
mod response;

use serde_json::{Value, json};

pub use self::exchange::{Endpoint, NO_SESSION};
pub use self::measure::{Load, Replies, Shape};
pub use self::options::Options;
use crate::amount::Amount;
use crate::calls::Calls;
use crate::measured::Measured;
use crate::process::Cores;
use crate::words::Subject;
use crate::{WARM_UP, round};

fn measure(options: &Options, subject: &Subject) -> Result<(), String> {
    let volume = &options.volume;
    let cores = Cores::two()?;
    let mut server = cores.spawn(&subject.command, volume.deadline)?;
    let endpoint = Endpoint::new(server.address()?);
    let calls = Calls::new(options.revision, options.tool(), volume.payload);
    let mut load = Load::connect(&endpoint, calls, options.shape)?;
    if let Amount::Time(time) = volume.amount {
        load.run(|| server.cpu(), Amount::Time(time / WARM_UP))?;
    }
    volume.say_ready(&server)?;
    let (measured, replies) = load.run(|| server.cpu(), volume.amount)?;
    let mut report = report(options, measured, &replies);
    report["label"] = json!(subject.label);
    report["pinned"] = json!(cores.are_two());
    report["resident_kib"] = json!(server.resident_kib()?);
    println!("{report}");
    drop(load);
    server.stop()
}

fn report(options: &Options, mut measured: Measured, replies: &Replies) -> Value {
    measured.latencies.sort_unstable();
    let per_call = |time| measured.per_call(time);
    let at = |share| measured.latency(share);
    json!({
        "revision": options.revision.name(),
        "tool": options.tool(),
        "connections": options.shape.connections,
        "payload": options.volume.payload,
        "calls": measured.calls,
        "seconds": round(measured.wall.as_secs_f64()),
        "calls_per_s": measured.calls_per_s(),
        "p50_us": at(0.50),
        "p99_us": at(0.99),
        "server_cpu_us": per_call(measured.server_cpu),
        "driver_cpu_us": per_call(measured.driver_cpu),
        "is_stream": replies.are_streams,
        "response_bytes": replies.bytes,
    })
}
