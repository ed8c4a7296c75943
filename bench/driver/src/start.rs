//! A stdio server → how long it takes from its start until it has answered.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::calls::{Calls, Revision};
use crate::folder::Folder;
use crate::round;
use crate::stdio::{Server, greet};
use crate::words::{Measurement, Subject, number};

pub struct Options {
    times: usize,
    config: String,
    tool: Option<String>,
    is_warm: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { times: 20, config: String::new(), tool: None, is_warm: false }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--times" => self.times = number(option, value)?,
            "--config" => self.config = value.into(),
            "--tool" => self.tool = Some(value.into()),
            "--warm" => self.is_warm = value == "yes",
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        measure(self, subject)
    }
}

fn measure(options: &Options, subject: &Subject) -> Result<(), String> {
    let (mut times, mut cpu, mut resident) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.times {
        // A folder of its own: what a run leaves would make the next one start warm.
        let folder = Folder::make()?;
        let config = folder.path().join("config");
        fs::write(&config, &options.config)
            .map_err(|error| format!("`{}` cannot be written: {error}.", config.display()))?;
        let fill = |word: &String| {
            word.replace("{config}", &config.display().to_string())
                .replace("{folder}", &folder.path().display().to_string())
        };
        let command: Vec<String> = subject.command.iter().map(fill).collect();
        if options.is_warm {
            start(options, &command)?.1.finish()?;
        }
        let (taken, server) = start(options, &command)?;
        times.push(taken);
        cpu.push(server.process.cpu()?);
        resident = server.process.resident_kib()?;
        server.finish()?;
    }
    let (times, cpu) = (median_ms(times), median_ms(cpu));
    println!(
        "{}",
        json!({"label": subject.label, "times": options.times, "ms": times, "cpu_ms": cpu, "resident_kib": resident})
    );
    Ok(())
}

/// Starts the server and waits until it has answered; how long that took.
fn start(options: &Options, command: &[String]) -> Result<(Duration, Server), String> {
    let begun = Instant::now();
    let mut server = Server::spawn(command, DEADLINE)?;
    let tool = options.tool.as_deref().unwrap_or("echo");
    let mut calls = Calls::new(Revision::V2025_11_25, tool, 100);
    greet(&mut server, &calls)?;
    if options.tool.is_some() {
        call(&mut server, &mut calls)?;
    }
    Ok((begun.elapsed(), server))
}

/// The first call, which may have to start something.
fn call(server: &mut Server, calls: &mut Calls) -> Result<(), String> {
    let (_, line) = calls.next();
    let line = String::from_utf8_lossy(line).trim_end().to_owned();
    server.send(&line)?;
    while calls.answered(server.lines.next()?)?.is_none() {}
    Ok(())
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    round(times[times.len() / 2].as_secs_f64() * 1e3)
}

const USAGE: &str = "\
driver start [OPTIONS] -- SERVER [ARGUMENT…]
  --label NAME          printed with the figures
  --times N             how often it is started; the median counts (20)
  --config TEXT         written to a file whose name `{config}` becomes; `{folder}` is an empty folder
  --tool NAME           until a call of this tool is answered, not only the handshake
  --warm yes            started once before in the same folder, which is not measured";

const DEADLINE: Duration = Duration::from_secs(60);
