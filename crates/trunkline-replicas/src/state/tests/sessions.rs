//! Claims, and what becomes of them.

use trunkline_store::Expect;

use super::*;

#[test]
fn a_new_session_is_served_at_once_and_written_again_if_the_store_lost_it() {
    let mut desk = Desk::leased(&[]);
    let lost = desk.open("s");
    desk.take("to own it", is_own);
    let request = desk.locate("s", "me");
    assert_eq!(desk.verdict(request), Some(Verdict::Here));
    desk.pass(200);
    desk.answer("to check it", is_read, Answer::Record(None));
    let swap = desk.answer("to write it again", is_swap, Answer::Conflict(None));
    assert!(matches!(swap, Output::Swap { expect, .. } if expect == Expect::Version(lost)));
    let version = desk.next_version();
    let swap = desk.answer("to write it anew", is_swap, Answer::Swapped(version));
    assert!(matches!(swap, Output::Swap { expect: Expect::Absent, .. }));
    desk.pass(200);
    let found = Some((record_of("me", 1), version));
    desk.answer("to check it", is_read, Answer::Record(found));
    assert!(!desk.out.iter().any(is_disown));
    assert!(desk.state.has_settled(&"s".into()));
}

#[test]
fn after_a_lapse_a_session_is_claimed_again_before_it_is_served() {
    for is_taken in [false, true] {
        let (mut desk, opened) = Desk::serving(&["a"]);
        desk.pass(4_500);
        desk.beat(&["a"]);
        desk.out.clear();
        let request = desk.locate("s", "me");
        assert_eq!(desk.verdict(request), None);
        if is_taken {
            let found = Some((record_of("a", 2), Version::new(102)));
            desk.answer("to claim it", is_swap, Answer::Conflict(found));
            desk.take("to disown it", is_disown);
            assert_eq!(desk.verdict(request), Some(Verdict::At(owner("a"))));
            continue;
        }
        let version = desk.next_version();
        let swap = desk.answer("to claim it", is_swap, Answer::Swapped(version));
        assert!(matches!(swap, Output::Swap { expect, .. } if expect == Expect::Version(opened)));
        assert_eq!(desk.verdict(request), None, "it has not settled");
        desk.pass(200);
        let found = Some((record_of("me", 1), version));
        desk.answer("to check it", is_read, Answer::Record(found));
        assert_eq!(desk.verdict(request), Some(Verdict::Here));
        let own = desk.take("to own it", is_own);
        assert_eq!(own, Output::Own { session: "s".into(), epoch: 1, generation: 2 });
    }
}

#[test]
fn a_record_that_is_gone_after_a_lapse_is_not_written_anew() {
    let (mut desk, _) = Desk::serving(&[]);
    desk.pass(4_500);
    desk.beat(&[]);
    let request = desk.locate("s", "me");
    // Whoever took it over may have ended it.
    desk.answer("to claim it", is_swap, Answer::Conflict(None));
    assert!(!desk.out.iter().any(is_swap));
    desk.take("to disown it", is_disown);
    assert_eq!(desk.verdict(request), Some(Verdict::Gone));
}

#[test]
fn a_write_from_before_a_lapse_brings_nothing_back() {
    let (mut desk, _) = Desk::serving(&[]);
    desk.tell(Input::Update { session: "s".into(), body: "more".into() });
    let write = desk.take("to write it", is_swap).op().unwrap();
    desk.pass(4_500);
    desk.beat(&[]);
    // Whoever took it over meanwhile has ended it.
    desk.tell(Input::Done { op: write, answer: Answer::Conflict(None) });
    assert!(!desk.out.iter().any(is_swap));
    desk.take("to disown it", is_disown);
}

