//! Scene: the store is away for a while, in three ways. Owners go on, and nobody is lost.

use std::time::{Duration, Instant};

use trunkline::Revision;
use trunkline_testkit::repeats;

use crate::client::{Caller, answered};
use crate::figures::{Figures, NEVER};
use crate::load::Load;
use crate::stage::{PRINCIPALS, Stage};

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start("store_away").await;
    let clients = repeats(12, 60);
    let load = Load::start(&stage, clients).await;
    let away = Duration::from_secs(repeats(5, 30) as u64);
    let mut healed = Vec::new();

    // Replicas vouch for each other once each has written down whom it saw, two heartbeats after it joined.
    pass(JOINED).await;
    load.phase("store stopped");
    stage.redis.shut_down();
    pass(away).await;
    stage.redis.start();
    healed.push(heal(&stage, &load).await);

    load.phase("store frozen");
    stage.redis.freeze();
    pass(away).await;
    stage.redis.thaw();
    healed.push(heal(&stage, &load).await);

    load.phase("store killed");
    stage.redis.stop();
    pass(away).await;
    stage.redis.start();
    healed.push(heal(&stage, &load).await);

    let mut figures = load.stop(&mut stage).await;
    figures.none(NEVER);
    for phase in ["store stopped", "store frozen", "store killed"] {
        let answers = figures.of(&format!("answers, {phase}"));
        assert!(
            answers > 2 * clients as u64,
            "owners go on: {answers} answers, {phase}: {figures}"
        );
    }
    for (phase, healed) in ["stopped", "frozen", "killed"].into_iter().zip(healed) {
        figures.count(format!("ms until healed, {phase}"), healed.as_millis() as u64);
        assert!(healed < Duration::from_secs(5), "healed after {healed:?}: {figures}");
    }
    figures
}

/// Waits until a new session is opened and served at every replica; how long that took since the store is back.
pub(crate) async fn heal(stage: &Stage, load: &Load) -> Duration {
    load.phase("healing");
    let since = Instant::now();
    for at in stage.addresses() {
        let caller = Caller::new("healed", PRINCIPALS[0].1, Revision::V2025_11_25, &[at]);
        let mut caller = caller.open_within(Duration::from_secs(20)).await;
        caller.addresses = stage.addresses();
        let served = answered(&mut caller, "old.echo", Duration::from_secs(20)).await;
        assert!(served.is_some(), "{at} serves again");
    }
    let healed = since.elapsed();
    load.phase("");
    healed
}

pub(crate) async fn pass(time: Duration) {
    // the sleep is the subject: how long the store is away, or there
    tokio::time::sleep(time).await;
}

/// More than two heartbeats, each with the time that it takes to settle.
pub(crate) const JOINED: Duration = Duration::from_secs(5);
