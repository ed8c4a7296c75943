//! Scene: a replica is killed every five seconds, and another takes its place.

use std::time::Duration;

use trunkline_testkit::{Dice, repeats};

use crate::figures::{Figures, NEVER};
use crate::load::Load;
use crate::stage::Stage;

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start("kills").await;
    let clients = repeats(12, 60);
    let load = Load::start(&stage, clients).await;
    let mut dice = Dice(SEED);
    // the sleep is the subject: sessions younger than a second may be lost
    tokio::time::sleep(Duration::from_secs(1)).await;
    let kills = repeats(4, 24);
    for _ in 0..kills {
        let number = dice.roll(stage.replicas.len());
        stage.kill(number).await;
        // the sleep is the subject: the time between two kills
        tokio::time::sleep(BETWEEN).await;
        stage.replicas[number].ready().await;
    }
    let mut figures = load.stop(&mut stage).await;
    figures.count("kills", kills as u64);
    figures.none(NEVER);
    assert_eq!(figures.blames(), 0, "{figures}");
    assert!(figures.of("answers") > 10 * clients as u64, "{figures}");
    figures
}

const BETWEEN: Duration = Duration::from_secs(5);
const SEED: u64 = 20_260_728;
