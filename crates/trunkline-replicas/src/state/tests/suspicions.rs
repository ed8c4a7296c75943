//! When a replica may be found dead.

use super::*;

/// Somebody asks for a session of `dead`, which is in no list: the record is read, and the suspicion begins.
fn suspecting(others: &[&str]) -> (Desk, u64) {
    let mut desk = Desk::leased(others);
    let request = suspect(&mut desk, "s");
    (desk, request)
}

fn suspect(desk: &mut Desk, session: &str) -> u64 {
    let request = desk.locate(session, "dead");
    let found = Some((record_of("dead", 1), Version::new(100)));
    desk.answer("to read the record", is_read, Answer::Record(found));
    request
}

/// The roster of the dead replica is read, and its address is silent.
fn silent(desk: &mut Desk, roster: &[&str]) {
    let found = Some((names(roster), Version::new(101)));
    desk.answer("to read the roster", is_roster_read, Answer::Roster(found));
    desk.answer("a ping", is_ping_to("dead"), Answer::Away);
}

/// Whether the record is being swapped, with the version that was read.
fn is_taking(desk: &Desk) -> bool {
    let expect = trunkline_store::Expect::Version(Version::new(100));
    desk.out.iter().any(|it| matches!(it, Output::Swap { expect: it, .. } if *it == expect))
}

#[test]
fn a_dead_owner_in_whose_roster_we_are_loses_its_session() {
    let (mut desk, request) = suspecting(&["a"]);
    silent(&mut desk, &["me", "a"]);
    desk.answer("the heartbeat", is_heartbeat_read, Answer::Heartbeat(None));
    assert!(is_taking(&desk));
    let version = desk.next_version();
    desk.answer("to take the record", is_swap, Answer::Swapped(version));
    assert_eq!(desk.verdict(request), None, "it has not settled");
    desk.pass(200);
    let found = Some((record_of("me", 2), version));
    desk.answer("to check the record", is_read, Answer::Record(found));
    assert_eq!(desk.verdict(request), Some(Verdict::TakenOver("hello".into())));
    let own = desk.take("to own it", is_own);
    assert_eq!(own, Output::Own { session: "s".into(), epoch: 2, generation: 1 });
}

#[test]
fn a_claim_that_a_failover_lost_counts_for_nothing() {
    let (mut desk, request) = suspecting(&["a"]);
    silent(&mut desk, &["me"]);
    desk.answer("the heartbeat", is_heartbeat_read, Answer::Heartbeat(None));
    let version = desk.next_version();
    desk.answer("to take the record", is_swap, Answer::Swapped(version));
    desk.pass(200);
    let found = Some((record_of("a", 2), Version::new(102)));
    desk.answer("to check the record", is_read, Answer::Record(found));
    desk.assert_is_left_to("a", request);
}

#[test]
fn who_answers_pings_or_has_a_heartbeat_is_not_dead() {
    let (mut desk, request) = suspecting(&["a"]);
    desk.answer("a ping", is_ping_to("dead"), reply("dead", true));
    assert_eq!(desk.verdict(request), Some(Verdict::At(owner("dead"))));

    let (mut desk, request) = suspecting(&["a"]);
    silent(&mut desk, &["me"]);
    let heartbeat = Answer::Heartbeat(Some(member("dead")));
    desk.answer("the heartbeat", is_heartbeat_read, heartbeat.clone());
    assert!(!is_taking(&desk));
    // It is looked at again until a heartbeat would be over.
    desk.pass(500);
    let found = Some((record_of("dead", 1), Version::new(100)));
    desk.answer("to read the record again", is_read, Answer::Record(found));
    assert_eq!(desk.verdict(request), Some(Verdict::At(owner("dead"))));
}

#[test]
fn nobody_vouches_for_whom_it_suspects_or_suspects_for_whom_it_vouches() {
    let (mut desk, _) = suspecting(&["a"]);
    assert!(!desk.asked("dead", Ask::Vouch));
    assert!(desk.asked("a", Ask::Vouch));

    let mut desk = Desk::leased(&["a"]);
    assert!(desk.asked("dead", Ask::Vouch));
    let request = suspect(&mut desk, "s");
    assert_eq!(desk.verdict(request), Some(Verdict::Unavailable));
    assert!(!desk.asked("a", Ask::Refuse("dead".into())), "it has vouched");
    desk.pass(5_000);
    assert!(desk.asked("a", Ask::Refuse("dead".into())));
    assert!(!desk.asked("dead", Ask::Vouch), "it has refused");
    assert!(!desk.asked("a", Ask::Refuse("me".into())), "for itself");
}

