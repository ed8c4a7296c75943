//! Fairness: which of several principals gets a place.

use super::check;

#[test]
fn the_principal_with_the_fewest_leases_is_next() {
    check(
        "max_instances=1 max_concurrent=2",
        "
        call a1 by=alice -> start i1
        call a2 by=alice ->
        started i1       -> a1: i1, a2: i1
        call a3 by=alice ->
        call a4 by=alice ->
        call a5 by=alice ->
        call b1 by=bob   ->
        call b2 by=bob   ->
        release a1       -> b1: i1
        release a2       -> a3: i1
        release b1       -> b2: i1
        release b2       -> a4: i1
        ",
    );
}

#[test]
fn places_freed_together_are_dealt_out_in_turn() {
    check(
        "max_instances=1 max_concurrent=3",
        "
        call a1 by=alice -> start i1
        call a2 by=alice ->
        call a3 by=alice ->
        call a4 by=alice ->
        call b1 by=bob   ->
        call c1 by=carol ->
        started i1       -> a1: i1, b1: i1, c1: i1
        ",
    );
}

#[test]
fn a_full_queue_drops_the_newest_waiter_of_the_principal_with_the_most() {
    check(
        "max_instances=1 max_concurrent=1",
        "
        call a by=alice    -> start i1
        started i1         -> a: i1
        calls 1024 by=alice ->
        call d by=alice    -> d: overloaded
        call b by=bob      -> c1024: overloaded
        call e by=bob      -> c1023: overloaded
        release a          -> b: i1
        ",
    );
}

#[test]
fn keys_of_one_principal_do_not_keep_another_out() {
    check(
        "stateful max_instances=3",
        "
        call a1 key=a1 by=alice -> start i1
        started i1              -> a1: i1
        call a2 key=a2 by=alice -> start i2
        started i2              -> a2: i2
        call a3 key=a3 by=alice -> start i3
        started i3              -> a3: i3
        release a2              ->
        call b1 key=b1 by=bob   -> stop i2 owner
        stopped i2              -> start i4
        started i4              -> b1: i4
        call a4 key=a2 by=alice -> a4: sticky_busy
        call b2 key=b2 by=bob   -> b2: sticky_busy
        ",
    );
}

#[test]
fn a_key_in_use_finishes_its_calls_before_it_makes_room() {
    check(
        "stateful max_instances=2",
        "
        call a1 key=a1 by=alice -> start i1
        started i1              -> a1: i1
        call a2 key=a2 by=alice -> start i2
        started i2              -> a2: i2
        call b1 key=b1 by=bob   ->
        release a1              -> stop i1 owner
        stopped i1              -> start i3
        started i3              -> b1: i3
        call c1 key=c1 by=carol -> c1: sticky_busy
        ",
    );
}

#[test]
fn an_idle_instance_is_not_taken_from_a_principal_with_only_one() {
    check(
        "max_instances=3 max_concurrent=1",
        "
        call b1 owner=bob   -> start i1
        started i1          -> b1: i1
        release b1          ->
        call a1 owner=alice -> start i2
        started i2          -> a1: i2
        call a2 owner=alice -> start i3
        started i3          -> a2: i3
        call a3 owner=alice ->
        call b2 owner=bob   -> b2: i1
        release a1          -> a3: i2
        ",
    );
}

#[test]
fn parked_calls_make_way_for_another_principal() {
    check(
        "max_instances=1 max_concurrent=3",
        "
        call a1 by=alice -> start i1
        call a2 by=alice ->
        call a3 by=alice ->
        started i1       -> a1: i1, a2: i1, a3: i1
        park a1          ->
        park a2          ->
        call b1 by=bob   ->
        park a3          -> a1 makes way
        release a1       -> b1: i1
        call b2 by=bob   ->
        release b1       -> b2: i1
        ",
    );
}

#[test]
fn a_question_stays_open_while_its_principal_has_no_more_than_others() {
    check(
        "max_instances=1 max_concurrent=2",
        "
        call a1 by=alice -> start i1
        started i1       -> a1: i1
        call b1 by=bob   -> b1: i1
        park a1          ->
        call b2 by=bob   ->
        call c1 by=carol ->
        release b1       -> c1: i1
        unpark a1        ->
        release a1       -> b2: i1
        ",
    );
}

#[test]
fn questions_in_an_instance_that_makes_room_are_given_up() {
    check(
        "max_instances=2 max_concurrent=1",
        "
        call a1 owner=alice -> start i1
        started i1          -> a1: i1
        call a2 owner=alice -> start i2
        started i2          -> a2: i2
        park a1             ->
        park a2             ->
        call b1 owner=bob   -> a1 makes way
        release a1          -> stop i1 owner
        stopped i1          -> start i3
        started i3          -> b1: i3
        call c1 owner=carol ->
        ",
    );
}
