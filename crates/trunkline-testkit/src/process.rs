//! Other programs that a test starts: a port for one, a signal to one, and a wait for what it does.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Looks again until it is so; another process has no other way to tell us. Panics after a minute.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited a minute, and not: {what}");
        // the sleep is the subject: a program that is asked again and again
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal: `KILL`, `TERM`, `STOP`.
pub fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.expect("`kill` is in Debian's procps").success(), "{name} reaches {pid}");
}

/// Ends a child without a word, and buries it.
pub fn kill(child: &mut Child) {
    // It may have ended before.
    let _ = child.kill();
    let _ = child.wait();
}
