//! A stdio server → one JSON object per measurement.

mod lines;
mod measure;
mod options;
mod server;

use serde_json::{Value, json};

use self::measure::Measured;
pub use self::options::USAGE;
use self::options::{Mode, Options};
pub use self::server::Server;
use crate::amount::Amount;
use crate::calls::{Calls, HANDSHAKE_ID};
use crate::{WARM_UP, round};

/// Measures what the words ask for.
pub fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let options = Options::parse(words).map_err(|error| format!("{error}\n\n{USAGE}"))?;
    measure(&options).map_err(|error| format!("`{}` failed: {error}", options.label))
}

fn measure(options: &Options) -> Result<(), String> {
    let mut server = Server::spawn(&options.command, options.deadline)?;
    let mut calls = Calls::new(options.revision, "echo", options.payload);
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
