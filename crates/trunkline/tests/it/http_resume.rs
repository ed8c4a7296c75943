//! Streams that break off, and clients that resume them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::{Args, Context, Limits, Revision, tool};
use trunkline_testkit::http::{Event, Guest, Line};
use trunkline_testkit::{Dice, repeats};

use crate::http::House;
use crate::server::{builder, soon};

const LEGACY: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

#[derive(Deserialize, JsonSchema)]
struct Steps {
    steps: u32,
}

/// Counts, and yields now and then so that events are sent in chunks of every size.
async fn count(cx: Context, Args(it): Args<Steps>) -> String {
    for step in 1..=it.steps {
        cx.progress(step, it.steps).await;
        if step % 3 == 0 {
            tokio::task::yield_now().await;
        }
    }
    format!("counted to {}", it.steps)
}

fn counting(guest: &mut Guest, steps: u32) -> Value {
    let params = json!({
        "name": "count",
        "arguments": { "steps": steps },
        "_meta": { "progressToken": "t" },
    });
    guest.prepare("tools/call", params)
}

/// The step of an event of a count, or the end.
fn step(message: &Value, steps: u32) -> u32 {
    match message["params"]["progress"].as_f64() {
        Some(step) => step as u32,
        None => {
            let text = message["result"]["content"][0]["text"].as_str();
            assert_eq!(text, Some(&*format!("counted to {steps}")), "{message}");
            steps + 1
        }
    }
}

/// Reads up to `most` events, records their ids, and returns whether the stream is over.
async fn read(line: &mut Line, most: u64, steps: u32, had: &mut Vec<(u32, String)>) -> bool {
    for _ in 0..most {
        let Some(event) = line.event().await else { return true };
        let id = event.id.clone().expect("every event can be asked for again");
        if event.data.is_empty() {
            had.push((0, id));
            continue;
        }
        let message = serde_json::from_str(&event.data).unwrap();
        had.push((step(&message, steps), id));
    }
    false
}

async fn counting_house(limits: Limits) -> House {
    House::of(&builder().limits(limits).tool(tool("count", count)).build()).await
}

/// Counts on one stream, and returns all that came over it.
async fn counted(guest: &mut Guest, steps: u32) -> Vec<(u32, String)> {
    let asked = counting(guest, steps);
    let (mut line, _) = guest.post(&asked).await;
    let mut had = Vec::new();
    assert!(read(&mut line, 99, steps, &mut had).await);
    had
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_goes_on_where_it_was_under_stress() {
    let house = counting_house(Limits::default()).await;
    let rounds = repeats(1000, 20_000);
    let mut dice = Dice(0x5eed_0005);
    let mut guests = Vec::new();
    for revision in LEGACY {
        guests.push(Guest::open(house.address, revision).await);
    }
    let (mut cuts, mut events) = (0, 0);
    for round in 0..rounds {
        let guest = &mut guests[round % LEGACY.len()];
        let steps = 1 + dice.below(30) as u32;
        let asked = counting(guest, steps);
        let (mut line, head) = guest.post(&asked).await;
        assert!(head.is_events(), "{head:?}");
        let mut had = Vec::new();
        let mut over = read(&mut line, 1 + dice.below(u64::from(steps) + 2), steps, &mut had).await;
        while !over {
            // Really closed: with unread data this resets the connection.
            drop(line);
            cuts += 1;
            let last = had.last().map(|(_, id)| id.clone());
            let (next, head) = guest.get(last.as_deref()).await;
            line = next;
            if head.status == 204 {
                // There is nothing after the answer, and a client that resumes there is told so.
                assert_eq!(had.last().map(|it| it.0), Some(steps + 1), "round {round}");
                break;
            }
            assert_eq!(head.status, 200);
            over = read(&mut line, 1 + dice.below(u64::from(steps) + 2), steps, &mut had).await;
        }
        let got: Vec<_> = had.iter().map(|(step, _)| *step).filter(|step| *step > 0).collect();
        let expected: Vec<_> = (1..=steps + 1).collect();
        assert_eq!(got, expected, "round {round} in {}", guest.revision);
        events += got.len();
    }
    assert!(cuts >= rounds / 2, "only {cuts} streams were cut in {rounds} rounds");
    assert!(events > rounds, "{events} events");
}

#[tokio::test]
async fn a_place_can_be_asked_for_twice_and_gives_the_same_again() {
    let house = counting_house(Limits::default()).await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let had = counted(&mut guest, 9).await;
        for (place, id) in had.iter().filter(|(step, _)| *step > 0) {
            let mut again = Vec::new();
            let (mut line, head) = guest.get(Some(id)).await;
            // After the answer there is nothing.
            assert_eq!(head.status, if *place == 10 { 204 } else { 200 });
            assert!(read(&mut line, 99, 9, &mut again).await);
            let rest: Vec<_> = had.iter().filter(|(step, _)| step > place).cloned().collect();
            assert_eq!(again, rest, "after {place} in {revision}");
        }
    }
}

