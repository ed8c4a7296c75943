//! Things of which there is one over all replicas.

use trunkline_store::Expect;

use super::*;

fn claim(desk: &mut Desk) -> u64 {
    desk.request(|request| Input::Claim { request, name: "claim/x".into() })
}

fn release(desk: &mut Desk) -> u64 {
    desk.request(|request| Input::Release { request, name: "claim/x".into() })
}

/// A replica that holds it, and the version of its record.
fn holding() -> (Desk, Version) {
    let mut desk = Desk::leased(&["a"]);
    let request = claim(&mut desk);
    desk.answer("to read it", is_read, Answer::Record(None));
    let version = desk.next_version();
    let swap = desk.answer("to make it", is_swap, Answer::Swapped(version));
    assert!(matches!(swap, Output::Swap { expect: Expect::Absent, .. }));
    assert_eq!(desk.verdict(request), None, "it has not settled");
    desk.pass(200);
    let found = Some((record_of("me", 1), version));
    desk.answer("to check it", is_read, Answer::Record(found));
    assert!(matches!(desk.verdict(request), Some(Verdict::TakenOver(_))));
    desk.out.clear();
    (desk, version)
}

#[test]
fn a_claim_counts_once_it_has_settled_and_is_no_session() {
    let (mut desk, _) = holding();
    let request = claim(&mut desk);
    assert_eq!(desk.verdict(request), Some(Verdict::Here));
    assert_eq!(desk.state.describe().sessions, 0);
}

#[test]
fn whoever_was_faster_has_it() {
    let mut desk = Desk::leased(&["a"]);
    let request = claim(&mut desk);
    desk.answer("to read it", is_read, Answer::Record(None));
    let found = Some((record_of("a", 1), Version::new(102)));
    desk.answer("to make it", is_swap, Answer::Conflict(found));
    desk.assert_is_left_to("a", request);
}

#[test]
fn it_is_let_go_to_nobody_although_others_are_there() {
    let (mut desk, version) = holding();
    let request = release(&mut desk);
    desk.take("to disown it", is_disown);
    // Somebody asks for it meanwhile.
    let asked = claim(&mut desk);
    let after = desk.next_version();
    let swap = desk.answer("to let go", is_swap, Answer::Swapped(after));
    let Output::Swap { expect, record, .. } = swap else { unreachable!() };
    assert_eq!((expect, record.ownership), (Expect::Version(version), Ownership::Released));
    assert_eq!(desk.verdict(request), Some(Verdict::Done));
    assert_eq!(desk.verdict(asked), None, "the record is read again");
    let released = Record { ownership: Ownership::Released, ..record_of("me", 2) };
    desk.answer("to read it", is_read, Answer::Record(Some((released, after))));
    let swap = desk.take("to take it", is_swap);
    assert!(matches!(swap, Output::Swap { expect, record, .. }
            if expect == Expect::Version(after) && record.epoch == 3));
}

#[test]
fn a_replica_that_drains_makes_nothing() {
    let mut desk = Desk::leased(&["a"]);
    desk.tell(Input::Drain);
    let request = claim(&mut desk);
    desk.answer("to read it", is_read, Answer::Record(None));
    assert_eq!(desk.verdict(request), Some(Verdict::Unavailable));
    assert!(!desk.out.iter().any(is_swap));
}
