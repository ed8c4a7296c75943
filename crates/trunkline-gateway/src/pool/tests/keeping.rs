//! What is kept ready, what is stopped, and when.

use super::check;

#[test]
fn idle_instances_stop_one_by_one() {
    check(
        "max_concurrent=1 idle=60s",
        "
        calls 2    -> start i1, start i2
        started i1 -> c1: i1
        started i2 -> c2: i2
        release c1 ->
        wait 10s   ->
        release c2 ->
        wait 49s   ->
        wait 1s    -> stop i1 idle
        stopped i1 ->
        wait 10s   -> stop i2 idle
        stopped i2 ->
        status     -> idle
        call d     -> start i3
        ",
    );
}

#[test]
fn min_ready_keeps_one_as_long_as_there_is_a_client() {
    check(
        "min_ready=1 max_concurrent=1 idle=60s",
        "
        joined     -> start i1
        started i1 ->
        calls 2    -> c1: i1, start i2
        started i2 -> c2: i2
        release c1 ->
        release c2 ->
        wait 999s  -> stop i1 idle
        stopped i1 ->
        status     -> ready
        joined     ->
        left       ->
        left       -> stop i2 noclients
        stopped i2 ->
        status     -> idle
        ",
    );
}

#[test]
fn without_clients_nothing_is_kept_warm() {
    check(
        "min_ready=2 max_instances=2",
        "
                   ->
        joined     -> start i1, start i2
        left       ->
        started i1 -> stop i1 noclients
        joined     ->
        started i2 ->
        stopped i1 -> start i3
        ",
    );
}

#[test]
fn always_on_runs_without_clients() {
    check(
        "always idle=60s",
        "
                   -> start i1
        started i1 ->
        joined     ->
        left       ->
        wait 999s  ->
        status     -> ready
        ended i1   -> stop i1 ended, start i2
        ",
    );
}

#[test]
fn a_busy_instance_stops_after_the_last_client_once_it_is_idle() {
    check(
        "persistent",
        "
        joined     ->
        call a     -> start i1
        started i1 -> a: i1
        left       ->
        release a  -> stop i1 noclients
        ",
    );
}

#[test]
fn persistent_instances_do_not_stop_when_idle() {
    check(
        "persistent idle=1s",
        "
        joined     ->
        call a     -> start i1
        started i1 -> a: i1
        release a  ->
        wait 9999s ->
        call b     -> b: i1
        ",
    );
}

#[test]
fn a_warm_instance_that_dies_is_replaced_with_the_profile_that_was_wanted_last() {
    check(
        "min_ready=1 max_instances=2",
        "
        joined           -> start i1
        started i1       ->
        call a profile=5 -> start i2 profile=5
        started i2       -> a: i2
        release a        ->
        ended i1         -> stop i1 ended
        stopped i1       ->
        ended i2         -> stop i2 ended
        stopped i2       ->
        wait 1s          -> start i3 profile=5
        ",
    );
}

#[test]
fn an_instance_that_crashes_repeatedly_is_replaced_with_backoff() {
    check(
        "always",
        "
                   -> start i1
        started i1 ->
        ended i1   -> stop i1 ended, start i2
        stopped i1 ->
        started i2 ->
        ended i2   -> stop i2 ended
        stopped i2 ->
        wait 0.9s  ->
        wait 0.1s  -> start i3
        started i3 ->
        ended i3   -> stop i3 ended
        wait 1.9s  ->
        call a     -> start i4
        started i4 -> a: i4
        release a  ->
        wait 60s   ->
        ended i4   -> stop i4 ended, start i5
        ",
    );
}

#[test]
fn closing_lets_calls_finish() {
    check(
        "max_concurrent=1 max_instances=3",
        "
        calls 4    -> start i1, start i2, start i3
        started i1 -> c1: i1
        started i2 -> c2: i2
        release c2 -> c3: i2
        release c3 -> c4: i2
        release c4 ->
        close 20s  -> stop i2 closed, abort i3, stop i3 closed
        status     -> draining
        call d     -> d: draining
        stopped i2 ->
        wait 19s   ->
        release c1 -> stop i1 closed
        stopped i1 -> gone
        ",
    );
}

#[test]
fn closing_is_forced_in_the_end() {
    check(
        "max_concurrent=1 max_instances=1",
        "
        calls 2    -> start i1
        started i1 -> c1: i1
        close 20s  -> c2: draining
        wait 20s   -> stop i1 forced
        release c1 ->
        stopped i1 -> gone
        ",
    );
}

#[test]
fn a_start_that_ends_after_the_pool_was_closed_is_stopped() {
    check(
        "",
        "
        call a     -> start i1
        close 5s   -> a: draining, abort i1, stop i1 closed, gone
        started i1 ->
        stopped i1 -> gone
        ",
    );
}

#[test]
fn other_limits_keep_what_runs() {
    check(
        "max_concurrent=1 max_instances=3 idle=60s",
        "
        calls 3    -> start i1, start i2, start i3
        started i1 -> c1: i1
        started i2 -> c2: i2
        started i3 -> c3: i3
        release c1 ->
        plan max_concurrent=2 max_instances=1 idle=5s -> stop i1 reconfigured
        release c2 -> stop i2 reconfigured
        call d     -> d: i3
        release d  ->
        release c3 ->
        wait 5s    -> stop i3 idle
        ",
    );
}

#[test]
fn another_command_drains_and_replaces() {
    check(
        "max_concurrent=1 max_instances=2",
        "
        calls 2         -> start i1, start i2
        started i1      -> c1: i1
        plan command=other max_concurrent=1 max_instances=2 -> abort i2, stop i2 reconfigured, start i3
        started i3      -> c2: i3
        call d          ->
        release c1      -> stop i1 reconfigured
        stopped i1      -> start i4
        ",
    );
}

#[test]
fn another_strategy_does_not_inherit_instances() {
    check(
        "",
        "
        call a        -> start i1
        started i1    -> a: i1
        release a     ->
        plan stateful -> stop i1 reconfigured
        call b key=k1 -> start i2
        ",
    );
}
