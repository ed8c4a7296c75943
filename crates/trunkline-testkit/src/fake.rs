//! The server that writes down what happens to it, built on demand, and its log.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

/// The program of `src/bin/fake-server`; without arguments that it knows it prints what it can do.
/// Cargo builds no binaries of another package for a test, so this asks it to, once per process.
pub fn server() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

/// A log that fake servers append to, read back.
#[derive(Clone, Debug)]
pub struct Log(PathBuf);

impl Log {
    /// The log at a path, which need not exist yet: what `--log` is given.
    pub fn at(path: impl Into<PathBuf>) -> Log {
        Log(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// All that has happened: objects with `event`, `name`, `pid`, `at` and what belongs to the event.
    pub fn all(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        // The last line may be half written.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What has happened of one kind: `start`, `initialize`, `request`, `call`, `answer`, `abandoned`,
    /// `notification`, `announced`, `asked`, `answered`, `hang`, `signal`, `eof`, `exit` or `garbage`.
    pub fn of(&self, event: &str) -> Vec<Value> {
        self.all().into_iter().filter(|it| it["event"] == event).collect()
    }

    /// The processes that were started and have not ended, in the order of their starts.
    pub fn running(&self) -> Vec<u32> {
        let started = self.of("start").into_iter().filter_map(|it| it["pid"].as_u64());
        started.map(|pid| pid as u32).filter(|pid| is_running(*pid)).collect()
    }

    /// Waits until `is_so` of all that has happened; false when it is not within `limit`.
    pub fn wait(&self, limit: Duration, is_so: impl Fn(&[Value]) -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            if is_so(&self.all()) {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            // The log is a file of other processes: looking again is the only way to hear of it.
            std::thread::sleep(Duration::from_millis(5)); // the sleep is the subject
        }
    }
}

/// Whether a process is there and not a corpse that its parent has yet to bury.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

fn build() -> PathBuf {
    let kit = Path::new(env!("CARGO_MANIFEST_DIR"));
    let test = std::env::current_exe().expect("a test knows where it is");
    // A folder of its own, beside `deps`: the holder of the outer folder's lock may wait for this
    // test.
    let profile = test.ancestors().nth(2).expect("a test lies in `deps` of a profile's folder");
    let target = profile.join("fake-server.build");
    let program = target.join("debug").join("fake-server");
    if modified(&program).is_some_and(|done| newest(kit) < Some(done)) {
        return program;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "trunkline-testkit", "--bin", "fake-server"])
        .args(["--no-default-features", "--features", "fake", "--target-dir"])
        .arg(&target)
        .current_dir(kit)
        .output()
        .expect("`cargo` is on PATH, or the variable CARGO names it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn newest(kit: &Path) -> Option<SystemTime> {
    let source = std::fs::read_dir(kit.join("src/bin/fake-server")).ok()?;
    let files = source.flatten().map(|entry| entry.path());
    files.chain([kit.join("Cargo.toml")]).filter_map(|path| modified(&path)).max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|it| it.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn the_program_is_built_and_its_log_read() {
        let path = std::env::temp_dir().join(format!("fake-log-{}.jsonl", std::process::id()));
        let log = Log::at(&path);
        let mut command = Command::new(server());
        command.arg("--log").arg(log.path()).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let has = |event: &'static str| {
            log.wait(Duration::from_secs(10), move |all| all.iter().any(|it| it["event"] == event))
        };
        assert!(has("start"));
        assert_eq!(log.running(), [child.id()]);
        drop(child.stdin.take());
        assert!(has("exit"));
        assert!(child.wait().expect("it is our child").success());
        assert!(log.running().is_empty());
        assert_eq!(log.of("eof").len(), 1);
        let _ = std::fs::remove_file(&path);
    }
}
