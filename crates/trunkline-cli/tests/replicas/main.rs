//! Three gateways as one: scenes with real processes, a real Redis and a real balancer.
//!
//! `cargo xtask replicas` runs them, one after the other; `cargo xtask soak replicas` with far larger counts. They
//! take minutes, so `cargo test` leaves them out.

#![forbid(unsafe_code)]
// Its figures are its outcome.
#![allow(clippy::print_stdout)]

mod balancer;
mod client;
mod failover;
mod figures;
mod instances;
mod kills;
mod load;
mod proofs;
mod questions;
mod resumed;
mod rolling;
mod servers;
mod shared;
mod spread;
mod stage;
mod store_away;
mod tasks;

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use figures::Figures;
use servers::Servers;
use stage::{REPLICAS, Stage};
use trunkline_testkit::{fake, repeats};

type Scene = fn() -> Pin<Box<dyn Future<Output = Figures>>>;

/// Every scene, by name.
const SCENES: &[(&str, Scene)] = &[
    ("spread", || Box::pin(spread::run())),
    ("questions", || Box::pin(questions::run())),
    ("resumed", || Box::pin(resumed::run())),
    ("tasks", || Box::pin(tasks::run())),
    ("shared", || Box::pin(shared::run())),
    ("instances", || Box::pin(instances::run())),
    ("proofs", || Box::pin(proofs::run())),
    ("rolling", || Box::pin(rolling::run())),
    ("store_away", || Box::pin(store_away::run())),
    ("failover", || Box::pin(failover::run())),
    ("kills", || Box::pin(kills::run())),
];

/// Those that are left out unless they are named or all run for long.
const LONG: &[&str] = &["failover"];

fn main() -> ExitCode {
    if std::env::var_os(REPLICAS).is_none() {
        println!("left out: `cargo xtask replicas` runs the scenes with several gateways");
        return ExitCode::SUCCESS;
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_all().build().expect("a runtime can be made");
    let args: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    match &args[..] {
        [word, catalog] if word == "stage" => return runtime.block_on(stand(catalog)),
        [word, program] if word == "servers" => return runtime.block_on(stand_servers(program)),
        _ => {}
    }
    let wanted = |name: &str| match args.is_empty() {
        true => is_long() || !LONG.contains(&name),
        false => args.iter().any(|it| it == name),
    };
    // What a scene starts is built before its time runs.
    fake::server();
    let (mut passed, mut failed) = (0, 0);
    for (name, scene) in SCENES.iter().filter(|(name, _)| wanted(name)) {
        println!("\n== {name}");
        let since = Instant::now();
        // Dropped at its limit, a scene ends all that it started.
        let limited = || runtime.block_on(async { tokio::time::timeout(limit(), scene()).await });
        let outcome = catch_unwind(AssertUnwindSafe(limited));
        let seconds = since.elapsed().as_secs_f64();
        match outcome {
            Ok(Ok(figures)) => {
                passed += 1;
                println!("{figures}\n== ok, {seconds:.1} s");
            }
            // A panic has said why.
            Ok(Err(_)) | Err(_) => {
                failed += 1;
                let folder = Stage::folder_of(name);
                print!("{}", Stage::last_words(&folder));
                println!("== FAILED, {seconds:.1} s: see `{}`", folder.display());
            }
        }
    }
    println!("\n{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// No scene takes longer.
fn limit() -> Duration {
    Duration::from_secs(repeats(120, 1_800) as u64)
}

fn is_long() -> bool {
    repeats(0, 1) == 1
}

/// Serves a catalog of the caller's own until standard input ends, and says where.
async fn stand(catalog: &str) -> ExitCode {
    let text = std::fs::read_to_string(catalog).expect("the catalog can be read");
    let stage = Stage::start_with("stage", serde_json::from_str(&text).expect("it is JSON")).await;
    println!("The stage is at http://{}", stage.balancer.address);
    until_input_ends().await;
    drop(stage);
    ExitCode::SUCCESS
}

/// The same with a server made with the SDK instead of gateways.
async fn stand_servers(program: &str) -> ExitCode {
    let servers = Servers::start(program.as_ref()).await;
    println!("The stage is at http://{}", servers.balancer.address);
    until_input_ends().await;
    drop(servers);
    ExitCode::SUCCESS
}

async fn until_input_ends() {
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
}