#[test]
fn a_stranger_needs_a_witness_a_successor_or_patience() {
    for (witness, successor, is_dead) in [
        (reply("a", true), Answer::Away, true),
        (reply("a", false), Answer::Away, false),
        (Answer::Away, Answer::Away, false),
        // Another process at the address of the witness knows nothing of what the witness said.
        (reply("z", true), Answer::Away, false),
        (reply("a", false), reply("z", true), true),
    ] {
        let (mut desk, request) = suspecting(&["a"]);
        let found = Some((names(&["a", "b"]), Version::new(101)));
        desk.answer("to read the roster", is_roster_read, Answer::Roster(found));
        desk.answer("a ping", is_ping_to("a"), witness.clone());
        desk.answer("a ping", is_ping_to("dead"), successor.clone());
        if is_dead {
            desk.answer("the heartbeat", is_heartbeat_read, Answer::Heartbeat(None));
        }
        assert_eq!(is_taking(&desk), is_dead, "{witness:?} {successor:?}");
        let told = (!is_dead).then_some(Verdict::Unavailable);
        assert_eq!(desk.verdict(request), told, "{witness:?} {successor:?}");
    }
    // The roster has expired.
    let (mut desk, _) = suspecting(&["a"]);
    desk.answer("to read the roster", is_roster_read, Answer::Roster(None));
    desk.answer("a ping", is_ping_to("dead"), Answer::Away);
    desk.answer("the heartbeat", is_heartbeat_read, Answer::Heartbeat(None));
    assert!(is_taking(&desk));
}

#[test]
fn a_record_that_was_read_after_the_last_look_waits_for_another() {
    let (mut desk, _) = suspecting(&["a"]);
    silent(&mut desk, &["me"]);
    let heartbeat = desk.take("the heartbeat", is_heartbeat_read).op().unwrap();
    let late = suspect(&mut desk, "late");
    desk.tell(Input::Done { op: heartbeat, answer: Answer::Heartbeat(None) });
    let taken = desk.take("to take the record", is_swap);
    assert!(matches!(taken, Output::Swap { session, .. } if &*session == "s"));
    assert!(!desk.out.iter().any(is_swap), "the other was read too late");
    silent(&mut desk, &["me"]);
    desk.answer("the heartbeat", is_heartbeat_read, Answer::Heartbeat(None));
    desk.take("to take the other record", is_swap);
    assert_eq!(desk.verdict(late), None);
}

#[test]
fn a_suspicion_that_takes_too_long_comes_to_nothing() {
    let (mut desk, request) = suspecting(&["a"]);
    silent(&mut desk, &["me"]);
    desk.pass(3_501);
    desk.answer("the heartbeat", is_heartbeat_read, Answer::Heartbeat(None));
    assert!(!is_taking(&desk));
    assert_eq!(desk.verdict(request), Some(Verdict::Unavailable));
}

#[test]
fn an_answer_to_an_earlier_suspicion_says_nothing_to_a_later_one() {
    let (mut desk, request) = suspecting(&["a"]);
    let stale = desk.take("to read the roster", is_roster_read).op().unwrap();
    desk.answer("a ping", is_ping_to("dead"), reply("dead", true));
    assert_eq!(desk.verdict(request), Some(Verdict::At(owner("dead"))));
    desk.state.moved("s".into(), "dead".into());
    suspect(&mut desk, "s");
    desk.tell(Input::Done { op: stale, answer: Answer::Roster(None) });
    desk.answer("a ping", is_ping_to("dead"), Answer::Away);
    assert!(!desk.out.iter().any(is_heartbeat_read), "the roster is not known yet");
}

#[test]
fn a_replica_that_vouched_lately_is_there_although_a_failover_lost_its_heartbeat() {
    let where_is = |desk: &mut Desk, replica: &str| {
        let replica = Name::from(replica);
        let request =
            desk.request(|request| Input::LocateReplica { request, replica: replica.clone() });
        desk.verdict(request)
    };
    let mut desk = Desk::leased(&["a", "b"]);
    assert!(desk.asked("a", Ask::Vouch));
    desk.pass(1_500);
    desk.beat(&[]);
    assert_eq!(where_is(&mut desk, "a"), Some(Verdict::At(owner("a"))));
    assert_eq!(where_is(&mut desk, "b"), Some(Verdict::Gone), "nobody heard of it");
    for _ in 0..2 {
        desk.pass(1_500);
        desk.beat(&[]);
    }
    assert_eq!(where_is(&mut desk, "a"), Some(Verdict::Gone), "its word has run out");
}

#[test]
fn a_replica_that_nobody_has_heard_of_is_looked_for_before_it_is_called_gone() {
    let ask = |desk: &mut Desk, replica: &str| {
        let replica = Name::from(replica);
        desk.request(|request| Input::LocateReplica { request, replica: replica.clone() })
    };
    let mut desk = Desk::leased(&["a"]);
    let (begun, never) = (ask(&mut desk, "begun"), ask(&mut desk, "never"));
    assert_eq!((desk.verdict(begun), desk.verdict(never)), (None, None));
    let list = vec![(member("begun"), Version::new(0))];
    desk.answer("the members", is_members, Answer::Members(list));
    assert_eq!(desk.verdict(begun), Some(Verdict::At(owner("begun"))));
    assert_eq!(desk.verdict(never), None, "it was asked for after the list");
    desk.answer("the members", is_members, Answer::Members(Vec::new()));
    assert_eq!(desk.verdict(never), Some(Verdict::Gone));
    let unknown = ask(&mut desk, "unknown");
    desk.answer("the members", is_members, Answer::Away);
    assert_eq!(desk.verdict(unknown), Some(Verdict::Unavailable));
}
