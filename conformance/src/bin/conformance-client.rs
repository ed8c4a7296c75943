//! A scenario in the environment and a URL → what the scenario asks of a client.
//!
//! The exit code is 0 if the scenario came to its end, and 1 with a sentence on stderr if not.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use trunkline_conformance::exit_code;
use trunkline_conformance::scenarios::{Failure, Order, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    exit_code(played().await)
}

async fn played() -> Result<(), String> {
    // The suite appends the URL to whatever command it was given.
    let url = std::env::args().skip(1).next_back();
    let url = url.ok_or("Give the URL of a server: `conformance-client URL`.")?;
    let order = Order::read(url, |name| std::env::var(name).ok());
    match order {
        Ok(order) => run(&order).await.map_err(|why: Failure| why.to_string()),
        Err(why) => Err(why.to_string()),
    }
}
