//! Programs from their start to their first answer, and a thousand servers taken over from another program's file.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::programs::{self, Program, Programs};
use super::{median, number, verdict, write_result};
use crate::run;

/// Runs the benchmark.
pub fn run(args: &[String]) -> Result<(), String> {
    let times = match args {
        [] => 20,
        [word] if word == "--quick" => 3,
        [word, ..] => return Err(format!("`{word}` is no option of `bench start`.\n\n{USAGE}")),
    };
    let programs =
        Programs::build([&programs::DRIVER, &programs::BARE.stdio, &programs::TRUNKLINE.stdio])?;
    let trunkline = programs::trunkline()?;
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for start in starts(&programs, &trunkline) {
        eprintln!("{}", start.what);
        match start.measure(&programs, times) {
            Ok(row) => rows.push(row),
            Err(sentence) => failures.push(format!("{}: {sentence}", start.what)),
        }
    }
    match import(&trunkline, times) {
        Ok(row) => rows.push(row),
        Err(sentence) => failures.push(sentence),
    }
    let text = format!("{HEAD}{}", rows.concat());
    print!("{text}");
    if args.is_empty() && failures.is_empty() {
        write_result("start.md", &text)?;
    }
    verdict(&failures)
}

/// One way to start.
struct Start {
    what: &'static str,
    /// The driver's words.
    words: Vec<String>,
}

impl Start {
    fn measure(&self, programs: &Programs, times: usize) -> Result<String, String> {
        let times = times.to_string();
        let mut words = vec!["start", "--times", &times];
        words.extend(self.words.iter().map(String::as_str));
        let report = programs.drive(&words)?;
        let need = |key| {
            number(&report, key).ok_or_else(|| format!("the driver reported no `{key}`: {report}"))
        };
        Ok(format!(
            "| {} | {:.1} ms | {:.1} ms | {:.1} MiB |\n",
            self.what,
            need("ms")?,
            need("cpu_ms")?,
            need("resident_kib")? / 1024.0
        ))
    }
}

fn starts(programs: &Programs, trunkline: &Path) -> Vec<Start> {
    let child = programs.path(&programs::BARE.stdio);
    let one = format!("mcpServers:\n  e: {{ command: '{child}' }}\n");
    let others: String =
        (1..SERVERS).map(|number| format!("  other{number}: {{ command: '{child}' }}\n")).collect();
    let program = |it: &Program| vec!["--".to_owned(), programs.path(it)];
    let serve = |catalog: String, more: &[&str]| {
        let mut words = vec!["--config".to_owned(), catalog];
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words.extend(["--".to_owned(), trunkline.display().to_string()]);
        let rest = "serve --stdio --own --config {config} --state {folder}";
        words.extend(rest.split(' ').map(str::to_owned));
        words
    };
    let start = |what, words| Start { what, words };
    vec![
        start("a bare stdio server, `initialize` answered", program(&programs::BARE.stdio)),
        start("a server of the SDK, `initialize` answered", program(&programs::TRUNKLINE.stdio)),
        start("`trunkline serve --stdio`, `initialize` answered", serve(one.clone(), &WARM)),
        start(
            "the same, and a call that starts a bare server answered",
            serve(one.clone(), &[&WARM[..], &["--tool", "e.echo"]].concat()),
        ),
        start(
            "`trunkline serve --stdio` for the first time, `initialize` answered",
            serve(one.clone(), &[]),
        ),
        start("the same with 1,000 servers", serve(one + &others, &[])),
    ]
}

/// A thousand servers of another program's file into a catalog.
fn import(trunkline: &Path, times: usize) -> Result<String, String> {
    let home = run::target().join("bench").join("home");
    let settings = home.join(".cursor");
    let servers: Vec<String> = (0..SERVERS)
        .map(|number| {
            format!(r#""other{number}": {{"command": "/bin/cat", "args": ["{number}"]}}"#)
        })
        .collect();
    let text = format!("{{\"mcpServers\": {{{}}}}}", servers.join(",\n"));
    let mut taken = Vec::new();
    for _ in 0..times {
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&settings)
            .and_then(|()| fs::write(settings.join("mcp.json"), &text))
            .map_err(|error| format!("`{}` cannot be written: {error}.", settings.display()))?;
        let mut import = Command::new(trunkline);
        import.args(["import", "--from", "cursor", "--write", "--config"]);
        import.arg(home.join("trunkline.yaml")).env("HOME", &home);
        import.stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        run::run(&mut import)?;
        taken.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let taken = median(taken).unwrap_or_default();
    Ok(format!("| `trunkline import` of 1,000 servers | {taken:.1} ms | – | – |\n"))
}

/// As on every day but the first.
const WARM: [&str; 2] = ["--warm", "yes"];

const SERVERS: usize = 1000;

const HEAD: &str = "# How fast programs start\n\n\
    Written by `cargo xtask bench start`: medians, from the start of the process to the end of the answer. A gateway has a\n\
    state folder of an earlier start, unless it is its first time. CPU and memory are the process's own, without what it started. [build.md](build.md) has the time that\n\
    `cargo build` of the travel server takes.\n\n\
    | | time | CPU | memory |\n|---|---|---|---|\n";

pub const USAGE: &str = "\
cargo xtask bench start [--quick]
  --quick               three times instead of twenty; nothing is written";
