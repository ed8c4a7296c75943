//! A server command → one JSON object per measurement on stdout.

mod amount;
mod calls;
mod client;
mod folder;
mod gateway;
mod http;
mod measured;
mod process;
mod replicas;
mod sessions;
mod start;
mod stdio;
mod words;

use std::process::ExitCode;

use words::Measurement as _;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let outcome = match words.next().as_deref() {
        Some("stdio") => words::run::<stdio::Options>(words),
        Some("http") => words::run::<http::Options>(words),
        Some("client") => words::run::<client::Options>(words),
        Some("gateway") => words::run::<gateway::Options>(words),
        Some("replicas") => words::run::<replicas::Options>(words),
        Some("sessions") => words::run::<sessions::Options>(words),
        Some("start") => words::run::<start::Options>(words),
        _ => Err(format!(
            "Say what to measure.\n\n{}\n\n{}\n\n{}\n\n{}\n\n{}\n\n{}\n\n{}",
            stdio::Options::USAGE,
            http::Options::USAGE,
            client::Options::USAGE,
            gateway::Options::USAGE,
            replicas::Options::USAGE,
            sessions::Options::USAGE,
            start::Options::USAGE
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Three decimals are more than the machine can repeat.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The warm-up lasts this fraction of a measurement.
const WARM_UP: u32 = 5;
