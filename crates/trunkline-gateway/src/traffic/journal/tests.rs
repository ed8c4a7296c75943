//! What is written down of calls, what makes way, and what is bounded.

use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use trunkline_proto::Peer;
use trunkline_recording::line::Side;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Incoming, Message};
use trunkline_wire::method::Method;
use trunkline_wire::revision::Revision;

use super::*;
use crate::trace::Trace;
use crate::traffic::call_log::Stage;
use crate::traffic::{FROM_CLIENT, FROM_SERVER, TO_CLIENT, TO_SERVER, Who};

/// So many milliseconds after all calls began.
fn ms(ms: u64) -> Instant {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BEGAN + Duration::from_millis(ms)
}

fn head() -> Head {
    let who =
        Who { name: None, peer: Arc::new(Peer::default()), conversation: 1, has_session: true };
    Head {
        id: Trace::default(),
        began: ms(0),
        method: Method::ToolsCall.into(),
        revision: Revision::LATEST,
        who,
        is_call: true,
        counts: Side::Client,
    }
}

fn result(bytes: usize) -> Message {
    Message::result(Id::Number(1), Json::string(&"x".repeat(bytes)))
}

impl Journal {
    fn hears(&mut self, number: u64, place: Place, at: u64, message: &Message) -> bool {
        self.say(number, place, ms(at), Heard::of(message, None, &mut Vec::new()))
    }
}

fn ends(outcome: Outcome) -> What {
    What::Ends(Ended { outcome, reason: None, trace: Trace::default() })
}

fn told(journal: &Journal, number: u64) -> Vec<String> {
    let entry = journal.entry(number, Some(0)).unwrap();
    let line = |it: &Said| {
        let side = if it.side == Side::Client { "client" } else { "server" };
        let way = if it.direction == Direction::In { "in" } else { "out" };
        let text = it.message().map_or("-".to_owned(), |it| it.to_text());
        format!("{} {side} {way} {text}", it.at.as_millis())
    };
    entry.log.said.iter().map(line).collect()
}

#[test]
fn calls_that_go_on_together_are_told_apart_and_in_order() {
    let mut journal = Journal::new(10, 1 << 20);
    let lines = [
        (
            FROM_CLIENT,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a.push"}}"#,
        ),
        (TO_SERVER, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"push"}}"#),
        (FROM_SERVER, r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}"#),
        (FROM_SERVER, r#"{"jsonrpc":"2.0","id":1,"result":{"n":1.50}}"#),
        (TO_CLIENT, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"No."}}"#),
    ];
    let numbers = [(); 3].map(|()| journal.begin(head(), true));
    for (at, (place, text)) in lines.iter().enumerate() {
        let Incoming::One(message) = Incoming::parse(text.as_bytes()) else { panic!("{text}") };
        for number in numbers {
            let has_ended = journal.hears(number, *place, at as u64, &message);
            assert!(!has_ended);
        }
        journal.note(numbers[at % 3], ms(at as u64), What::Parks(1));
    }
    let words = ["client in", "server out", "server in", "server in", "client out"];
    let expected: Vec<_> = words
        .iter()
        .zip(lines)
        .enumerate()
        .map(|(at, (place, (_, text)))| format!("{at} {place} {text}"))
        .collect();
    let questions = numbers.map(|number| {
        assert_eq!(told(&journal, number), expected);
        journal.entry(number, None).unwrap().log.questions
    });
    assert_eq!(questions, [2, 2, 1]);
    let without = journal.entry(1, None).unwrap().log.said;
    assert!(without.iter().all(|it| it.text.is_none() && it.size > 30), "{without:?}");
    journal.note(2, ms(9), ends(Outcome::Asked));
    assert_eq!((journal.has_ended(2), journal.is_over(2)), (Some(true), false));
    assert!(journal.hears(2, TO_CLIENT, 9, &result(1)), "the answer comes after the end");
    journal.note(2, ms(9), ends(Outcome::Ok));
    assert_eq!((journal.is_over(2), journal.is_over(3), journal.is_over(99)), (true, false, true));
}

#[test]
fn the_oldest_calls_make_way_for_the_count_and_their_memory_with_them() {
    let mut journal = Journal::new(100, 1 << 30);
    let message = result(1_000);
    for _ in 0..10_000 {
        let number = journal.begin(head(), true);
        journal.hears(number, TO_CLIENT, 1, &message);
    }
    let (calls, bytes) = journal.size();
    assert!((100..=100 + BATCH).contains(&calls) && bytes < 3 * TEXTS, "{calls} {bytes}");
    let oldest = 10_001 - calls as u64;
    assert_eq!((journal.numbers(), journal.dropped()), (oldest..10_001, oldest - 1));
    assert_eq!(told(&journal, oldest).len(), 1);
    assert!(journal.entry(oldest - 1, None).is_none());
    // What happens to a call that is gone is not written down.
    let before = journal.size();
    journal.note(1, ms(1), ends(Outcome::Ok));
    assert!(!journal.hears(1, TO_CLIENT, 1, &message));
    assert_eq!(journal.size(), before);
}

