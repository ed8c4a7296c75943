//! A client program and a server for it → what a call costs the client.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use crate::amount::{Amount, Volume};
use crate::http::Endpoint;
use crate::process::Cores;
use crate::round;
use crate::words::{Measurement, Subject, number};

pub struct Options {
    server: String,
    mode: String,
    tasks: u32,
    volume: Volume,
}

impl Default for Options {
    fn default() -> Options {
        let (server, volume) = Default::default();
        Options { server, mode: "stateless".into(), tasks: 1, volume }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;
    const LABEL: &str = "client";

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--server" => self.server = value.into(),
            "--mode" => self.mode = value.into(),
            "--tasks" => self.tasks = number(option, value)?,
            _ => return self.volume.takes(option, value),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        if self.server.is_empty() {
            return Err(format!("there is no server to call; name it with `--server`.\n\n{USAGE}"));
        }
        measure(self, subject)
    }
}

fn measure(options: &Options, subject: &Subject) -> Result<(), String> {
    let volume = &options.volume;
    let cores = Cores::two()?;
    let mut server = cores.spawn(std::slice::from_ref(&options.server), volume.deadline)?;
    let endpoint = Endpoint::new(server.address()?);
    let mut command = subject.command.clone();
    command.extend([endpoint.url(), options.mode.clone()]);
    command.extend([options.tasks.to_string(), volume.payload.to_string()]);
    command.extend(match volume.amount {
        Amount::Time(time) => ["milliseconds".into(), time.as_millis().to_string()],
        Amount::Calls(calls) => ["calls".into(), calls.to_string()],
    });
    let mut client = cores.spawn_beside(&command, volume.deadline)?;
    let mut lines = BufReader::new(client.stdout()).lines();
    let mut next = || match lines.next() {
        Some(Ok(line)) => Ok(line),
        _ => Err("the client ended before its measurement did."),
    };
    let begin = next()?;
    if begin != "begin" {
        return Err(format!("it printed `{begin}` instead of `begin`."));
    }
    let (client_before, server_before) = (client.cpu()?, server.cpu()?);
    let mut report: Value = serde_json::from_str(&next()?)
        .map_err(|error| format!("its report is no JSON: {error}."))?;
    let calls = report["calls"].as_f64().ok_or("its report counts no calls.")?;
    let per_call = |time: Duration| json!(round(time.as_secs_f64() * 1e6 / calls));
    report["client_cpu_us"] = per_call(client.cpu()?.saturating_sub(client_before));
    report["server_cpu_us"] = per_call(server.cpu()?.saturating_sub(server_before));
    report["label"] = json!(subject.label);
    report["mode"] = json!(options.mode);
    report["tasks"] = json!(options.tasks);
    report["payload"] = json!(volume.payload);
    println!("{report}");
    client.stop()?;
    server.stop()
}

const USAGE: &str = "\
driver client --server SERVER [OPTIONS] -- CLIENT [ARGUMENT…]
  --label NAME          printed with the figures
  --mode MODE           stateless (default), session, or shared: one client for all tasks
  --tasks N             how many call at once (1)
  --payload BYTES       length of the text that is echoed (100)
  --milliseconds N      how long the measurement takes (1000), after a warm-up of a fifth of it
  --calls N             a number of calls of each task instead of a time, and no warm-up
  --deadline SECONDS    when a silent client or server is killed (60)";
