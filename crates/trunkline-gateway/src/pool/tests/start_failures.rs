//! Servers that do not start, crash or hang.

use super::check;

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