#[test]
fn the_oldest_calls_make_way_for_the_bytes() {
    let mut journal = Journal::new(1_000_000, 1 << 20);
    let message = result(1_000);
    for _ in 0..5_000 {
        let number = journal.begin(head(), true);
        journal.hears(number, FROM_CLIENT, 1, &message);
        journal.hears(number, TO_CLIENT, 2, &message);
    }
    let (calls, bytes) = journal.size();
    assert!(bytes <= 1 << 20 && calls > 200, "{calls} {bytes}");
    assert_eq!(journal.dropped() as usize, 5_000 - calls);
    let every = journal.numbers().all(|it| told(&journal, it).len() == 2);
    assert!(every, "a call is there with all that was said in it, or not at all");
    journal.keep(200_000);
    let (fewer, bytes) = journal.size();
    assert!(fewer > 0 && fewer < calls && bytes <= 200_000, "{fewer} {bytes}");
    // A call that began long ago and goes on is gone with its beginning.
    let long = journal.begin(head(), true);
    for _ in 0..1_000 {
        let number = journal.begin(head(), true);
        journal.hears(number, TO_CLIENT, 1, &message);
    }
    assert_eq!(journal.has_ended(long), None);
}

#[test]
fn without_payloads_only_sizes_are_kept() {
    let mut journal = Journal::new(10, 1 << 20);
    let number = journal.begin(head(), false);
    let params = r#"{"name":"x","arguments":{"key":"hunter2"}}"#;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let text = Heard::text(text.as_bytes());
    journal.say(number, FROM_CLIENT, ms(0), text);
    journal.hears(number, FROM_SERVER, 5, &result(7));
    assert_eq!(told(&journal, number), ["0 client in -", "5 server in -"]);
    let log = journal.entry(number, Some(0)).unwrap().log;
    assert!(log.said[0].size > 60 && log.bytes_in > 60, "{}", log.bytes_in);
    assert_eq!(log.stages(ms(9)).last().map(|it| it.0), Some(Stage::Carry), "it was an answer");
    assert!(journal.older.is_empty() && journal.texts.is_empty());
}

#[test]
fn one_call_takes_no_more_than_its_bounds() {
    let mut journal = Journal::new(10, 64 << 20);
    let (number, large) = (journal.begin(head(), true), result(LARGEST / 2));
    for _ in 0..2 * MOST_MESSAGES {
        journal.hears(number, TO_CLIENT, 1, &large);
    }
    assert!(!journal.has_room_in(number));
    let log = journal.entry(number, Some(0)).unwrap().log;
    assert_eq!(log.said.len(), MOST_MESSAGES as usize);
    assert_eq!(log.said.iter().filter(|it| it.text.is_some()).count(), 7);
    assert_eq!(log.left_out, 2 * MOST_MESSAGES - 7);
    assert!(journal.size().1 < MOST_KEPT + (1 << 20), "{}", journal.size().1);
    let number = journal.begin(head(), true);
    let piece = journal.piece;
    journal.hears(number, TO_CLIENT, 1, &result(LARGEST));
    assert_eq!(told(&journal, number), ["1 client out -"]);
    assert_eq!(journal.piece, piece, "what is not kept needs no room");
    assert_eq!(journal.entry(number, None).unwrap().log.left_out, 1);
    let poll = |journal: &mut Journal| {
        journal.note(number, ms(1), What::Returns);
        journal.note(number, ms(2), What::Enters(Stage::Wait));
    };
    for _ in 0..10_000 {
        poll(&mut journal);
        journal.note(number, ms(3), ends(Outcome::Ok));
    }
    let known = journal.calls.get(number).unwrap().more.as_ref().unwrap().events.len();
    assert!(known <= 1 + MOST_STEPS as usize, "{known}");
    let log = journal.entry(number, None).unwrap().log;
    assert_eq!((log.rounds, log.ended.map(|it| it.0)), (10_001, Some(ms(3))));
    poll(&mut journal);
    let log = journal.entry(number, None).unwrap().log;
    assert_eq!((log.rounds, log.ended.is_some()), (10_002, false), "it goes on");
}

#[test]
fn a_call_is_found_by_its_names_as_long_as_it_is_there() {
    let mut journal = Journal::new(1, 1 << 20);
    let number = journal.begin(head(), true);
    journal.name(number, 77);
    journal.name(number, 78);
    journal.name(9, 79);
    assert_eq!([77, 78, 79].map(|it| journal.named(it)), [Some(number), Some(number), None]);
    let later: Vec<_> = (0..2 * BATCH).map(|_| journal.begin(head(), true)).collect();
    assert!(later.iter().all(|it| *it > number));
    assert_eq!((journal.named(77), journal.names.len()), (None, 0));
}

#[test]
fn each_message_is_written_to_a_file_once() {
    let mut journal = Journal::new(10, 1 << 20);
    let number = journal.begin(head(), true);
    let texts = |(entry, from): (CallEntry, usize)| {
        let said = entry.log.said.iter().map(|it| it.text.is_some()).collect::<Vec<_>>();
        (said, from)
    };
    journal.hears(number, FROM_CLIENT, 0, &result(1));
    assert_eq!(journal.unwritten(number).map(texts), Some((vec![true], 0)));
    journal.hears(number, TO_CLIENT, 1, &result(1));
    assert_eq!(journal.unwritten(number).map(texts), Some((vec![false, true], 1)));
    assert_eq!(journal.unwritten(99).map(texts), None);
}
