//! Scene: what may happen only so often happens only so often, however many replicas are asked at once.

use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use trunkline::Revision;

use crate::client::{Caller, Ended, judge};
use crate::figures::{Figures, Told};
use crate::stage::{PRINCIPALS, RATE, Stage};

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start("shared").await;
    let mut figures = Figures::default();
    rate(&stage, &mut figures).await;
    for (what, tool) in
        [("approval", "guarded.echo"), ("parked call", "asks.ask"), ("forwarded state", "new.ask")]
    {
        let all = stage.addresses();
        let alone = replayed(tool, &format!("{what} at one"), &all[..1]).await;
        let spread = replayed(tool, &format!("{what} at all"), &all).await;
        figures.count(format!("{what}: replays accepted by one"), alone);
        figures.count(format!("{what}: replays accepted by all"), spread);
        assert!(alone >= 1, "{what}: somebody is served");
        assert_eq!(spread, alone, "{what}: three replicas accept as many as one; {figures}");
    }
    let executed = stage.executed();
    for at in ["one", "all"] {
        let times = executed.get(&argument(&format!("approval at {at}"))).copied();
        assert_eq!(times, Some(1), "an approval is for one call");
    }
    stage.tell(&mut figures).await;
    figures
}

/// Each principal has its own rate; the replicas share it.
async fn rate(stage: &Stage, figures: &mut Figures) {
    let since = Instant::now();
    let mut calls = JoinSet::new();
    for (name, token) in PRINCIPALS {
        for number in 0..HAMMER {
            let addresses = stage.addresses();
            let at = addresses[number % addresses.len()];
            calls.spawn(async move {
                let name = format!("rated-{name}-{number}");
                let mut caller = Caller::new(name, token, Revision::V2026_07_28, &[at]);
                let text = caller.unique();
                let ended = caller.call("rated.echo", json!({ "text": text }), &text).await;
                (token, ended.clone(), judge(&ended, &text))
            });
        }
    }
    let outcomes = calls.join_all().await;
    // What a minute brings, the part of it that has passed; rounded up, and one for the beginning.
    let most = RATE + since.elapsed().as_secs() * RATE / 60 + 2;
    for (name, token) in PRINCIPALS {
        let mine: Vec<_> = outcomes.iter().filter(|it| it.0 == token).collect();
        let served = mine.iter().filter(|it| it.2.0 == Told::Done).count() as u64;
        for (_, ended, (told, wrong)) in &mine {
            let is_refused = wrong.as_deref().is_some_and(|it| it.ends_with("rate_limited"));
            assert!(*told == Told::Done || is_refused, "{name}: {ended:?}");
        }
        figures.count("rate: calls", mine.len() as u64);
        figures.count(format!("rate: served of {name}"), served);
        assert!((RATE..=most).contains(&served), "{name}: {served} of {RATE} to {most}");
    }
}

/// Answers a question once, and sends that answer many times at once: how many are served.
async fn replayed(tool: &str, what: &str, addresses: &[SocketAddr]) -> u64 {
    let (_, token) = PRINCIPALS[0];
    let client = || Caller::new(what, token, Revision::V2026_07_28, addresses);
    let text = argument(what);
    let params = json!({ "name": tool, "arguments": { "text": text } });
    let mut caller = client();
    let Ended::Answer(asked) = caller.request("tools/call", params.clone(), &text).await else {
        panic!("{what}: no answer")
    };
    let next = caller.next_round(&asked["result"], &params, &text);
    let next = next.unwrap_or_else(|| panic!("{what}: this is no question: {asked}"));
    let mut replays = JoinSet::new();
    for number in 0..REPLAYS {
        let (mut caller, next, text) = (client(), next.clone(), text.clone());
        caller.addresses.rotate_left(number % addresses.len());
        replays.spawn(async move {
            let ended = caller.request("tools/call", next, &text).await;
            judge(&ended, &text).0 == Told::Done && !is_question(&ended)
        });
    }
    replays.join_all().await.into_iter().filter(|is_served| *is_served).count() as u64
}

fn argument(what: &str) -> String {
    what.replace(' ', "-")
}

fn is_question(ended: &Ended) -> bool {
    matches!(ended, Ended::Answer(message) if message["result"]["inputRequests"] != Value::Null)
}

/// Calls of each principal at once: the rate is spent several times over.
const HAMMER: usize = 240;
const REPLAYS: usize = 30;
