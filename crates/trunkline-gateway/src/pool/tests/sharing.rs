//! Placement where any instance serves any caller.

use super::check;

#[test]
fn the_first_call_starts_one_and_gets_it() {
    check(
        "",
        "
        status     -> idle
        call a     -> start i1
        status     -> starting
        started i1 -> a: i1
        status     -> ready
        call b     -> b: i1
        release a  ->
        release b  ->
        ",
    );
}

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

#[test]
fn one_call_at_a_time_means_one_instance_each_up_to_the_limit() {
    check(
        "max_concurrent=1 max_instances=3",
        "
        calls 4    -> start i1, start i2, start i3
        started i1 -> c1: i1
        started i2 -> c2: i2
        started i3 -> c3: i3
        release c2 -> c4: i2
        ",
    );
}

#[test]
fn a_call_that_shares_with_none_has_an_instance_of_its_own() {
    check(
        "max_concurrent=4 max_instances=2",
        "
        call a alone=yes -> start i1
        call b alone=yes -> start i2
        started i1       -> a: i1
        started i2       -> b: i2
        call c alone=yes ->
        release a        -> c: i1
        release b        ->
        call d alone=yes -> d: i2
        ",
    );
}

#[test]
fn the_least_loaded_is_taken_and_equals_take_turns() {
    check(
        "max_concurrent=2 max_instances=2",
        "
        calls 3    -> start i1, start i2
        started i1 -> c1: i1, c2: i1
        started i2 -> c3: i2
        call d     -> d: i2
        release c1 ->
        release c2 ->
        call e     -> e: i1
        release e  ->
        release c3 ->
        release d  ->
        call f     -> f: i2
        release f  ->
        call g     -> g: i1
        release g  ->
        call h     -> h: i2
        ",
    );
}

#[test]
fn a_free_place_goes_to_the_longest_waiter() {
    check(
        "max_concurrent=1 max_instances=1",
        "
        call a     -> start i1
        started i1 -> a: i1
        call b     ->
        call c     ->
        release a  -> b: i1
        leave c    ->
        call d     ->
        release b  -> d: i1
        ",
    );
}

#[test]
fn waiting_times_out() {
    check(
        "max_concurrent=1 max_instances=1",
        "
        call a              -> start i1
        call b patience=5s  ->
        call c patience=0s  -> c: busy
        wait 4.9s           ->
        wait 0.1s           -> b: busy
        started i1          -> a: i1
        call d patience=2s  ->
        wait 2s             -> d: busy
        release a           ->
        call e              -> e: i1
        ",
    );
}

#[test]
fn a_start_without_a_waiter_completes_and_goes_idle() {
    check(
        "idle=60s",
        "
        call a     -> start i1
        leave a    ->
        started i1 ->
        wait 59s   ->
        wait 1s    -> stop i1 idle
        stopped i1 ->
        status     -> idle
        ",
    );
}

#[test]
fn another_profile_gets_an_instance_of_its_own() {
    check(
        "max_instances=2",
        "
        call a profile=1 -> start i1 profile=1
        call b profile=3 -> start i2 profile=3
        started i1       -> a: i1
        started i2       -> b: i2
        call c profile=1 -> c: i1
        call d profile=3 -> d: i2
        call e profile=7 -> e: i1
        ",
    );
}

#[test]
fn at_the_limit_a_more_capable_caller_uses_a_lesser_instance() {
    check(
        "max_concurrent=2 max_instances=1",
        "
        call a profile=1 -> start i1 profile=1
        call b profile=1 ->
        started i1       -> a: i1, b: i1
        call c profile=4 ->
        call d profile=3 ->
        release a        -> d: i1
        ",
    );
}

#[test]
fn an_idle_instance_makes_room_for_another_profile_and_is_gone_before() {
    check(
        "max_instances=1",
        "
        call a profile=1 -> start i1 profile=1
        started i1       -> a: i1
        call b profile=2 ->
        call c profile=2 ->
        release a        -> stop i1 profile
        call d profile=2 ->
        stopped i1       -> start i2 profile=2
        started i2       -> b: i2, c: i2, d: i2
        ",
    );
}

#[test]
fn a_planned_start_without_a_waiter_is_dropped() {
    check(
        "max_instances=1",
        "
        call a profile=1 -> start i1 profile=1
        started i1       -> a: i1
        release a        ->
        call b profile=2 -> stop i1 profile
        leave b          ->
        call c profile=4 ->
        stopped i1       -> start i2 profile=4
        ",
    );
}

#[test]
fn a_singleton_is_one_for_all() {
    check(
        "singleton max_instances=9 max_concurrent=1",
        "
        call a profile=1 -> start i1 profile=255
        call b profile=2 ->
        started i1       -> a: i1
        call c profile=0 patience=3s ->
        release a        -> b: i1
        wait 3s          -> c: busy
        release b        ->
        wait 9999s       ->
        status           -> ready
        ",
    );
}

#[test]
fn more_callers_than_a_thousand_and_some_do_not_wait() {
    check(
        "max_concurrent=1 max_instances=1",
        "
        calls 1025 -> start i1, c1025: overloaded
        started i1 -> c1: i1
        call d     ->
        call e     -> e: overloaded
        ",
    );
}

#[test]
fn a_lease_on_a_running_instance_starts_and_keeps_nothing() {
    check(
        "idle=60s max_concurrent=1",
        "
        running r  -> r: none
        call a     -> start i1
        running r  -> r: none
        started i1 -> a: i1
        running r  -> r: none
        release a  ->
        wait 40s   ->
        running r  -> r: i1
        wait 30s   ->
        release r  ->
        wait 0s    -> stop i1 idle
        ",
    );
}

#[test]
fn an_instance_started_for_its_lists_stops_after_them() {
    check(
        "persistent",
        "
        call l cause=list profile=7 -> start i1 profile=7
        started i1 -> l: i1
        release l  ->
        retire i1  -> stop i1 idle
        stopped i1 ->
        call l cause=list -> start i2
        call a     ->
        started i2 -> l: i2, a: i2
        release l  ->
        release a  ->
        retire i2  ->
        status     -> ready
        ",
    );
    check(
        "always",
        "
                   -> start i1
        call l cause=list profile=7 -> start i2 profile=7
        started i2 -> l: i2
        release l  ->
        retire i2  -> stop i2 idle
        stopped i2 ->
        started i1 ->
        status     -> ready
        ",
    );
}
