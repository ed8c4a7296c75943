//! Placement where any instance serves any caller.

use super::check;

#[test]
fn calls_that_fit_into_a_start_wait_for_it() {
    check(
        "max_concurrent=2",
        "
        call a     -> start i1
        call b     ->
        call c     -> start i2
        started i2 -> a: i2, b: i2
        started i1 -> c: i1
        ",
    );
}

#[test]
fn fifty_at_once_start_one() {
    let all = |what: &str| (1..=50).map(|n| format!("c{n}: {what}")).collect::<Vec<_>>().join(", ");
    let (given, failed) = (all("i1"), all("spawn_failed"));
    check("max_concurrent=50", &format!("calls 50 -> start i1\nstarted i1 -> {given}"));
    check("max_concurrent=50", &format!("calls 50 -> start i1\nfailed i1 -> pause 1s, {failed}"));
}