#[tokio::test]
async fn an_id_that_was_not_given_out_yields_nothing() {
    let house = counting_house(Limits::default()).await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let mut other = Guest::open(house.address, revision).await;
        let mut streams = Vec::new();
        for who in [&mut guest, &mut other] {
            for _ in 0..2 {
                let had = counted(who, 5).await;
                streams.push(had.into_iter().filter(|it| it.0 == 2).map(|it| it.1).next().unwrap());
            }
        }
        let (mine, sibling, foreign) = (&streams[0], &streams[1], &streams[2]);
        let mut forged =
            vec![foreign.clone(), String::new(), "0".to_owned(), mine.to_uppercase() + "0"];
        // The tag of one stream with the name of another, and of one position with its neighbours.
        let parts = |id: &str| id.split('-').map(str::to_owned).collect::<Vec<_>>();
        let (a, b) = (parts(mine), parts(sibling));
        forged.push(format!("{}-{}-{}", b[0], a[1], a[2]));
        forged.push(format!("{}-{}-{}", a[0], a[1], b[2]));
        for place in ["0", "1", "3", "4", "ffffffffffffffff"] {
            forged.push(format!("{}-{place}-{}", a[0], a[2]));
        }
        forged.push(format!("0-{}-{}", a[1], a[2]));
        for at in 0..mine.len() {
            for bit in 0..7 {
                let mut bytes = mine.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                if let Some(text) = String::from_utf8(bytes).ok().filter(|it| is_header(it)) {
                    forged.push(text);
                }
            }
        }
        for id in forged {
            let (mut line, head) = guest.get(Some(&id)).await;
            assert_eq!(head.status, 204, "{id}");
            assert_eq!(line.body().await, b"", "{id} in {revision}");
        }
        // The real stream is unaffected.
        let mut had = Vec::new();
        let (mut line, _) = guest.get(Some(mine)).await;
        assert!(read(&mut line, 99, 5, &mut had).await);
        assert_eq!(had.iter().map(|it| it.0).collect::<Vec<_>>(), [3, 4, 5, 6]);
        // And no other session can resume it.
        let (_, head) = Guest { session: None, ..guest.clone() }.get(Some(mine)).await;
        assert_eq!(head.status, 400);
        let (_, head) =
            Guest { session: Some("x".to_owned()), ..guest.clone() }.get(Some(mine)).await;
        assert_eq!(head.status, 404);
    }
}

fn is_header(text: &str) -> bool {
    text.trim() == text && text.bytes().all(|it| (0x21..0x7f).contains(&it))
}

