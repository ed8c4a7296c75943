//! A catalog → its gateway at a free port: the walk of `trunkline serve` in a program that builds in a fifth of the time.

use std::error::Error;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trunkline_gateway::{Front, Gateway, Settings, catalog};
use trunkline_store::Memory;
use trunkline_transport::Limits;
use trunkline_transport::auth::MemoryVault;
use trunkline_transport::footprint;
use trunkline_transport::http::{Lasting, bind, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [file, state] = words.as_slice() else { return Err("Say `CATALOG STATE_FOLDER`.".into()) };
    let loaded = catalog::load_file(file).map_err(|faults| faults.to_string())?;
    let settings = Settings {
        store: Arc::new(Memory::default()),
        pins: Some(state.join("pins.json")),
        logins: None,
        accounts: Arc::new(MemoryVault::new()),
        limits: limits(),
        otel: None,
        lasting: Some(Arc::new(Lasting::new([7; 32]))),
        fleet: None,
        sessions: None,
    };
    let gateway =
        Gateway::open(loaded.plan, settings).await.map_err(|failure| failure.to_string())?;
    let listener = bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let front = Front::new(&gateway, address).map_err(|failure| failure.to_string())?;
    println!("{address}");
    // As the binary does: what a long text took is given back.
    tokio::spawn(footprint::keep_small());
    Ok(serve(listener, front, limits(), pending()).await?)
}

fn limits() -> Limits {
    let limits = Limits::default().in_flight(1024).body_bytes(LONGEST).message_bytes(LONGEST);
    let limits = limits.bodies_bytes(2 * LONGEST).bodies_share(2 * LONGEST);
    let limits = limits.answers_bytes(2 * LONGEST).answers_share(2 * LONGEST);
    // The driver is one caller, and has all the sessions there are.
    let sessions = limits.sessions;
    let limits = limits.sessions_share(sessions);
    limits.header_read(NEVER).keep_alive(NEVER).stream_keep_alive(NEVER)
}

/// What is measured may be longer than clients need.
const LONGEST: usize = 32 << 20;
/// What happens by the clock, a comment on each quiet stream and a look at each connection, would be counted as part of the
/// calls that it happens to fall among.
const NEVER: Duration = Duration::from_secs(3600);
