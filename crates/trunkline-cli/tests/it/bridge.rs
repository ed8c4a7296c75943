//! The bridge matrix: every client revision × every server revision and a server of both eras × stdio
//! and HTTP behind the gateway × every feature. A cell works, or what does not is on the list of what cannot be mapped
//! and is told exactly as the list says. `cargo xtask replicas bridge` has three gateways as one in its middle.

mod cells;
mod place;
mod unmapped;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline::Revision;

use cells::{Desk, Part};
use place::{Over, Place, Speaks, Upstream};
use unmapped::{Unmapped, entry};

/// The columns, and what each is made of.
const FEATURES: [(&str, &[Part]); 10] = [
    ("tools", &[Part::Progress, Part::Structured]),
    ("resources", &[Part::Read, Part::Subscription]),
    ("prompts", &[Part::Prompts]),
    ("completion", &[Part::Completion]),
    ("logging", &[Part::Logging]),
    ("cancel", &[Part::Cancellation]),
    ("elicit", &[Part::Form, Part::Rounds, Part::Url]),
    ("sampling", &[Part::Sampling]),
    ("roots", &[Part::Roots]),
    ("tasks", &[Part::Plain, Part::Task, Part::CancelledTask]),
];

/// A row's place in the table, and its cells.
type Row = ((Revision, Speaks, Over), Vec<Cell>);

/// What a cell came to: its letters, and what is wrong with it.
#[derive(Default)]
struct Cell {
    works: bool,
    letters: String,
    wrong: Vec<String>,
}

#[allow(clippy::print_stdout)] // The table is what the test is read for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_revision_reaches_every_revision() {
    let place = Arc::new(Place::open().await);
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut servers = JoinSet::new();
    for upstream in Upstream::all() {
        let (place, turns) = (Arc::clone(&place), Arc::clone(&turns));
        servers.spawn(async move {
            let _turn = turns.acquire_owned().await.expect("nobody closes it");
            // One after the other: on a shared pipe nobody could tell whose a question is.
            let mut rows: Vec<Row> = Vec::new();
            for client in Revision::ALL {
                let cells = row(&place, client, upstream).await;
                rows.push(((client, upstream.speaks, upstream.over), cells));
            }
            rows
        });
    }
    let mut rows = BTreeMap::new();
    while let Some(done) = servers.join_next().await {
        rows.extend(done.expect("a row does not panic"));
    }
    let (table, wrong) = table(&rows);
    println!("{table}");
    assert_eq!(rows.len(), 60, "5 × 6 × 2 rows");
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// All features between one client and one server.
async fn row(place: &Place, client: Revision, upstream: Upstream) -> Vec<Cell> {
    let mut cells = Vec::new();
    let opened = timeout(PATIENCE, Desk::open(place, client, upstream)).await;
    let desk = match opened {
        Ok(Ok(desk)) => desk,
        Ok(Err(why)) => return broken(&why),
        Err(_) => return broken("The client did not connect in time."),
    };
    for (_, parts) in FEATURES {
        let mut cell = Cell::default();
        for part in parts {
            let outcome = timeout(PATIENCE, desk.play(*part)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(cells::late(*part)));
            match (outcome, entry(*part, client, upstream.revision(client))) {
                (Ok(()), None) => cell.works = true,
                (Err(told), Some(Unmapped { letter, told: expected, .. }))
                    if expected.is(&told) =>
                {
                    if !cell.letters.contains(*letter) {
                        cell.letters.push(*letter);
                    }
                }
                (outcome, expected) => {
                    let expected = expected.map(|it| &it.told);
                    cell.wrong.push(format!("{part:?}: {outcome:?}; expected: {expected:?}"));
                }
            }
        }
        cells.push(cell);
    }
    cells
}

fn broken(why: &str) -> Vec<Cell> {
    let cell = || Cell { wrong: vec![why.to_owned()], ..Cell::default() };
    FEATURES.iter().map(|_| cell()).collect()
}

/// The table, and a line for each cell that is wrong.
fn table(rows: &BTreeMap<(Revision, Speaks, Over), Vec<Cell>>) -> (String, Vec<String>) {
    let (mut table, mut wrong, mut counts) = (String::new(), Vec::new(), [0; 3]);
    let _ = write!(table, "\n{:29}", "client → server");
    for (name, _) in FEATURES {
        let _ = write!(table, "{name:>11}");
    }
    for ((client, server, over), cells) in rows {
        let name = format!("{client} → {server}");
        let _ = write!(table, "\n{name:23}{over:>6}");
        for ((feature, _), cell) in FEATURES.iter().zip(cells) {
            let mark = match (cell.wrong.is_empty(), cell.works) {
                (false, _) => "✗",
                (true, true) => "✓",
                (true, false) => "",
            };
            counts[match (mark, cell.letters.is_empty()) {
                ("✗", _) => 2,
                (_, true) => 0,
                _ => 1,
            }] += 1;
            let _ = write!(table, "{:>11}", format!("{mark}{}", cell.letters));
            let lines = cell.wrong.iter().map(|it| format!("{name} {over} {feature}: {it}"));
            wrong.extend(lines);
        }
    }
    let [good, listed, bad] = counts;
    let _ = write!(table, "\n\n{good} cells work, {listed} are listed, {bad} are wrong.\n");
    for Unmapped { letter, why, told, .. } in unmapped::UNMAPPED {
        let _ = write!(table, "\n{letter}: {why}\n   {told}");
    }
    (table, wrong)
}

/// How many servers are talked to at once.
const AT_ONCE: usize = 4;
const PATIENCE: Duration = Duration::from_secs(30);
