//! Placement where an instance belongs to one principal for its life.

use super::check;

#[test]
fn an_instance_is_never_lent_to_another_principal() {
    check(
        "",
        "
        call a owner=alice -> start i1
        started i1         -> a: i1
        release a          ->
        call b owner=bob   -> start i2
        started i2         -> b: i2
        call c owner=alice -> c: i1
        call d owner=bob   -> d: i2
        ",
    );
}

#[test]
fn an_idle_instance_of_another_makes_room_and_is_gone_before() {
    check(
        "max_instances=1",
        "
        call a owner=alice -> start i1
        started i1         -> a: i1
        release a          ->
        call b owner=bob   -> stop i1 owner
        call c owner=bob   ->
        stopped i1         -> start i2
        started i2         -> b: i2, c: i2
        ",
    );
}

#[test]
fn a_busy_instance_finishes_its_calls_and_makes_room_for_another_principal() {
    check(
        "max_instances=1 max_concurrent=2",
        "
        call a1 owner=alice -> start i1
        call a2 owner=alice ->
        started i1          -> a1: i1, a2: i1
        call a3 owner=alice ->
        call b owner=bob    ->
        call a4 owner=alice ->
        release a1          ->
        release a2          -> stop i1 owner
        stopped i1          -> start i2
        started i2          -> b: i2
        release b           -> stop i2 owner
        stopped i2          -> start i3
        started i3          -> a3: i3, a4: i3
        ",
    );
}

#[test]
fn the_principal_with_the_most_instances_makes_room() {
    check(
        "max_instances=3 max_concurrent=1",
        "
        call b1 owner=bob   -> start i1
        started i1          -> b1: i1
        call a1 owner=alice -> start i2
        started i2          -> a1: i2
        call a2 owner=alice -> start i3
        started i3          -> a2: i3
        call c owner=carol  ->
        release b1          ->
        call b2 owner=bob   -> b2: i1
        release a1          -> stop i2 owner
        stopped i2          -> start i4
        started i4          -> c: i4
        ",
    );
}

#[test]
fn one_principal_has_no_more_than_its_share() {
    check(
        "max_instances=4 max_each=2 max_concurrent=1",
        "
        call a1 owner=alice -> start i1
        call a2 owner=alice -> start i2
        call a3 owner=alice ->
        started i1          -> a1: i1
        started i2          -> a2: i2
        call b owner=bob    -> start i3
        release a1          -> a3: i1
        ",
    );
}

#[test]
fn listing_leaves_an_instance_without_an_owner() {
    check(
        "",
        "
        call l owner=gateway cause=list -> start i1
        started i1         -> l: i1
        release l          ->
        call a owner=alice -> a: i1
        call m owner=gateway cause=list -> start i2
        ",
    );
}

#[test]
fn a_start_whose_principal_stopped_waiting_serves_anyone() {
    check(
        "max_instances=1",
        "
        call a owner=alice -> start i1
        call b owner=bob   ->
        leave a            ->
        started i1         -> b: i1
        ",
    );
}

#[test]
fn a_shared_instance_never_gets_an_owner() {
    check(
        "max_instances=1",
        "
        call a             -> start i1
        started i1         -> a: i1
        release a          ->
        call b owner=bob   -> stop i1 owner
        stopped i1         -> start i2
        started i2         -> b: i2
        call c             -> c: i2
        ",
    );
}

#[test]
fn an_instance_with_a_login_belongs_to_its_owner_even_unused() {
    for (settings, second) in [("per_user", "start i2"), ("", "b: i1")] {
        check(
            settings,
            &format!(
                "
                call a owner=alice -> start i1
                leave a            ->
                started i1         ->
                call b owner=bob   -> {second}
                "
            ),
        );
    }
    // While it starts, another principal does not get it either; if there is no room, it makes way.
    check(
        "per_user max_instances=1",
        "
        call a owner=alice -> start i1
        call b owner=bob   ->
        leave a            ->
        started i1         -> stop i1 owner
        stopped i1         -> start i2
        started i2         -> b: i2
        ",
    );
}

#[test]
fn a_principal_without_a_login_does_not_block_others() {
    check(
        "per_user tries=1",
        "
        call a owner=alice      -> start i1
        failed i1 login_required -> a: login_required
        call b owner=bob        -> start i2
        started i2              -> b: i2
        ",
    );
}
