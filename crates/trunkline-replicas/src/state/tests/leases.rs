//! When a replica may answer.

use super::*;

#[test]
fn a_heartbeat_gives_a_lease_only_after_it_was_seen_again() {
    let mut desk = Desk::new();
    let version = desk.next_version();
    desk.answer("a heartbeat", is_heartbeat, Answer::Written(version));
    desk.pass(199);
    assert!(!desk.out.iter().any(is_members), "it has not settled");
    desk.pass(1);
    // A failover lost it.
    desk.answer("the members", is_members, Answer::Members(vec![]));
    assert!(!desk.state.is_leased());
    desk.pass(200);
    desk.beat(&[]);
    assert!(desk.state.is_leased());
}

#[test]
fn a_lease_counts_from_when_the_heartbeat_was_sent() {
    let mut desk = Desk::new();
    desk.now = Duration::from_millis(900);
    desk.beat(&[]);
    let lease = desk.take("a lease", |it| matches!(it, Output::Lease { .. }));
    assert_eq!(lease, Output::Lease { until: Duration::from_secs(4), generation: 1 });
}

#[test]
fn a_lease_that_lapsed_starts_a_generation_and_one_that_goes_on_does_not() {
    let mut desk = Desk::leased(&[]);
    for (pause, generation) in [(1_500, 1), (3_000, 1), (4_500, 2)] {
        desk.pass(pause);
        desk.beat(&[]);
        let lease = desk.take("a lease", |it| matches!(it, Output::Lease { .. }));
        assert!(matches!(lease, Output::Lease { generation: it, .. } if it == generation));
    }
}

#[test]
fn every_member_of_the_roster_must_vouch() {
    for (b_says, is_leased) in [
        (reply("b", true), true),
        (reply("b", false), false),
        (Answer::Away, false),
        // Another process is at the address of b, so b is over.
        (reply("c", false), true),
    ] {
        let mut desk = Desk::leased(&["a", "b"]);
        desk.pass(1_300);
        desk.beat_in_vain();
        desk.pass(0);
        desk.answer("a ping", is_ping_to("a"), reply("a", true));
        desk.answer("a ping", is_ping_to("b"), b_says.clone());
        desk.pass(3_500);
        assert_eq!(desk.state.is_leased(), is_leased, "{b_says:?}");
    }
}

#[test]
fn a_roster_that_may_be_empty_in_the_store_lets_nobody_vouch() {
    let mut desk = Desk::leased(&["a"]);
    desk.pass(1_300);
    desk.beat(&[]);
    let version = desk.next_version();
    desk.answer("to write a roster", is_roster_swap, Answer::Swapped(version));
    desk.pass(200);
    // Whether it is there is not known.
    desk.answer("to check the roster", is_roster_read, Answer::Away);
    desk.pass(1_300);
    desk.beat_in_vain();
    desk.pass(500);
    assert!(
        !desk.out.iter().any(is_ping),
        "whoever reads the roster concludes that nobody vouches"
    );
}

#[test]
fn those_in_a_roster_that_may_be_in_the_store_must_vouch_too() {
    let mut desk = Desk::leased(&["a"]);
    desk.pass(1_300);
    desk.beat(&["a", "b"]);
    desk.answer("to write a roster", is_roster_swap, Answer::Away);
    desk.pass(1_300);
    desk.beat_in_vain();
    desk.pass(500);
    desk.take("a ping", is_ping_to("a"));
    desk.take("a ping", is_ping_to("b"));
}

#[test]
fn a_new_roster_ends_the_lease_that_the_old_one_gave() {
    let mut desk = Desk::leased(&["a"]);
    desk.pass(1_300);
    desk.beat_in_vain();
    desk.answer("a ping", is_ping_to("a"), reply("a", true));
    // The next heartbeat is sent at 2.2 s and answered late; meanwhile the peer vouches again, at 3.2 s.
    desk.pass(500);
    desk.pass(1_000);
    desk.answer("a ping", is_ping_to("a"), reply("a", true));
    desk.beat(&["a", "b"]);
    let found = Some((names(&["a"]), Version::new(desk.version - 1)));
    desk.out.retain(|it| !matches!(it, Output::Lease { .. }));
    desk.answer("to look at the roster", is_roster_read, Answer::Roster(found));
    desk.take("to write the new roster", is_roster_swap);
    let lease = desk.take("the lease of the heartbeat", |it| matches!(it, Output::Lease { .. }));
    assert_eq!(lease, Output::Lease { until: Duration::from_millis(6_200), generation: 1 });
}

#[test]
fn nobody_vouches_for_longer_than_the_limit() {
    let mut desk = Desk::leased(&["a"]);
    desk.pass(1_300);
    let limit = Timing::default().vouch_limit;
    while desk.now < limit + Duration::from_secs(10) {
        if desk.out.iter().any(is_heartbeat) {
            desk.beat_in_vain();
        }
        if desk.out.iter().any(is_ping) {
            desk.answer("a ping", is_ping, reply("a", true));
        }
        let is_within = desk.now < limit;
        assert!(!is_within || desk.state.is_leased(), "{:?}", desk.now);
        desk.out.retain(is_heartbeat);
        desk.pass(100);
    }
    assert!(!desk.state.is_leased());
}

#[test]
fn a_replica_that_has_left_has_no_lease_whatever_comes_late() {
    let mut desk = Desk::leased(&[]);
    desk.pass(1_300);
    let version = desk.next_version();
    desk.answer("a heartbeat", is_heartbeat, Answer::Written(version));
    desk.pass(200);
    let request = desk.request(|request| Input::Leave { request });
    assert!(!desk.state.is_leased());
    let list = vec![(member("me"), version)];
    desk.answer("the members", is_members, Answer::Members(list));
    assert!(!desk.state.is_leased());
    assert_eq!(desk.verdict(request), None);
    desk.answer("to withdraw", |it| matches!(it, Output::Withdraw { .. }), Answer::Away);
    assert_eq!(desk.verdict(request), Some(Verdict::Done));
    desk.pass(60_000);
    assert!(!desk.out.iter().any(is_heartbeat));
}
