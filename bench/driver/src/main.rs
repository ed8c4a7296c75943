//! A server command → one JSON object per measurement on stdout.

mod amount;
mod calls;
mod client;
mod folder;
mod gateway;
mod http;
mod process;
mod sessions;
mod start;
mod stdio;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let outcome = match words.next().as_deref() {
        Some("stdio") => stdio::run(words),
        Some("http") => http::run(words),
        Some("client") => client::run(words),
        Some("gateway") => gateway::run(words),
        Some("sessions") => sessions::run(words),
        Some("start") => start::run(words),
        _ => Err(format!(
            "Say what to measure.\n\n{}\n\n{}\n\n{}\n\n{}\n\n{}\n\n{}",
            stdio::USAGE,
            http::USAGE,
            client::USAGE,
            gateway::USAGE,
            sessions::USAGE,
            start::USAGE
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
