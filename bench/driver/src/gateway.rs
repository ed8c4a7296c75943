//! A gateway and an upstream for it → one JSON object per measurement.

mod options;
mod scene;

use std::time::Duration;

use serde_json::{Value, json};

use self::options::Options;
pub use self::options::USAGE;
use self::scene::Scene;
use crate::amount::Amount;
use crate::calls::Calls;
use crate::http::{Load, Measured, Shape};
use crate::round;

/// Measures what the words ask for.
pub fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let options = Options::parse(words).map_err(|error| format!("{error}\n\n{USAGE}"))?;
    measure(&options).map_err(|error| format!("`{}` failed: {error}", options.label))
}

fn measure(options: &Options) -> Result<(), String> {
    let scene = Scene::set(options)?;
    let calls = Calls::new(options.revision, &options.tool, options.payload);
    let (connections, idle) = (options.connections, options.idle);
    let shape = Shape { connections, wants_progress: false, shows: options.show, idle };
    let mut load = Load::connect(&scene.endpoint, calls, shape)?;
    // Node takes longer than the others until it is as fast as it gets.
    if let Amount::Time(time) = options.amount {
        load.run(|| scene.gateway_cpu(), Amount::Time(time / 3))?;
    }
    let upstream_before = scene.upstream_cpu();
    let measured = load.run(|| scene.gateway_cpu(), options.amount)?;
    let upstream_cpu = scene.upstream_cpu().saturating_sub(upstream_before);
    let mut report = report(options, scene.is_pinned, measured, upstream_cpu);
    report["resident_kib"] = json!(scene.resident_kib()?);
    println!("{report}");
    drop(load);
    // A profiler around a gateway takes its time to write down what it saw.
    let limit = match options.amount {
        Amount::Time(_) => Duration::from_secs(5),
        Amount::Calls(_) => options.deadline,
    };
    scene.end(limit)
}

fn report(
    options: &Options,
    is_pinned: bool,
    mut measured: Measured,
    upstream_cpu: Duration,
) -> Value {
    measured.latencies.sort_unstable();
    json!({
        "label": options.label,
        "revision": options.revision.name(),
        "connections": options.connections,
        "payload": options.payload,
        "calls": measured.calls,
        "seconds": round(measured.wall.as_secs_f64()),
        "calls_per_s": measured.calls_per_s(),
        "p50_us": measured.latency(0.50),
        "p99_us": measured.latency(0.99),
        "gateway_cpu_us": measured.per_call(measured.server_cpu),
        "upstream_cpu_us": measured.per_call(upstream_cpu),
        "driver_cpu_us": measured.per_call(measured.driver_cpu),
        "is_stream": measured.is_stream,
        "pinned": is_pinned,
    })
}
