//! Scene: streams that are cut again and again and go on at another replica.

use serde_json::json;
use tokio::task::JoinSet;
use trunkline::Revision;
use trunkline_testkit::repeats;

use crate::client::{Caller, judge};
use crate::figures::{Figures, NEVER, Told};
use crate::stage::{PRINCIPALS, Stage};

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start("resumed").await;
    let mut streams = JoinSet::new();
    let addresses = stage.addresses();
    for number in 0..repeats(9, 90) {
        let revision = RESUMABLE[number % RESUMABLE.len()];
        // Cut after each event, after two, after three.
        let cuts_after = number / RESUMABLE.len() % 3 + 1;
        let mut addresses = addresses.clone();
        let replicas = addresses.len();
        addresses.rotate_left(number % replicas);
        let (_, token) = PRINCIPALS[number % PRINCIPALS.len()];
        let caller = Caller::new(format!("stream-{number}"), token, revision, &addresses);
        streams.spawn(follow(caller, cuts_after));
    }
    let mut figures = Figures::default();
    for counted in streams.join_all().await {
        figures.merge(&counted);
    }
    stage.tell(&mut figures).await;
    figures.none(NEVER);
    let elsewhere = figures.of("resumptions at another replica");
    assert!(elsewhere >= repeats(200, 1_000) as u64, "{figures}");
    figures
}

async fn follow(caller: Caller, cuts_after: usize) -> Figures {
    let mut caller = caller.open().await;
    caller.cuts_after = Some(cuts_after);
    for server in ["old", "new"] {
        let text = caller.unique();
        let arguments = json!({ "steps": STEPS, "ms": 20, "text": text });
        let ended = caller.call(&format!("{server}.progress"), arguments, &text).await;
        let revision = caller.guest.revision;
        assert_eq!(judge(&ended, &text), (Told::Done, None), "{revision} {server}: {ended:?}");
        let all: Vec<u64> = (1..=STEPS).collect();
        assert_eq!(caller.progress, all, "{revision} {server}: each event comes once, in order");
        caller.figures.count("events", STEPS);
    }
    caller.figures
}

const STEPS: u64 = 40;
const RESUMABLE: [Revision; 3] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];
