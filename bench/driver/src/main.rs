//! A server command → one JSON object per measurement on stdout.

mod calls;
mod lines;
mod measure;
mod options;
mod server;

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::calls::{Calls, HANDSHAKE_ID};
use crate::measure::{Amount, Measured};
use crate::options::{Mode, Options};
use crate::server::Server;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("`{}` failed: {message}", options.label);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut server = Server::spawn(&options.command, options.deadline)?;
    let mut calls = Calls::new(options.revision, options.payload);
    greet(&mut server, &calls)?;
    for mode in options.modes() {
        if let Amount::Time(time) = options.amount {
            measure::run(
                &mut server,
                &mut calls,
                mode,
                options.depth,
                Amount::Time(time / WARM_UP),
            )?;
        }
        let measured = measure::run(&mut server, &mut calls, mode, options.depth, options.amount)?;
        println!("{}", report(options, &server, mode, measured));
    }
    server.finish()
}

/// The revision's handshake: afterwards the server takes calls.
fn greet(server: &mut Server, calls: &Calls) -> Result<(), String> {
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

fn report(options: &Options, server: &Server, mode: Mode, measured: Measured) -> Value {
    let per_call =
        |time: std::time::Duration| round(time.as_secs_f64() * 1e6 / measured.calls as f64);
    let mut report = json!({
        "label": options.label,
        "mode": mode.name(),
        "revision": options.revision.name(),
        "payload": options.payload,
        "calls": measured.calls,
        "seconds": round(measured.wall.as_secs_f64()),
        "calls_per_s": round(measured.calls as f64 / measured.wall.as_secs_f64()),
        "server_cpu_us": per_call(measured.server_cpu),
        "driver_cpu_us": per_call(measured.driver_cpu),
        "pipe_bytes": server.pipe_bytes,
        "pinned": server.pinned,
    });
    match mode {
        Mode::Pipelined => report["depth"] = json!(options.depth),
        Mode::Sequential => {
            let mut latencies = measured.latencies;
            latencies.sort_unstable();
            let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
            report["p50_us"] = json!(round(at(0.50).as_secs_f64() * 1e6));
            report["p99_us"] = json!(round(at(0.99).as_secs_f64() * 1e6));
        }
    }
    report
}

/// Three decimals are more than the machine can repeat.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The warm-up lasts this fraction of the measurement.
const WARM_UP: u32 = 5;
