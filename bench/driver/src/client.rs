//! A client program and a server for it → what a call costs the client.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use crate::amount::Amount;
use crate::http::Endpoint;
use crate::process::Cores;
use crate::round;
use crate::words::{self, number};

/// Measures what the words ask for.
pub fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let options = Options::parse(words).map_err(|error| format!("{error}\n\n{USAGE}"))?;
    measure(&options).map_err(|error| format!("`{}` failed: {error}", options.label))
}

struct Options {
    label: String,
    server: String,
    mode: String,
    tasks: u32,
    payload: u32,
    amount: Amount,
    deadline: Duration,
    command: Vec<String>,
}

impl Options {
    fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            label: "client".into(),
            server: String::new(),
            mode: "stateless".into(),
            tasks: 1,
            payload: 100,
            amount: Amount::Time(Duration::from_secs(1)),
            deadline: Duration::from_secs(60),
            command: Vec::new(),
        };
        let command = words::options(words, |word, value| {
            match word {
                "--label" => options.label = value,
                "--server" => options.server = value,
                "--mode" => options.mode = value,
                "--tasks" => options.tasks = number(word, &value)?,
                "--payload" => options.payload = number(word, &value)?,
                "--calls" => options.amount = Amount::Calls(number(word, &value)?),
                "--milliseconds" => {
                    options.amount = Amount::Time(Duration::from_millis(number(word, &value)?))
                }
                "--deadline" => options.deadline = Duration::from_secs(number(word, &value)?),
                _ => return words::unknown(word),
            }
            Ok(())
        })?;
        if options.server.is_empty() {
            return Err("There is no server to call; name it with `--server`.".into());
        }
        Ok(Options { command, ..options })
    }
}

fn measure(options: &Options) -> Result<(), String> {
    let cores = Cores::two()?;
    let mut server = cores.spawn(std::slice::from_ref(&options.server), options.deadline)?;
    let endpoint = Endpoint::new(server.address()?);
    let mut command = options.command.clone();
    command.extend([endpoint.url(), options.mode.clone()]);
    command.extend([options.tasks, options.payload].map(|n| n.to_string()));
    command.extend(match options.amount {
        Amount::Time(time) => ["milliseconds".into(), time.as_millis().to_string()],
        Amount::Calls(calls) => ["calls".into(), calls.to_string()],
    });
    let mut client = cores.spawn_beside(&command, options.deadline)?;
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
    report["label"] = json!(options.label);
    report["mode"] = json!(options.mode);
    report["tasks"] = json!(options.tasks);
    report["payload"] = json!(options.payload);
    println!("{report}");
    client.stop()?;
    server.stop()
}

pub const USAGE: &str = "\
driver client --server SERVER [OPTIONS] -- CLIENT [ARGUMENT…]
  --label NAME          printed with the figures
  --mode MODE           stateless (default), session, or shared: one client for all tasks
  --tasks N             how many call at once (1)
  --payload BYTES       length of the text that is echoed (100)
  --milliseconds N      how long the measurement takes (1000), after a warm-up of a fifth of it
  --calls N             a number of calls of each task instead of a time, and no warm-up
  --deadline SECONDS    when a silent client or server is killed (60)";