#[tokio::test]
async fn what_is_too_old_is_gone_and_the_rest_is_not() {
    let limits = Limits::default().replay_events(8);
    let house = counting_house(limits).await;
    let mut guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let had = counted(&mut guest, 50).await;
    let id_of = |step| &had.iter().find(|it| it.0 == step).unwrap().1;
    let mut again = Vec::new();
    let (mut line, _) = guest.get(Some(id_of(45))).await;
    assert!(read(&mut line, 99, 50, &mut again).await);
    assert_eq!(again.iter().map(|it| it.0).collect::<Vec<_>>(), [46, 47, 48, 49, 50, 51]);
    again.clear();
    let (mut line, _) = guest.get(Some(id_of(3))).await;
    assert!(read(&mut line, 99, 50, &mut again).await);
    assert!(again.len() <= 8, "{again:?}");
    assert!(again.is_sorted(), "{again:?}");
}

#[tokio::test]
async fn a_stream_that_is_over_is_forgotten_after_its_time() {
    let limits = Limits::default()
        .replay_keep(Duration::from_millis(50))
        .session_sweep(Duration::from_millis(10));
    let house = counting_house(limits).await;
    let mut guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let had = counted(&mut guest, 3).await;
    let first = had[0].1.clone();
    let gone = async {
        loop {
            let (mut line, head) = guest.get(Some(&first)).await;
            match head.status {
                204 => return,
                status => assert_eq!(status, 200),
            }
            line.body().await;
        }
    };
    soon(gone).await;
}

#[tokio::test]
async fn work_goes_on_while_nobody_reads() {
    for revision in LEGACY {
        let (go, gone) =
            (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let gate = Arc::clone(&go);
        let done = Arc::clone(&gone);
        let slow = move |cx: Context| {
            let (gate, done) = (Arc::clone(&gate), Arc::clone(&done));
            async move {
                cx.progress(1.0, 3.0).await;
                gate.notified().await;
                cx.progress(2.0, 3.0).await;
                done.notify_one();
                "done"
            }
        };
        let server = builder().tool(tool("slow", slow)).build();
        let house = House::of(&server).await;
        let mut guest = Guest::open(house.address, revision).await;
        let params = json!({ "name": "slow", "_meta": { "progressToken": 7 } });
        let asked = guest.prepare("tools/call", params);
        let (mut line, _) = guest.post(&asked).await;
        let (event, _) = line.message().await.unwrap();
        drop(line);
        go.notify_one();
        // The handler ends although no client is connected, which is not a cancellation.
        soon(gone.notified()).await;
        let (mut line, head) = guest.get(event.id.as_deref()).await;
        let answer = guest.answer(&asked, &mut line, head).await;
        assert_eq!(answer.before.len(), 1, "{answer:?}");
        assert_eq!(answer.before[0]["params"]["progress"], 2.0);
        assert_eq!(answer.message["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test]
async fn a_call_that_pauses_is_asked_for_later() {
    let (go, gate) = tokio::sync::watch::channel(false);
    let polled = move |cx: Context| {
        let mut gate = gate.clone();
        async move {
            cx.pause_stream(Duration::from_millis(5)).await;
            gate.wait_for(|open| *open).await.unwrap();
            cx.progress(1.0, 1.0).await;
            "later"
        }
    };
    let server = builder().tool(tool("polled", polled)).build();
    let house = House::of(&server).await;
    let mut guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let params = json!({ "name": "polled", "_meta": { "progressToken": 7 } });
    let asked = guest.prepare("tools/call", params);
    let (mut line, head) = guest.post(&asked).await;
    assert!(head.is_events());
    let Event { id, retry, data, .. } = line.event().await.unwrap();
    assert_eq!((retry, &*data), (Some(5), ""));
    assert_eq!(line.event().await, None, "the stream ends before the answer is there");
    let (mut line, head) = guest.get(id.as_deref()).await;
    go.send(true).unwrap();
    let answer = guest.answer(&asked, &mut line, head).await;
    assert_eq!(answer.before.len(), 1);
    assert_eq!(answer.message["result"]["content"][0]["text"], "later");
    // Without resumption, a pause does nothing.
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2026_07_28] {
        let mut guest = Guest::open(house.address, revision).await;
        assert_eq!(guest.tool("polled", json!({})).await, "later", "{revision}");
    }
}
