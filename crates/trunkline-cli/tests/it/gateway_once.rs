//! Whatever an HTTP server does, it carries a call out at most once, and the caller is told no more than is known.

mod upstream;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::json;
use tokio::task::JoinSet;
use trunkline::Revision;
use trunkline_testkit::http::Guest;
use trunkline_testkit::repeats;

use crate::gateway_kit::{Caller, Gateway, Heard, Place};
use upstream::{Upstream, Way};

/// What a caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    /// The result.
    Result,
    /// An error of the server's own.
    Error,
    /// That nothing was done.
    No,
    /// That nobody knows.
    Unknown,
}

use Told::{Error, No, Result, Unknown};
use Way::{Alone, Session, Sse};

/// What servers do with a call, in which ways of HTTP they can, and what may be told of it. `docs/gateway.md` has the
/// same table in words, under "What `done` says".
const ROWS: &[(&str, &[Way], &[Told])] = &[
    // Answers.
    ("answer", &[Sse, Session, Alone], &[Result]),
    ("events events_twice", &[Session, Alone], &[Result]),
    ("said_twice", &[Sse], &[Result]),
    ("stream_dies", &[Session], &[Result]),
    ("close_after", &[Sse, Session, Alone], &[Result]),
    ("reset_after", &[Session, Alone], &[Result, Unknown]),
    // A status with the answer in its body.
    ("400_result 404_result 429_result 500_result", &[Sse, Session, Alone], &[Result]),
    ("400_error 403_error 404_error 500_error", &[Sse, Session, Alone], &[Error]),
    // A status with an error for nobody, or for somebody else.
    ("400_null", &[Sse, Session, Alone], &[Error]),
    ("404_null", &[Sse, Alone], &[Error]),
    ("404_null", &[Session], &[Unknown]),
    ("500_null", &[Sse, Session, Alone], &[Error]),
    ("400_other 404_other 500_other", &[Sse, Session, Alone], &[Unknown]),
    // A status alone, of a server that did the work before.
    (
        "400_bare 403_bare 404_bare 404_page 408_bare 409_bare 422_bare 500_bare 502_page 503_bare 504_bare",
        &[Sse, Session, Alone],
        &[Unknown],
    ),
    // A status by which HTTP says that nothing was done.
    (
        "refused_401 refused_405 refused_413 refused_415 refused_421 refused_429",
        &[Sse, Session, Alone],
        &[No],
    ),
    // Redirects.
    ("redirect_307", &[Session, Alone], &[Result]),
    ("redirect_loop", &[Session, Alone], &[No]),
    ("redirect_away", &[Sse, Session, Alone], &[No]),
    ("redirect_302", &[Sse, Session, Alone], &[Unknown]),
    // Connections that end.
    ("reset_unread reset_before close_before", &[Sse, Session, Alone], &[Unknown]),
    (
        "reset_head close_head reset_body close_body events_cut events_reset events_other",
        &[Session, Alone],
        &[Unknown],
    ),
    ("stream_dies_silently", &[Sse], &[Unknown]),
    // No answer where one should be.
    ("empty page untyped gzip accepted", &[Session, Alone], &[Unknown]),
    ("accepted_late", &[Session], &[Result, Unknown]),
    ("accepted_late", &[Sse], &[Result]),
    // The answer came another way, and then the request fails.
    ("404_said said_and_500 said_and_reset", &[Sse, Session], &[Result, Unknown]),
    // Sessions that are lost.
    ("lost", &[Session], &[Result]),
    ("lost_twice lost_then_no", &[Session], &[Unknown]),
];

/// What a server may do in this way, one by one, and what may be told of each.
fn rows_in(way: Way) -> impl Iterator<Item = (&'static str, &'static [Told])> {
    let rows = ROWS.iter().filter(move |(_, ways, _)| ways.contains(&way));
    rows.flat_map(|(all, _, told)| all.split(' ').map(|how| (how, *told)))
}

