//! Races, many times over; `cargo xtask soak` runs them far more often.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use trunkline_testkit::{Dice, repeats};

use super::figure;
use super::server::{ERAS, sentinel, sleep};
use crate::stdio::Session;

#[tokio::test]
async fn cancellations_race_with_their_answers_and_nobody_is_answered_twice() {
    for revision in ERAS {
        let mut session = Session::demo(revision).await;
        let peer = &mut session.peer;
        let mut dice = Dice(revision as u64 + 1);
        let (mut replied, mut silent) = (0, 0);
        let rounds = repeats(20, 2000);
        for _ in 0..rounds {
            let (mut called, mut cancelled) = (HashSet::new(), HashSet::new());
            for _ in 0..50 {
                let params = match dice.below(5) {
                    0 => json!({ "name": "echo", "arguments": { "text": "now" } }),
                    ms => sleep(ms - 1),
                };
                let id = peer.request("tools/call", params).await.as_i64().unwrap();
                called.insert(id);
                // Any of the open ones, this one mostly; once in a while the same one again.
                if dice.below(3) > 0 {
                    let target = id - dice.below(4) as i64;
                    if called.contains(&target) {
                        peer.cancel(&json!(target)).await;
                        cancelled.insert(target);
                    }
                }
            }
            let last = json!({ "name": "echo", "arguments": { "text": "last" } });
            let last = peer.request("tools/call", last).await;
            let mut answers: HashMap<i64, usize> = HashMap::new();
            let mut missing: HashSet<i64> = called.difference(&cancelled).copied().collect();
            let mut all_read = false;
            while !(all_read && missing.is_empty()) {
                let message = peer.next().await;
                if message["id"] == last {
                    all_read = true;
                    continue;
                }
                let id = message["id"].as_i64().unwrap();
                assert!(message.get("result").is_some(), "{message}");
                assert!(!(all_read && cancelled.contains(&id)), "{id} was answered after its end");
                *answers.entry(id).or_default() += 1;
                missing.remove(&id);
            }
            assert!(answers.values().all(|count| *count == 1), "{answers:?}");
            replied += answers.len();
            silent += called.len() - answers.len();
        }
        sentinel(peer).await;
        assert_eq!(replied + silent, rounds * 50);
        figure("races answered, silent", format!("{replied}, {silent}"));
        assert!(replied > 100 && silent > 100, "both ends of the race must occur");
        session.end().await;
    }
}
