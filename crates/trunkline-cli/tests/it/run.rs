//! Runs the binary as a script would.

use std::process::{Command, Output, Stdio};

/// The binary under test, which is also the server it talks to.
pub(crate) const TRUNKLINE: &str = env!("CARGO_BIN_EXE_trunkline");

/// What one run came to.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// What a command came to.
    pub(crate) fn of(mut command: Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("the binary was built");
        let text = |bytes| String::from_utf8(bytes).expect("the binary prints UTF-8");
        Self { code: status.code().expect("no signal"), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Asserts how it ended, and that each of these parts was printed.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        for part in parts {
            assert!(self.stdout.contains(part), "{part} in {}", self.stdout);
        }
    }

    /// Asserts how it failed, and what it said about it.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, part: &str) {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert!(self.stderr.contains(part), "{part} in {}", self.stderr);
    }
}

/// Runs the binary without a terminal.
pub(crate) fn run(args: &[&str]) -> Run {
    let mut command = Command::new(TRUNKLINE);
    command.args(args).stdin(Stdio::null()).env_remove("NO_COLOR");
    Run::of(command)
}

/// Runs a verb against `trunkline demo`.
pub(crate) fn against_demo(args: &[&str]) -> Run {
    run(&[args, &["--", TRUNKLINE, "demo"]].concat())
}
