//! Placement where a session keeps its own instance.

use super::check;

#[test]
fn a_key_keeps_its_instance_and_no_other_gets_it() {
    check(
        "stateful max_instances=2",
        "
        call a key=k1 -> start i1
        call b key=k2 -> start i2
        call c key=k1 ->
        started i2    -> b: i2
        started i1    -> a: i1, c: i1
        release a     ->
        release c     ->
        call d key=k2 -> d: i2
        call e key=k1 -> e: i1
        call f key=k3 -> f: sticky_busy
        ",
    );
}

#[test]
fn a_key_waits_for_room_in_its_own_instance() {
    check(
        "stateful max_concurrent=1 max_instances=3",
        "
        call a key=k1 -> start i1
        call b key=k1 ->
        started i1    -> a: i1
        call c key=k2 -> start i2
        started i2    -> c: i2
        release c     ->
        release a     -> b: i1
        ",
    );
}

#[test]
fn a_warm_instance_is_bound_and_another_is_made_warm() {
    check(
        "stateful min_ready=1 max_instances=2",
        "
        joined        -> start i1
        started i1    ->
        call a key=k1 -> a: i1
        call b key=k2 -> start i2
        started i2    -> b: i2
        call c key=k3 -> c: sticky_busy
        forget k1     ->
        release a     -> stop i1 sessionover
        stopped i1    -> start i3
        ",
    );
}

#[test]
fn no_key_is_the_empty_key() {
    check(
        "stateful max_instances=1",
        "
        call a         -> start i1
        started i1     -> a: i1
        call b         -> b: i1
        call c key=x   -> c: sticky_busy
        ",
    );
}

#[test]
fn a_binding_expires_after_its_ttl_and_its_instance_stops() {
    check(
        "stateful max_instances=1 ttl=60s idle=5s",
        "
        call a key=k1 -> start i1
        started i1    -> a: i1
        wait 100s     ->
        release a     ->
        wait 59s      ->
        call b key=k1 -> b: i1
        release b     ->
        wait 60s      -> stop i1 sessionover
        call c key=k2 ->
        stopped i1    -> start i2
        ",
    );
}

#[test]
fn a_binding_without_end_stays() {
    check(
        "stateful ttl=never idle=5s",
        "
        call a key=k1 -> start i1
        started i1    -> a: i1
        release a     ->
        wait 99999s   ->
        call b key=k1 -> b: i1
        ",
    );
}

#[test]
fn a_session_that_is_over_takes_its_instance_with_it() {
    check(
        "stateful drain=10s",
        "
        call a key=k1 -> start i1
        started i1    -> a: i1
        call b key=k2 -> start i2
        started i2    -> b: i2
        forget k1     ->
        release a     -> stop i1 sessionover
        forget k2     ->
        wait 10s      -> stop i2 forced
        forget k9     ->
        ",
    );
}

#[test]
fn an_instance_whose_session_ended_during_its_start_serves_any_key() {
    check(
        "stateful max_instances=1 idle=60s",
        "
        call a key=k1 -> start i1
        leave a       ->
        started i1    ->
        call b key=k2 -> b: i1
        ",
    );
}

#[test]
fn a_warm_instance_with_the_wrong_profile_makes_room() {
    check(
        "stateful min_ready=1 max_instances=1",
        "
        joined                  -> start i1
        started i1              ->
        call a key=k1 profile=0 -> a: i1
        release a               ->
        forget k1               -> stop i1 sessionover
        stopped i1              -> start i2
        started i2              ->
        plan stateful min_ready=0 max_instances=1 ->
        call b key=k2 profile=0 -> b: i2
        release b               ->
        call c key=k2 profile=1 -> c: i2
        ",
    );
    check(
        "stateful max_instances=1",
        "
        call a key=k1 profile=3 -> start i1 profile=3
        leave a                 ->
        started i1              ->
        call b key=k2 profile=1 -> stop i1 profile
        call c key=k2 profile=1 ->
        call d key=k3           -> d: sticky_busy
        stopped i1              -> start i2 profile=1
        started i2              -> b: i2, c: i2
        ",
    );
}

#[test]
fn a_place_without_a_waiter_is_free() {
    check(
        "stateful max_instances=1",
        "
        call a key=k1 profile=3 -> start i1 profile=3
        leave a                 ->
        started i1              ->
        call b key=k2 profile=1 -> stop i1 profile
        leave b                 ->
        call c key=k3 profile=1 patience=1s ->
        wait 1s                 -> c: busy
        call d key=k4 profile=1 ->
        stopped i1              -> start i2 profile=1
        started i2              -> d: i2
        ",
    );
}

#[test]
fn after_a_crash_the_key_gets_a_new_one() {
    check(
        "stateful max_instances=1",
        "
        call a key=k1 -> start i1
        started i1    -> a: i1
        ended i1      -> stop i1 ended
        release a     ->
        call b key=k1 ->
        stopped i1    -> start i2
        started i2    -> b: i2
        ",
    );
}

#[test]
fn the_last_client_leaves_a_session_behind() {
    check(
        "stateful ttl=60s",
        "
        joined        ->
        call a key=k1 -> start i1
        started i1    -> a: i1
        release a     ->
        left          ->
        wait 60s      -> stop i1 sessionover
        ",
    );
}
