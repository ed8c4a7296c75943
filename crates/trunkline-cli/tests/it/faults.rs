//! What goes wrong between two processes: each fault ends in exactly one typed answer, in time,
//! within bounded memory, and no process survives.

mod client;
mod server;
mod stress;

use std::process;

/// How much more than before a process may need, whatever the other side does, in KiB.
const ALLOWANCE: u64 = 32 << 10;

/// Shown with `--nocapture`.
#[allow(clippy::print_stderr)]
fn figure(what: &str, value: impl std::fmt::Display) {
    eprintln!("{what}: {value}");
}

/// Runs a test in a process of its own, so that it measures nobody's memory but its own.
fn alone(name: &str, test: impl AsyncFnOnce()) {
    const ALONE: &str = "TRUNKLINE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.expect("a runtime can be built").block_on(test());
    }
    let program = std::env::current_exe().expect("a test knows where it is");
    let mut command = process::Command::new(program);
    command.args(["--exact", "--nocapture", name]).env(ALONE, "1");
    let output = command.output().expect("a test can run itself");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    figure(name, err.trim());
}
