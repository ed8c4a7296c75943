//! A gateway and an upstream for it → one JSON object per measurement.

mod options;
mod scene;

use std::time::Duration;

use serde_json::{Value, json};

pub use self::options::Options;
use self::scene::Scene;
use crate::amount::Amount;
use crate::calls::Calls;
use crate::http::{Load, Replies};
use crate::measured::Measured;
use crate::round;
use crate::words::Subject;

fn measure(options: &Options, subject: &Subject) -> Result<(), String> {
    let volume = &options.volume;
    let scene = Scene::set(options, &subject.command)?;
    let calls = Calls::new(options.revision, &options.tool, volume.payload);
    let mut load = Load::connect(&scene.endpoint, calls, options.shape)?;
    // Node takes longer than the others until it is as fast as it gets.
    if let Amount::Time(time) = volume.amount {
        load.run(|| scene.gateway_cpu(), Amount::Time(time / 3))?;
    }
    volume.say_ready(scene.gateway())?;
    let upstream_before = scene.upstream_cpu();
    let (measured, replies) = load.run(|| scene.gateway_cpu(), volume.amount)?;
    let upstream_cpu = scene.upstream_cpu().saturating_sub(upstream_before);
    let mut report = report(options, measured, upstream_cpu, &replies);
    report["label"] = json!(subject.label);
    report["pinned"] = json!(scene.is_pinned);
    report["resident_kib"] = json!(scene.resident_kib()?);
    report["peak_kib"] = json!(scene.peak_kib()?);
    println!("{report}");
    drop(load);
    // A profiler around a gateway takes its time to write down what it saw.
    let limit = match volume.amount {
        Amount::Time(_) => Duration::from_secs(5),
        Amount::Calls(_) => volume.deadline,
    };
    scene.end(limit)
}

fn report(
    options: &Options,
    mut measured: Measured,
    upstream_cpu: Duration,
    replies: &Replies,
) -> Value {
    measured.latencies.sort_unstable();
    json!({
        "revision": options.revision.name(),
        "connections": options.shape.connections,
        "payload": options.volume.payload,
        "calls": measured.calls,
        "seconds": round(measured.wall.as_secs_f64()),
        "calls_per_s": measured.calls_per_s(),
        "p50_us": measured.latency(0.50),
        "p99_us": measured.latency(0.99),
        "gateway_cpu_us": measured.per_call(measured.server_cpu),
        "upstream_cpu_us": measured.per_call(upstream_cpu),
        "driver_cpu_us": measured.per_call(measured.driver_cpu),
        "is_stream": replies.are_streams,
    })
}
