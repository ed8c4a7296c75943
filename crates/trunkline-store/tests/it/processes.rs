//! Several processes in one folder at once.

use std::time::Duration;

use trunkline_store::{Expect, Folder, Store, Swap};

use crate::backend::Scratch;
use crate::child;

const PROCESSES: u64 = 4;
const COUNTS: i64 = 30;
const TICKETS: u64 = 20;
const TURNS: u64 = 8;

#[tokio::test]
async fn processes_count_create_and_lease_without_stepping_on_each_other() {
    if let Some((folder, number)) = child::role() {
        return work(Folder::open(folder).await.expect("it opens"), number).await;
    }
    let scratch = Scratch::new();
    let name = "processes::processes_count_create_and_lease_without_stepping_on_each_other";
    let children: Vec<_> =
        (0..PROCESSES).map(|number| child::start(name, scratch.path(), number)).collect();
    let mut won = Vec::new();
    for child in children {
        let output = child.wait_with_output().expect("the child is ours");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let lines = String::from_utf8(output.stdout).expect("it speaks UTF-8");
        won.extend(lines.lines().filter_map(child::told).map(str::to_owned));
    }
    won.sort();
    let mut tickets: Vec<_> = (0..TICKETS).map(|ticket| format!("won {ticket}")).collect();
    tickets.sort();
    assert_eq!(won, tickets, "each ticket is won once");

    let store = Folder::open(scratch.path()).await.expect("it opens");
    let counted = store.count("n", 0, None).await.expect("count");
    assert_eq!(counted, PROCESSES as i64 * COUNTS);
    let turns = store.get("turns").await.expect("get").expect("it was written");
    let turns = String::from_utf8(turns.value.to_vec()).expect("numbers");
    let fences: Vec<u64> = turns.split_whitespace().map(|n| n.parse().expect("a fence")).collect();
    assert_eq!(fences.len() as u64, PROCESSES * TURNS, "no turn was lost");
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    assert_eq!(store.damaged(), []);
}

async fn work(store: Folder, number: u64) {
    for round in 0..COUNTS {
        store.count("n", 1, None).await.expect("count");
        // Each begins with another ticket.
        let ticket = (round as u64 + number * 5) % TICKETS;
        let swap = store.swap(&format!("ticket/{ticket}"), Expect::Absent, b"", None).await;
        if matches!(swap.expect("swap"), Swap::Done(_)) {
            child::tell(&format!("won {ticket}"));
        }
    }
    let mut turns = 0;
    while turns < TURNS {
        let lease = store.lease("turn", Duration::from_secs(300)).await.expect("lease");
        let Some(lease) = lease else {
            tokio::task::yield_now().await;
            continue;
        };
        // Separate read and write: only the lease prevents writes in between.
        let before = store.get("turns").await.expect("get");
        let mut text = before.map(|entry| entry.value.to_vec()).unwrap_or_default();
        text.extend(format!("{} ", lease.fence()).as_bytes());
        store.put("turns", &text, None).await.expect("put");
        assert!(store.release(&lease).await.expect("release"));
        turns += 1;
    }
}