const REVISIONS: [Revision; 5] = [
    Revision::V2024_11_05,
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

/// A gateway before one server.
struct Stage {
    upstream: Upstream,
    gateway: Gateway,
    _place: Place,
}

impl Stage {
    async fn new(revision: Revision) -> Self {
        let upstream = Upstream::start(revision).await;
        let place = Place::new("once");
        place.catalog(&json!({ "mcpServers": { "up": { "url": upstream.url() } } }));
        let gateway = Gateway::start(&place).await;
        Self { upstream, gateway, _place: place }
    }

    async fn caller(&self, revision: Revision) -> Caller {
        let guest = Guest::open(self.gateway.address, revision).await;
        Caller::new(guest).await
    }
}

/// What a call came to. An answer to another call, or none, is a failure of the test.
async fn call(caller: &mut Caller, tool: &str, key: u64, how: &str) -> (Told, Heard) {
    let arguments = json!({ "key": key, "how": how });
    let heard = caller.call(tool, arguments, json!({})).await;
    let heard = heard.unwrap_or_else(|| panic!("`{how}` was not answered"));
    let told = match (heard.text(), heard.message["error"]["data"]["done"].as_str()) {
        (Some(text), _) => {
            assert_eq!(text, format!("did {key}"), "{}", heard.message);
            Result
        }
        (None, Some("no")) => No,
        (None, Some("unknown")) => Unknown,
        (None, Some(_)) => panic!("{}", heard.message),
        (None, None) => {
            assert_eq!(heard.message["error"]["message"], "It failed.", "{}", heard.message);
            Error
        }
    };
    (told, heard)
}

#[tokio::test]
async fn each_thing_a_server_can_do_is_told_as_the_table_says() {
    let mut wrong = Vec::new();
    let stages: JoinSet<Vec<String>> = REVISIONS.into_iter().map(rows_of).collect();
    for found in stages.join_all().await {
        wrong.extend(found);
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn rows_of(revision: Revision) -> Vec<String> {
    let stage = Stage::new(revision).await;
    let mut callers =
        [stage.caller(Revision::V2025_11_25).await, stage.caller(Revision::V2026_07_28).await];
    let mut wrong = Vec::new();
    for (key, (how, allowed)) in (0..).zip(rows_in(Way::of(revision))) {
        let (told, heard) = call(&mut callers[key as usize % 2], "up.work", key, how).await;
        let times = stage.upstream.executed(key);
        let is_true = match told {
            Result => times == 1,
            No => times == 0,
            Error | Unknown => times <= 1,
        };
        if !is_true || !allowed.contains(&told) {
            let message = &heard.message;
            wrong.push(format!(
                "{revision} {how}: told {told:?} where {allowed:?} is right, executed {times} times: {message}"
            ));
        }
    }
    wrong
}

#[tokio::test]
async fn what_cannot_be_reached_was_not_done() {
    for revision in REVISIONS {
        let stage = Stage::new(revision).await;
        let mut caller = stage.caller(Revision::V2025_11_25).await;
        assert_eq!(call(&mut caller, "up.work", 1, "close_after").await.0, Result);
        stage.upstream.stop();
        // A connection that was kept may take the first of them before it is known to be closed.
        let mut told = Vec::new();
        for key in 2..6 {
            told.push(call(&mut caller, "up.work", key, "answer").await.0);
            assert_eq!(stage.upstream.executed(key), 0);
        }
        assert!(told.ends_with(&[No, No]), "{revision}: {told:?}");
        assert!(told.iter().all(|it| matches!(it, No | Unknown)), "{revision}: {told:?}");
    }
}

#[tokio::test]
async fn what_may_be_repeated_is_and_a_repetition_that_was_not_made_does_not_undo_the_first() {
    for revision in REVISIONS {
        let stage = Stage::new(revision).await;
        let mut caller = stage.caller(Revision::V2025_11_25).await;
        let (told, _) = call(&mut caller, "up.again", 1, "reset_before").await;
        assert_eq!(told, Unknown);
        assert!(stage.upstream.executed(1) > 1, "{revision}: it says that it may be repeated");
        let (told, heard) = call(&mut caller, "up.again", 2, "reset_and_stop").await;
        assert_eq!(stage.upstream.executed(2), 1);
        assert_eq!(told, Unknown, "{revision}: {}", heard.message);
    }
}

#[tokio::test]
async fn a_process_that_ends_in_a_call_was_asked_once_and_nobody_knows() {
    let place = Place::new("once");
    let words = place.fake("up", &[]);
    place.catalog(&json!({ "mcpServers": { "up": { "command": words[0], "args": words[1..] } } }));
    let gateway = Gateway::start(&place).await;
    let mut caller = Caller::new(Guest::open(gateway.address, Revision::V2025_11_25).await).await;
    for times in 1..=2 {
        let heard = caller.call("up.crash", json!({ "code": 3 }), json!({})).await;
        let message = heard.expect("it is answered").message;
        assert_eq!(message["error"]["data"]["done"], "unknown", "{message}");
        let calls = place.log().of("call").into_iter();
        assert_eq!(calls.filter(|it| it["tool"] == "crash").count(), times, "{message}");
    }
    let heard = caller.call("up.echo", json!({ "text": "here" }), json!({})).await;
    assert_eq!(heard.expect("it is answered").text(), Some("here"));
}

/// What many calls came to.
#[derive(Default)]
struct Tally {
    told: BTreeMap<Told, usize>,
    wrong: Vec<String>,
    twice: usize,
}

/// The rows of a revision that may meet each other. A server that does the work, says 404, and then forgets the session
/// cannot be told from one that forgot the session and did nothing, so no server does both.
fn parts_of(revision: Revision) -> Vec<(Revision, Vec<&'static str>)> {
    let way = Way::of(revision);
    let rows = rows_in(way).map(|it| it.0);
    let all: Vec<_> = rows.collect();
    let without = |word: &str| all.iter().copied().filter(|it| !it.contains(word)).collect();
    match way {
        Session => vec![(revision, without("lost")), (revision, without("404"))],
        _ => vec![(revision, all)],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figures are what a soak is run for.
async fn many_calls_at_once_run_at_most_once_each() {
    let (clients, calls) = (8, repeats(140, 1_000));
    let (mut all, mut made, began) = (Tally::default(), 0, Instant::now());
    for (revision, rows) in REVISIONS.into_iter().flat_map(parts_of) {
        let calls = if Way::of(revision) == Session { calls / 2 } else { calls };
        let stage = Arc::new(Stage::new(revision).await);
        let (rows, next) = (Arc::new(rows), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for client in 0..clients {
            let (stage, rows, next) = (Arc::clone(&stage), Arc::clone(&rows), Arc::clone(&next));
            tasks.spawn(async move {
                let as_of = [Revision::V2025_11_25, Revision::V2026_07_28][client % 2];
                let mut caller = stage.caller(as_of).await;
                let mut heard = Vec::new();
                loop {
                    let key = next.fetch_add(1, Ordering::Relaxed);
                    if key >= calls as u64 {
                        return heard;
                    }
                    // Each way to misbehave meets all others in time.
                    let at = key as usize;
                    let how = rows[(at + at / rows.len() * 5) % rows.len()];
                    let (told, said) = call(&mut caller, "up.work", key, how).await;
                    heard.push((key, how, told, said.message));
                }
            });
        }
        let mut tally = Tally::default();
        for (key, how, told, said) in tasks.join_all().await.into_iter().flatten() {
            let times = stage.upstream.executed(key);
            tally.twice += usize::from(times > 1);
            *tally.told.entry(told).or_default() += 1;
            if times > 1 || (told == Result && times == 0) || (told == No && times > 0) {
                tally.wrong.push(format!("{revision} {how}: {told:?}, executed {times}: {said}"));
            }
        }
        let (answered, executed) =
            (tally.told.values().sum::<usize>(), stage.upstream.executions());
        println!(
            "{revision}: {answered} calls answered once each, {:?}; {executed} executions, {} executed twice, \
             {} told wrongly",
            tally.told,
            tally.twice,
            tally.wrong.len()
        );
        assert_eq!(answered, calls);
        made += answered;
        all.wrong.extend(tally.wrong);
        all.twice += tally.twice;
    }
    println!(
        "{made} calls in {:.1?}: {} executed twice, {} told wrongly",
        began.elapsed(),
        all.twice,
        all.wrong.len()
    );
    assert!(
        all.wrong.is_empty(),
        "{} were told wrongly:\n{}",
        all.wrong.len(),
        all.wrong.join("\n")
    );
}
