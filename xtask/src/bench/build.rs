//! The travel server over stdio, written with trunkline and with rmcp → what it costs to build, first and after an edit.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{is_quick, load_average, median, write_result};
use crate::run;

/// Runs the benchmark. A missed target is a figure, not an error; a build that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let is_quick = is_quick(args, "build", USAGE)?;
    let (rounds, edits) = if is_quick { (1, 2) } else { (2, 5) };
    let load = load_average();
    let folder = std::env::temp_dir().join(format!("trunkline-bench-build-{}", std::process::id()));
    let measured = measure(&folder, rounds, edits);
    // The leftovers are a few hundred megabytes that nothing uses.
    let _ = fs::remove_dir_all(&folder);
    let text = text(&measured?, rounds, edits, &load);
    print!("{text}");
    if is_quick { Ok(()) } else { write_result("build.md", &text) }
}

/// What building one project took, in seconds of CPU.
#[derive(Default)]
struct Built {
    name: &'static str,
    crates: usize,
    cold: Vec<f64>,
    edit: Vec<f64>,
}

fn measure(folder: &Path, rounds: usize, edits: usize) -> Result<Vec<Built>, String> {
    let projects = PROJECTS.map(|name| Project { name, folder: folder.join(name), edits: 0 });
    let mut measured = Vec::new();
    for project in &projects {
        project.write()?;
        eprintln!("fetching what {} needs", project.name);
        run::run(project.cargo().arg("fetch"))?;
        measured.push(Built { name: project.name, crates: project.crates()?, ..Built::default() });
    }
    let mut projects = projects;
    for round in 1..=rounds {
        for (project, built) in projects.iter_mut().zip(&mut measured) {
            eprintln!("round {round}: {}", project.name);
            built.cold.push(project.build_cold()?);
        }
    }
    for _ in 0..edits {
        for (project, built) in projects.iter_mut().zip(&mut measured) {
            built.edit.push(project.build_edited()?);
        }
    }
    for project in &projects {
        project.answers()?;
    }
    Ok(measured)
}

/// One server as its author has it: a package by itself, with the profile that cargo gives.
struct Project {
    name: &'static str,
    folder: PathBuf,
    edits: usize,
}

impl Project {
    fn write(&self) -> Result<(), String> {
        let source = format!("bench/build/{}", self.name);
        let root = run::root().display().to_string();
        let manifest = run::file(&format!("{source}.toml"))?.replace("{root}", &root);
        let main = run::file(&format!("{source}.rs"))?;
        fs::create_dir_all(self.folder.join("src"))
            .and_then(|()| fs::write(self.folder.join("Cargo.toml"), manifest))
            .and_then(|()| fs::write(self.main(), main))
            .map_err(|error| format!("`{}` cannot be written: {error}.", self.folder.display()))
    }

    fn main(&self) -> PathBuf {
        self.folder.join("src/main.rs")
    }

    /// A `cargo` that nothing around it tells how to build.
    fn cargo(&self) -> Command {
        let mut cargo = run::cargo([]);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let tells =
                ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_INCREMENTAL", "RUSTC_", "RUSTFLAGS"];
            if tells.iter().any(|it| name.starts_with(it)) {
                cargo.env_remove(name);
            }
        }
        cargo.env("CARGO_TARGET_DIR", self.folder.join("target"));
        cargo.current_dir(&self.folder);
        cargo
    }

    /// How many crates its server is made of, itself not counted.
    fn crates(&self) -> Result<usize, String> {
        let words = ["tree", "--offline", "--edges", "normal", "--prefix", "none"];
        let tree = run::read(self.cargo().args(words))?;
        let lines = tree.lines().filter(|line| !line.is_empty());
        let unique: BTreeSet<&str> =
            lines.map(|line| line.split(" (").next().unwrap_or(line)).collect();
        Ok(unique.len() - 1)
    }

    fn build_cold(&mut self) -> Result<f64, String> {
        let target = self.folder.join("target");
        if target.exists() {
            fs::remove_dir_all(&target)
                .map_err(|error| format!("`{}` cannot be removed: {error}.", target.display()))?;
        }
        self.build()
    }

    /// Changes one string of the server, and builds it again.
    fn build_edited(&mut self) -> Result<f64, String> {
        let before = super::read(&self.main())?;
        let (old, new) = (literal(self.edits), literal(self.edits + 1));
        if before.matches(&old).count() != 1 {
            return Err(format!("`{}` has not one `{old}` to edit.", self.main().display()));
        }
        self.edits += 1;
        fs::write(self.main(), before.replace(&old, &new))
            .map_err(|error| format!("`{}` cannot be written: {error}.", self.main().display()))?;
        self.build()
    }

    /// Builds; seconds of CPU, of cargo and all that it started.
    fn build(&self) -> Result<f64, String> {
        let before = children_cpu()?;
        run::run(self.cargo().args(["build", "--quiet", "--offline"]))?;
        Ok(children_cpu()? - before)
    }

    /// Makes sure that what was built is the server that was meant.
    fn answers(&self) -> Result<(), String> {
        let failed = |what: &str| format!("The travel server of {} {what}.", self.name);
        let mut child = Command::new(self.folder.join("target/debug/travel"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&format!("does not start: {error}")))?;
        let mut line = String::new();
        if let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
            let _ = writeln!(stdin, "{INITIALIZE}");
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let _ = child.kill();
        let _ = child.wait();
        let is_right = line.contains(r#""name":"travel""#) && line.contains(r#""tools""#);
        if is_right { Ok(()) } else { Err(failed(&format!("answered `{}`", line.trim()))) }
    }
}

