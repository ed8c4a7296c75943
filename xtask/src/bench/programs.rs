//! The programs of `bench/` → built, and run by the driver, alone or under a tool that watches them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use super::callgrind::Profile;
use super::read;
use crate::run;

/// One binary of a package of `bench/`, with the features it needs.
#[derive(PartialEq)]
pub struct Program {
    pub bin: &'static str,
    package: &'static str,
    features: &'static str,
}

const fn program(bin: &'static str, package: &'static str, features: &'static str) -> Program {
    Program { bin, package, features }
}

/// The programs of a package that has one for stdio, one for HTTP and a client.
pub struct Family {
    pub stdio: Program,
    pub http: Program,
    pub client: Program,
}

const fn family(package: &'static str, [stdio, http, client]: [&'static str; 3]) -> Family {
    Family {
        stdio: program(stdio, package, ""),
        http: program(http, package, "http"),
        client: program(client, package, "client"),
    }
}

pub static DRIVER: Program = program("driver", "driver", "");
pub static BARE: Family = family("bare", ["bare", "bare-http", "bare-client"]);
pub static BARE_GATEWAY: Program = program("bare-gateway", "bare-gateway", "");
pub static EMBEDDED_GATEWAY: Program = program("embedded-gateway", "embedded-gateway", "");
pub static TRUNKLINE: Family =
    family("trunkline-echo", ["trunkline-echo", "trunkline-http", "trunkline-client"]);
pub static RMCP: Family = family("rmcp-echo", ["rmcp-echo", "rmcp-http", "rmcp-client"]);

/// The programs, built and ready to run.
pub struct Programs {
    /// Where they are, and where tools may write.
    folder: PathBuf,
}

impl Programs {
    pub fn build(programs: impl IntoIterator<Item = &'static Program>) -> Result<Programs, String> {
        // One by one: built together, the packages would share the features that any of them asks for.
        for program in distinct(programs) {
            eprintln!("building {}", program.bin);
            cargo("release", &[program])
                .map_err(|_| format!("`{}` does not build; see above.", program.bin))?;
        }
        Ok(Programs { folder: target().join("release") })
    }

    /// The same with little optimization and all at once, so that what they share is built once: for figures that are
    /// only compared with figures of such programs.
    pub fn build_quickly(
        programs: impl IntoIterator<Item = &'static Program>,
    ) -> Result<Programs, String> {
        let programs = distinct(programs);
        eprintln!("building {} programs", programs.len());
        cargo(QUICK, &programs).map_err(|_| "the programs do not build; see above.".to_owned())?;
        Ok(Programs { folder: target().join(QUICK) })
    }

    pub fn path(&self, program: &Program) -> String {
        self.folder.join(program.bin).to_string_lossy().into_owned()
    }

    /// One run of the driver; its JSON.
    pub fn drive(&self, words: &[impl AsRef<OsStr>]) -> Result<String, String> {
        said(Command::new(self.path(&DRIVER)).args(words))
    }

    /// The same on one core, with all that the driver starts, and with nothing of this machine's but `PATH`.
    pub fn drive_on(&self, core: u32, words: &[String]) -> Result<String, String> {
        let mut taskset = Command::new("taskset");
        taskset.args(["--cpu-list", &core.to_string(), &self.path(&DRIVER)]).args(words);
        taskset.env_clear().env("TOKIO_WORKER_THREADS", "1").env("HOME", &self.folder);
        said(taskset.envs(std::env::var_os("PATH").map(|path| ("PATH", path))))
    }

    /// What to put before a command to have its instructions counted.
    pub fn callgrind(&self, name: &str) -> Watched {
        let out = self.folder.join(format!("callgrind.{name}.out"));
        // What an earlier run left must not be taken for what this one found.
        let _ = std::fs::remove_file(&out);
        let out_option = format!("--callgrind-out-file={}", out.display());
        let command = ["valgrind", "--quiet", "--tool=callgrind", &out_option];
        Watched { command: command.map(str::to_owned).into(), out }
    }

    /// What to put before a command to have its system calls counted.
    pub fn strace(&self, name: &str) -> Watched {
        let out = self.folder.join(format!("strace.{name}.out"));
        // `-I 2`: the driver ends it with a signal, which must not be blocked. `-b`: all its threads, and nothing that it
        // starts.
        let out_name = out.to_string_lossy();
        let command = ["strace", "-f", "-b", "execve", "-c", "-I", "2", "-o", &out_name];
        Watched { command: command.map(str::to_owned).into(), out }
    }
}

/// A tool that watches a program and writes down what it saw.
pub struct Watched {
    pub command: Vec<String>,
    out: PathBuf,
}

impl Watched {
    /// What a run under callgrind took.
    pub fn profile(&self) -> Result<Profile, String> {
        Profile::read(&self.out)
    }

    /// The system calls of a run under strace, by name.
    pub fn system_calls(&self) -> Result<BTreeMap<String, u64>, String> {
        Ok(summary(&read(&self.out)?))
    }
}

fn distinct(programs: impl IntoIterator<Item = &'static Program>) -> Vec<&'static Program> {
    let mut all: Vec<&Program> = Vec::new();
    for program in programs {
        if !all.contains(&program) {
            all.push(program);
        }
    }
    all
}

/// Builds the programs with one set of features.
fn cargo(profile: &str, programs: &[&Program]) -> Result<(), String> {
    let mut cargo = run::cargo(["build", "--quiet", "--profile", profile, "--target-dir"]);
    cargo.arg(target()).current_dir(run::root().join("bench"));
    for Program { bin, package, features } in programs {
        cargo.args(["--package", package, "--bin", bin]);
        if !features.is_empty() {
            cargo.args(["--features", &format!("{package}/{features}")]);
        }
    }
    run::run(&mut cargo)
}

fn target() -> PathBuf {
    run::target().join("bench")
}

/// The profile in `bench/Cargo.toml` that builds in half the time.
const QUICK: &str = "counted";

/// What a program says when it succeeds; what it complains of when it does not.
fn said(command: &mut Command) -> Result<String, String> {
    let output =
        command.output().map_err(|error| format!("the driver does not start: {error}."))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// Builds the binary that users have; where it is.
pub fn trunkline() -> Result<PathBuf, String> {
    eprintln!("building trunkline");
    let words = ["build", "--quiet", "--release", "--package", "trunkline-cli"];
    run::run(&mut run::cargo(words))?;
    Ok(run::target().join("release").join("trunkline"))
}

/// The table of `strace -c`: the fourth column counts, the last one names.
fn summary(table: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let count = words.get(3)?.parse().ok()?;
        let name = words.last().filter(|name| **name != "total")?;
        Some(((*name).to_owned(), count))
    };
    table.lines().filter_map(row).collect()
}

/// Makes sure that a tool is there, installing the package of its name when it is not.
pub fn ensure(tool: &str) -> Result<(), String> {
    match run::works(tool, &["--version"]) {
        true => Ok(()),
        false => run::install("Counting needs", &[tool]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_system_calls_is_read_by_name() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           1       600           writev
 40.00    0.000400           1       400        12 recvfrom
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           1      1000        12 total
";
        let expected = [("recvfrom".to_owned(), 400), ("writev".to_owned(), 600)];
        assert_eq!(summary(table), BTreeMap::from(expected));
    }
}
