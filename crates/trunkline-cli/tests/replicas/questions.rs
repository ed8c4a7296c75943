//! Scene: questions that are asked at one replica and answered at another, between any two revisions.

use std::net::SocketAddr;

use serde_json::json;
use trunkline::Revision;

use crate::client::{Caller, judge};
use crate::figures::{Figures, NEVER, Told};
use crate::load::REVISIONS;
use crate::stage::{PRINCIPALS, Stage};

pub(crate) async fn run() -> Figures {
    let mut figures = Figures::default();
    // Whoever comes first can be asked the most, or the least.
    let newest_first: Vec<_> = REVISIONS.into_iter().rev().collect();
    for revisions in [&newest_first[..], &REVISIONS] {
        let mut stage = Stage::start("questions").await;
        for &revision in revisions {
            for server in ["asks", "new"] {
                figures.merge(&ask_between_all(&stage, revision, server).await);
            }
        }
        stage.tell(&mut figures).await;
    }
    figures.none(NEVER);
    figures
}

/// Calls at each replica that are answered at each.
async fn ask_between_all(stage: &Stage, revision: Revision, server: &str) -> Figures {
    let addresses = stage.addresses();
    let (_, token) = PRINCIPALS[0];
    let name = format!("{revision}-{server}");
    let mut caller = Caller::new(name, token, revision, &addresses).open().await;
    let tool = match revision >= Revision::V2025_06_18 {
        true => format!("{server}.ask"),
        false => format!("{server}.sample"),
    };
    for at in &addresses {
        for then in &addresses {
            // Its turns: the call goes to the first, the answer to the second.
            caller.addresses = turns(&caller, [*at, *then]);
            let before = caller.figures.of("questions");
            let text = caller.unique();
            let ended = caller.call(&tool, json!({}), &text).await;
            let said = judge(&ended, &text);
            assert_eq!(said, (Told::Done, None), "{revision} {tool}: {ended:?}");
            assert_eq!(caller.figures.of("questions"), before + 1, "{revision} {tool}");
        }
    }
    caller.figures
}

/// The addresses in the order in which the next requests go to them.
fn turns(caller: &Caller, order: [SocketAddr; 2]) -> Vec<SocketAddr> {
    let mut turns = order.to_vec();
    turns.rotate_right((caller.turn() + 1) % 2);
    turns
}
