//! Commands into their outcome: run one, read one, wait for one no longer than a deadline.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("`xtask` lies one folder below the root").to_path_buf()
}

/// The folder cargo builds into: `CARGO_TARGET_DIR`, or `target` in the root.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The binary as the tests build it.
pub fn trunkline() -> PathBuf {
    target().join("debug").join("trunkline")
}

/// A `cargo` call in the root, by the cargo that runs us.
pub fn cargo<const N: usize>(args: [&str; N]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    // The path of our own manifest would point the crates' build scripts at the wrong folder.
    command.env_remove("CARGO_MANIFEST_DIR");
    // A build script that looks at these would run again, and with it all that depends on its crate.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") {
            command.env_remove(name);
        }
    }
    command
}

/// The build that `cargo test` makes, binaries included: nothing is compiled twice.
pub fn build<const N: usize>(more: [&str; N]) -> Command {
    let mut build = cargo(["build", "--workspace", "--bins", "--tests"]);
    build.args(more);
    build
}

/// Runs a command, its output going where ours goes.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command.stdin(Stdio::null()).status().map_err(|e| not_started(command, &e))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}.", line(command))) }
}

/// Runs a command, killing it when the deadline passes.
pub fn run_within(command: &mut Command, limit: Duration) -> Result<(), String> {
    match status_within(command, limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("`{}` ended with {status}.", line(command))),
        None => Err(format!("`{}` did not end within {} s.", line(command), limit.as_secs())),
    }
}

/// Runs a command, killing it when the deadline passes, and returns the lines of its output that are not `is_routine`.
/// If it fails they are the error, with the end of what it wrote to stderr.
pub fn read_within(
    command: &mut Command,
    limit: Duration,
    is_routine: fn(&str) -> bool,
) -> Result<String, String> {
    // Files, because a process that outlives the command would keep a pipe open.
    let (stdout, stderr) = (Scratch::new()?, Scratch::new()?);
    command.stdout(stdout.file()?).stderr(stderr.file()?);
    let outcome = run_within(command, limit);
    let output = stdout.text();
    let mut said: String =
        output.lines().filter(|line| !is_routine(line)).flat_map(|line| [line, "\n"]).collect();
    let Err(error) = outcome else { return Ok(said) };
    let errors = stderr.text();
    said.push_str(&errors[errors.floor_char_boundary(errors.len().saturating_sub(MOST_STDERR))..]);
    Err(format!("{said}{error}"))
}

/// How many bytes of a failed command's stderr are kept.
const MOST_STDERR: usize = 16 << 10;

/// A file for the output of a command, gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let folder = target().join("tests");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("Cannot make `{}`: {error}.", folder.display()))?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(Self(folder.join(format!("output-{}-{number}", std::process::id()))))
    }

    fn file(&self) -> Result<File, String> {
        File::create(&self.0)
            .map_err(|error| format!("Cannot write `{}`: {error}.", self.0.display()))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.0).unwrap_or_default()).into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs a command; `sees` gets every line of its standard output as it comes.
pub fn run_seen(command: &mut Command, mut sees: impl FnMut(&str)) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(command, &error))?;
    let stdout = child.stdout.take().expect("it is piped");
    for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
        sees(&String::from_utf8_lossy(&line));
    }
    let status =
        child.wait().map_err(|error| format!("Cannot wait for `{}`: {error}.", line(command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}.", line(command))) }
}

/// A chore of ours in a process of its own, so that several can run at once and each output stays together. It yields
/// to others: it may take long and computes.
pub fn chore(args: &[&str]) -> Result<Command, String> {
    let ours =
        std::env::current_exe().map_err(|error| format!("Cannot find ourselves: {error}."))?;
    // The build of the workspace may have put a new file in the place of the one that runs.
    let ours = ours.to_string_lossy().trim_end_matches(" (deleted)").to_owned();
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(ours).args(args).current_dir(root());
    Ok(command)
}

/// How a command ended; none when the deadline passed and it was killed.
pub fn status_within(command: &mut Command, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let mut child =
        command.stdin(Stdio::null()).spawn().map_err(|error| not_started(command, &error))?;
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            Err(error) => return Err(format!("Cannot wait for `{}`: {error}.", line(command))),
        }
    }
}

/// Runs a command and returns what it wrote to its standard output.
pub fn read(command: &mut Command) -> Result<String, String> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` ended with {}: {}", line(command), output.status, said.trim()));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` wrote text that is not UTF-8.", line(command)))
}

/// Reads a file of the repository.
pub fn file(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path))
        .map_err(|error| format!("Cannot read `{path}`: {error}."))
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` did not start: {error}.", line(command))
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy()));
    words.join(" ")
}

/// Whether every program, given with the package that has it, can be found.
pub fn have(programs: &[(&str, &str)]) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let missing: Vec<String> = programs
        .iter()
        .filter(|(name, _)| !found(name))
        .map(|(name, package)| format!("`{name}` (in the Debian package `{package}`)"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "The tests start programs that are not here: {}. Install them.",
        missing.join(", ")
    ))
}

/// Whether a program starts with these arguments and succeeds.
pub fn works(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Installs the packages of those programs that are not here.
pub fn install_missing(who_needs: &str, programs: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !works(program, &["--version"]) && !works(program, &["-v"]))
        .map(|(_, package)| *package)
        .collect();
    install(who_needs, &missing)
}

/// Installs packages of Debian's; elsewhere it is an error that begins with `who_needs` them.
pub fn install(who_needs: &str, packages: &[&str]) -> Result<(), String> {
    if packages.is_empty() {
        return Ok(());
    }
    if !works("apt-get", &["--version"]) {
        return Err(format!("{who_needs} `{}`; install that first.", packages.join("`, `")));
    }
    println!("installing {}", packages.join(", "));
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages);
    run(apt.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Lets this process and those it starts open as many files as the system allows: some tests hold
/// thousands of connections, and many systems begin with 1,024.
pub fn raise_files() {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let Some(hard) = line.and_then(|line| line.split_whitespace().nth(4)) else { return };
    let me = std::process::id().to_string();
    let mut raise = Command::new("prlimit");
    // Where it cannot be done, the tests that need it say so.
    let _ = raise.args(["--pid", &me, &format!("--nofile={hard}:{hard}")]).status();
}

/// Servers that tests start, and the Debian package that has each. They are installed where they are missing.
pub const SERVERS: &[(&str, &str)] =
    &[("haproxy", "haproxy"), ("redis-cli", "redis-tools"), ("redis-server", "redis-server")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        assert_eq!(have(&[("sh", "dash")]), Ok(()));
        let sentence = have(&[("sh", "dash"), ("no-such-program", "nothing")]).unwrap_err();
        assert!(sentence.contains("`no-such-program` (in the Debian package `nothing`)"));
        assert!(!sentence.contains("`sh`"), "{sentence}");
    }
}
