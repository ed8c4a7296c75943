//! Servers that do not start, crash or hang.

use super::check;

#[test]
fn pauses_double_until_it_is_suspended() {
    check(
        "tries=4",
        "
        call a     -> start i1
        failed i1  -> pause 1s, a: spawn_failed
        status     -> backoff
        call b     -> b: backoff 1s
        wait 0.75s ->
        call c     -> c: backoff 0.25s
        wait 0.25s ->
        status     -> idle
        call d     -> start i2
        failed i2  -> pause 2s, d: spawn_failed
        wait 2s    ->
        call e     -> start i3
        failed i3  -> pause 4s, e: spawn_failed
        wait 4s    ->
        call f     -> start i4
        failed i4  -> suspended, f: spawn_failed
        status     -> suspended
        wait 999s  ->
        call g     -> g: suspended
        retry      ->
        call h     -> start i5
        started i5 -> h: i5
        ",
    );
}

#[test]
fn an_always_on_server_is_retried_without_a_call() {
    check(
        "always tries=3",
        "
                   -> start i1
        failed i1  -> pause 1s
        wait 1s    -> start i2
        failed i2  -> pause 2s
        wait 2s    -> start i3
        failed i3  -> suspended
        wait 999s  ->
        plan always command=other -> start i4
        started i4 ->
        ",
    );
}

#[test]
fn a_command_that_is_not_there_suspends_at_once() {
    check(
        "",
        "
        call a              -> start i1
        failed i1 not_found -> suspended, a: not_found
        call b              -> b: suspended
        ",
    );
}

#[test]
fn success_makes_up_for_failures() {
    check(
        "tries=2",
        "
        call a     -> start i1
        failed i1  -> pause 1s, a: spawn_failed
        wait 1s    ->
        call b     -> start i2
        started i2 -> b: i2
        ended i2   -> stop i2 ended
        stopped i2 ->
        call c     -> start i3
        failed i3  -> pause 1s, c: spawn_failed
        ",
    );
}

#[test]
fn starts_that_fail_together_are_one_attempt() {
    check(
        "max_concurrent=1 tries=2",
        "
        calls 3    -> start i1, start i2, start i3
        failed i1  -> pause 1s, c1: spawn_failed
        call d     ->
        failed i2  -> c2: spawn_failed
        failed i3  -> c3: spawn_failed, d: backoff 1s
        status     -> backoff
        ",
    );
}

#[test]
fn after_a_failure_one_start_at_a_time_is_tried() {
    check(
        "max_concurrent=1",
        "
        call a     -> start i1
        failed i1  -> pause 1s, a: spawn_failed
        wait 1s    ->
        calls 3    -> start i2
        started i2 -> c1: i2, start i3, start i4
        ",
    );
}

#[test]
fn sessions_wait_for_the_start_that_shows_whether_it_works_again() {
    check(
        "stateful",
        "
        call a key=k1 -> start i1
        failed i1     -> pause 1s, a: spawn_failed
        wait 1s       ->
        call b key=k1 -> start i2
        call c key=k2 ->
        started i2    -> b: i2, start i3
        started i3    -> c: i3
        ",
    );
}

#[test]
fn a_server_that_cannot_run_twice_still_serves() {
    check(
        "max_concurrent=1 tries=1 idle=1s",
        "
        call a     -> start i1
        started i1 -> a: i1
        call b     -> start i2
        failed i2  -> pause 1s
        call c     ->
        release a  -> b: i1
        wait 1s    -> start i3
        failed i3  -> pause 2s
        release b  -> c: i1
        release c  ->
        wait 1s    -> stop i1 idle
        stopped i1 ->
        call d     -> start i4
        ",
    );
}

#[test]
fn a_start_that_never_ends_is_given_up() {
    check(
        "",
        "
        call a patience=60s -> start i1
        wait 31s            ->
        wait 1s             -> abort i1, pause 1s, a: start_timeout
        ",
    );
}

#[test]
fn a_crash_is_noticed_at_once_and_the_next_call_starts_another() {
    check(
        "max_instances=2",
        "
        call a     -> start i1
        started i1 -> a: i1
        ended i1   -> stop i1 ended
        call b     -> start i2
        stopped i1 ->
        release a  ->
        started i2 -> b: i2
        ",
    );
}

#[test]
fn a_hung_instance_is_found_by_its_probe() {
    check(
        "probe=30s idle=999s max_instances=1",
        "
        call a     -> start i1
        started i1 -> a: i1
        release a  ->
        wait 29s   ->
        wait 1s    -> probe i1
        wait 60s   ->
        well i1    ->
        wait 30s   -> probe i1
        unwell i1  -> stop i1 unwell
        call b     ->
        stopped i1 -> start i2
        ",
    );
}

#[test]
fn an_instance_at_work_is_not_judged_by_its_silence() {
    check(
        "probe=30s idle=999s max_instances=1",
        "
        call a     -> start i1
        started i1 -> a: i1
        wait 45s   ->
        release a  ->
        wait 15s   -> probe i1
        call b     -> b: i1
        unwell i1  ->
        release b  ->
        wait 30s   -> probe i1
        unwell i1  -> stop i1 unwell
        ",
    );
}

#[test]
fn an_instance_that_misbehaves_is_killed() {
    check(
        "max_instances=1",
        "
        call a     -> start i1
        started i1 -> a: i1
        call b     -> b: i1
        kill i1    -> stop i1 killed
        kill i1    ->
        kill i9    ->
        release a  ->
        release b  ->
        call c     ->
        stopped i1 -> start i2
        started i2 -> c: i2
        ",
    );
}
