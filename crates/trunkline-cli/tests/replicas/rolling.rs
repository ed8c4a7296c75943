//! Scene: all replicas are replaced one after the other, as an upgrade does it, and no caller notices.

use trunkline_testkit::repeats;

use crate::figures::{Figures, NEVER};
use crate::load::Load;
use crate::stage::Stage;

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start("rolling").await;
    let load = Load::start(&stage, repeats(12, 60)).await;
    let mut slowest = 0;
    let rounds = repeats(1, 5);
    for _ in 0..rounds {
        for number in 0..stage.replicas.len() {
            let took = stage.restart(number).await;
            slowest = slowest.max(took.as_millis() as u64);
            stage.whole().await;
        }
    }
    let mut figures = load.stop(&mut stage).await;
    figures.count("restarts", (rounds * stage.replicas.len()) as u64);
    figures.count("ms of the slowest goodbye", slowest);
    figures.none(NEVER);
    assert_eq!(figures.errors(), 0, "{figures}");
    figures
}
