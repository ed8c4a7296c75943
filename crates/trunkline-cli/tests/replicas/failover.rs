//! Scene: the store fails over to another server, once because an operator wants it and once because its primary is
//! killed. Owners go on, and nobody is lost.

use std::time::{Duration, Instant};

use trunkline_testkit::{redis, repeats};

use crate::figures::{Figures, NEVER};
use crate::load::Load;
use crate::stage::{Stage, soon};
use crate::store_away::{JOINED, heal, pass};

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start_on("failover", redis::sentinels()).await;
    let clients = repeats(12, 60);
    let load = Load::start(&stage, clients).await;
    pass(JOINED).await;
    let mut figures = Figures::default();
    for phase in [HANDED_OVER, KILLED] {
        load.phase(phase);
        let (since, before) = (Instant::now(), stage.redis.primary());
        stage.diary.note(phase);
        match phase {
            HANDED_OVER => stage.redis.hand_over(),
            _ => stage.redis.kill_primary(),
        }
        let has_moved = async || stage.redis.primary() != before;
        soon("the sentinels name another primary", ELECTION, has_moved).await;
        stage.diary.note("the sentinels name another primary");
        figures.count(format!("ms without, {phase}"), since.elapsed().as_millis() as u64);
        let healed = heal(&stage, &load).await;
        figures.count(format!("ms until healed, {phase}"), healed.as_millis() as u64);
        // What was handed over is complete before the next primary is killed.
        pass(JOINED).await;
    }
    figures.merge(&load.stop(&mut stage).await);
    figures.none(NEVER);
    for phase in [HANDED_OVER, KILLED] {
        let healed = figures.of(&format!("ms until healed, {phase}"));
        assert!(healed < 5_000, "healed after {healed} ms: {figures}");
    }
    let answers = figures.of(&format!("answers, {KILLED}"));
    assert!(answers > 2 * clients as u64, "owners go on: {answers} answers: {figures}");
    figures
}

const HANDED_OVER: &str = "primary handed over";
const KILLED: &str = "primary killed";
/// The sentinels believe after two seconds that it is gone; then they vote.
const ELECTION: Duration = Duration::from_secs(30);