#[test]
fn changes_are_written_one_after_another_and_the_last_wins() {
    let (mut desk, _) = Desk::serving(&[]);
    for body in ["one", "two", "three"] {
        desk.tell(Input::Update { session: "s".into(), body: body.into() });
    }
    let body = |output: &Output| match output {
        Output::Swap { record, .. } => record.body.to_string(),
        other => panic!("{other:?}"),
    };
    let version = desk.next_version();
    let first = desk.answer("to write it", is_swap, Answer::Swapped(version));
    assert_eq!(body(&first), "one");
    let second = desk.take("to write it", is_swap);
    assert_eq!(body(&second), "three");
    // Nobody answers; it is written again later.
    desk.tell(Input::Done { op: second.op().unwrap(), answer: Answer::Away });
    assert!(!desk.out.iter().any(is_swap));
    desk.pass(1_000);
    let third = desk.take("to write it", is_swap);
    assert_eq!(body(&third), "three");
    // It had been written after all.
    let found = Some((record_of("me", 1), Version::new(103)));
    desk.tell(Input::Done { op: third.op().unwrap(), answer: Answer::Conflict(found) });
    let fourth = desk.take("to write it", is_swap);
    let expected = Expect::Version(Version::new(103));
    assert!(matches!(fourth, Output::Swap { expect, .. } if expect == expected));
}

#[test]
fn a_session_in_use_is_written_every_half_minute() {
    let (mut desk, _) = Desk::serving(&[]);
    let mut written = 0;
    for _ in 0..90 {
        desk.pass(1_000);
        if desk.out.iter().any(is_heartbeat) {
            desk.beat(&[]);
        }
        desk.tell(Input::Used { session: "s".into() });
        if desk.out.iter().any(is_swap) {
            let version = desk.next_version();
            desk.answer("to write it", is_swap, Answer::Swapped(version));
            written += 1;
        }
        desk.out.retain(is_heartbeat);
    }
    assert_eq!(written, 3);
}

#[test]
fn a_record_of_a_later_protocol_is_left_to_those_who_speak_it() {
    for (others, verdict) in
        [(&["a"][..], Verdict::At(owner("a"))), (&["b"][..], Verdict::Unavailable)]
    {
        let mut desk = Desk::leased(others);
        let request = desk.locate("s", "gone");
        let found = Some((Record { protocol: 2, ..record_of("a", 1) }, Version::new(100)));
        desk.answer("to read it", is_read, Answer::Record(found));
        assert_eq!(desk.verdict(request), Some(verdict));
    }
}

#[test]
fn who_leaves_gives_sessions_only_to_those_who_speak_its_protocol() {
    let (mut desk, _) = Desk::serving(&[]);
    let older = Member { protocol: 0, ..member("older") };
    desk.pass(1_300);
    let version = desk.next_version();
    desk.answer("a heartbeat", is_heartbeat, Answer::Written(version));
    desk.pass(200);
    let list = vec![(older, Version::new(0)), (member("me"), version)];
    desk.answer("the members", is_members, Answer::Members(list));
    desk.request(|request| Input::Leave { request });
    let disown = desk.out.iter().position(is_disown);
    let swap = desk.out.iter().position(is_swap);
    assert!(disown < swap, "it is not answered for once it is given away");
    let swap = desk.take("to give it away", is_swap);
    assert!(matches!(swap, Output::Swap { record, .. } if record.ownership == Ownership::Released));
}

#[test]
fn who_drains_opens_and_takes_nothing() {
    let mut desk = Desk::leased(&[]);
    desk.tell(Input::Drain);
    let request =
        desk.request(|request| Input::Open { request, session: "s".into(), body: "hello".into() });
    assert_eq!(desk.verdict(request), Some(Verdict::Unavailable));
    let request = desk.locate("s", "gone");
    let found = Some((record_of("gone", 1), Version::new(100)));
    desk.answer("to read it", is_read, Answer::Record(found));
    assert_eq!(desk.verdict(request), Some(Verdict::Unavailable));
}

#[test]
fn those_who_wait_for_one_session_are_bounded() {
    let mut desk = Desk::leased(&[]);
    let told: Vec<_> = (0..1_001).map(|_| desk.locate("s", "gone")).collect();
    let refused = told.into_iter().filter_map(|request| desk.verdict(request));
    assert_eq!(refused.collect::<Vec<_>>(), [Verdict::Unavailable]);
    assert_eq!(desk.out.iter().filter(|it| is_read(it)).count(), 1);
}
