//! A stdio server → one JSON object per measurement.

mod lines;
mod measure;
mod options;
mod server;

use serde_json::{Value, json};

use self::options::Mode;
pub use self::options::Options;
pub use self::server::Server;
use crate::amount::Amount;
use crate::calls::{Calls, HANDSHAKE_ID};
use crate::measured::Measured;
use crate::words::Subject;
use crate::{WARM_UP, round};

fn measure(options: &Options, subject: &Subject) -> Result<(), String> {
    let volume = &options.volume;
    let mut server = Server::spawn(&subject.command, volume.deadline)?;
    let mut calls = Calls::new(options.revision, "echo", volume.payload);
    greet(&mut server, &calls)?;
    for mode in options.modes() {
        if let Amount::Time(time) = volume.amount {
            let warm_up = Amount::Time(time / WARM_UP);
            measure::run(&mut server, &mut calls, mode, options.depth, warm_up)?;
        }
        volume.say_ready(&server.process)?;
        let measured = measure::run(&mut server, &mut calls, mode, options.depth, volume.amount)?;
        let mut report = report(options, &server, mode, measured);
        report["label"] = json!(subject.label);
        println!("{report}");
    }
    server.finish()
}

/// The revision's handshake: afterwards the server takes calls.
pub fn greet(server: &mut Server, calls: &Calls) -> Result<(), String> {
    server.send(&calls.hello())?;
    let answer: Value = loop {
        let line = server.lines.next()?;
        let message: Value = serde_json::from_slice(line)
            .map_err(|e| format!("it wrote a line that is no JSON: {e}."))?;
        if message["id"] == HANDSHAKE_ID {
            break message;
        }
    };
    if !calls.accepts(&answer) {
        return Err(format!("it does not speak {}; it answered {answer}.", calls.revision.name()));
    }
    calls.ready().map_or(Ok(()), |notification| server.send(&notification))
}

fn report(options: &Options, server: &Server, mode: Mode, mut measured: Measured) -> Value {
    let mut report = json!({
        "mode": mode.name(),
        "revision": options.revision.name(),
        "payload": options.volume.payload,
        "calls": measured.calls,
        "seconds": round(measured.wall.as_secs_f64()),
        "calls_per_s": measured.calls_per_s(),
        "server_cpu_us": measured.per_call(measured.server_cpu),
        "driver_cpu_us": measured.per_call(measured.driver_cpu),
        "pipe_bytes": server.pipe_bytes,
        "pinned": server.pinned,
    });
    match mode {
        Mode::Pipelined => report["depth"] = json!(options.depth),
        Mode::Sequential => {
            measured.latencies.sort_unstable();
            report["p50_us"] = json!(measured.latency(0.50));
            report["p99_us"] = json!(measured.latency(0.99));
        }
    }
    report
}