/// The string that an edit changes.
fn literal(edits: usize) -> String {
    format!("\"R-{}\"", edits + 1)
}

/// The CPU time of every process this one has waited for, and of those they waited for.
fn children_cpu() -> Result<f64, String> {
    let stat = super::read(Path::new("/proc/self/stat"))?;
    cpu_of(&stat).ok_or_else(|| format!("`/proc/self/stat` has no times: {stat}"))
}

/// Fields 16 and 17 of `/proc/PID/stat`, in hundredths of a second; the second field may hold spaces.
fn cpu_of(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let ticks = |index: usize| after.split_whitespace().nth(index)?.parse::<u32>().ok();
    Some(f64::from(ticks(13)? + ticks(14)?) / 100.0)
}

fn text(measured: &[Built], rounds: usize, edits: usize, load: &str) -> String {
    let mut out = format!(
        "# Building the travel server\n\n\
        Written by `cargo xtask bench build`: `cargo build` of the same server over stdio (one tool with an output schema,\n\
        two notifications of progress, a question in every revision), each a package of its own with the profile that cargo\n\
        gives. `rmcp` has its feature `elicitation`, for typed questions; `rmcp-lean` puts the question together by hand.\n\
        CPU seconds, user and system, of cargo and all that it started; downloads not counted. Cold is with an empty target\n\
        folder, {rounds} alternating rounds; an edit changes one string of the server, median of {edits}. Load average {load}\n\
        when it began.\n\n\
        | | crates | cold, each round | cold, median | an edit |\n|---|---|---|---|---|\n"
    );
    let row = |built: &Built| {
        let cold: Vec<String> = built.cold.iter().map(|it| format!("{it:.1} s")).collect();
        let [middle, edit] = [&built.cold, &built.edit].map(|it| median(it.clone()).unwrap_or(0.0));
        (cold.join(", "), middle, edit)
    };
    for built in measured {
        let (cold, middle, edit) = row(built);
        let (name, crates) = (built.name, built.crates);
        out += &format!("| {name} | {crates} | {cold} | {middle:.1} s | {edit:.2} s |\n");
    }
    if let [ours, others @ ..] = measured {
        let (_, cold, edit) = row(ours);
        let mark = |is_met| if is_met { "✓" } else { "✗" };
        out += "\n| target | measured | |\n|---|---|---|\n";
        for other in others {
            let (_, theirs, _) = row(other);
            out += &format!(
                "| cold ≤ that of {} | {:.2} of it | {} |\n",
                other.name,
                cold / theirs,
                mark(cold <= theirs)
            );
        }
        out +=
            &format!("| an edit ≤ {MOST_EDIT} s | {edit:.2} s | {} |\n", mark(edit <= MOST_EDIT));
    }
    out
}

pub const USAGE: &str = "\
cargo xtask bench build [--quick]
  --quick               one round and two edits; nothing is written";

/// Ours first. The last one goes without rmcp's feature for typed questions, and the crates that it brings.
const PROJECTS: [&str; 3] = ["trunkline", "rmcp", "rmcp-lean"];
const MOST_EDIT: f64 = 3.0;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_children_are_found_behind_any_name() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 9 9 0 0 11 22 1234 66 20 0 1 0 99 0 0";
        assert_eq!(cpu_of(stat), Some(13.0));
        assert_eq!(cpu_of("7 (a) S 1"), None);
    }

    #[test]
    fn targets_are_compared_with_rmcp() {
        let built = |name, cold: [f64; 2], edit| Built {
            name,
            crates: 40,
            cold: cold.into(),
            edit: vec![edit],
        };
        let text = text(
            &[built("trunkline", [30.0, 32.0], 3.5), built("rmcp", [40.0, 42.0], 1.0)],
            2,
            1,
            "0",
        );
        for row in [
            "| trunkline | 40 | 30.0 s, 32.0 s | 31.0 s | 3.50 s |",
            "| cold ≤ that of rmcp | 0.76 of it | ✓ |",
            "| an edit ≤ 3 s | 3.50 s | ✗ |",
        ] {
            assert!(text.contains(row), "{text}");
        }
    }

    #[test]
    fn both_servers_have_the_string_that_is_edited() {
        for name in PROJECTS {
            let source = run::file(&format!("bench/build/{name}.rs")).expect("the server's source");
            assert_eq!(source.matches(&literal(0)).count(), 1, "{name}");
        }
    }
}
