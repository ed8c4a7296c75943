//! A client that calls `echo` → how many calls it makes in a closed loop, and how long each takes.
//!
//! A program of this kind is started as `PROGRAM URL MODE TASKS BYTES milliseconds N`, or with `calls N` at the end: so
//! many of each task, and no warm-up. It prints `begin` when the warm-up is over and one JSON object when the measurement
//! is, and stays until it is killed, so that its CPU time can be read.

use std::future::Future;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What the program was started with.
#[derive(Clone)]
pub struct Options {
    /// The server's endpoint.
    pub url: String,
    /// How to talk to it.
    pub mode: Mode,
    /// How many callers are wanted.
    pub tasks: usize,
    bytes: usize,
    amount: Amount,
}

/// When a measurement ends.
#[derive(Clone, Copy)]
enum Amount {
    Time(Duration),
    /// Of each task.
    Calls(usize),
}

impl Amount {
    /// How long is called before it counts.
    fn warm_up(self) -> Duration {
        match self {
            Amount::Time(time) => time / WARM_UP,
            Amount::Calls(_) => Duration::ZERO,
        }
    }

    fn wants_more(self, made: usize, elapsed: Duration) -> bool {
        match self {
            Amount::Time(time) => elapsed < time,
            Amount::Calls(calls) => made < calls,
        }
    }
}

/// The two ways to talk that are measured.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    /// 2025-11-25, a session.
    Session,
    /// 2026-07-28.
    Stateless,
    /// 2026-07-28, all tasks sharing one client.
    Shared,
}

/// One task's way to call.
pub trait Caller: Send + 'static {
    /// Calls `echo` with this text and makes sure that it comes back.
    fn call(&mut self, text: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// The program: `connect` makes one caller for each task.
pub fn main<C: Caller, F: Future<Output = Result<Vec<C>, String>>>(
    connect: impl FnOnce(Options) -> F,
) -> ExitCode {
    match run(connect) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Opens a caller for each task, or one for all of them in [`Mode::Shared`].
pub async fn open_each<C: Clone>(
    options: &Options,
    open: impl AsyncFn(&Options) -> Result<C, String>,
) -> Result<Vec<C>, String> {
    let mut callers: Vec<C> = Vec::new();
    for _ in 0..options.tasks {
        callers.push(match callers.first() {
            Some(first) if options.mode == Mode::Shared => first.clone(),
            _ => open(options).await?,
        });
    }
    Ok(callers)
}

fn run<C: Caller, F: Future<Output = Result<Vec<C>, String>>>(
    connect: impl FnOnce(Options) -> F,
) -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime does not start: {error}."))?;
    runtime.block_on(async {
        let callers = connect(options.clone()).await?;
        println!("{}", measure(callers, &options).await?);
        std::future::pending().await
    })
}

async fn measure<C: Caller>(callers: Vec<C>, options: &Options) -> Result<String, String> {
    let amount = options.amount;
    let begin = Instant::now() + amount.warm_up();
    let mut tasks = Vec::new();
    for mut caller in callers {
        let text = text(options.bytes);
        tasks.push(tokio::spawn(async move {
            while Instant::now() < begin {
                caller.call(&text).await?;
            }
            let mut latencies = Vec::with_capacity(1 << 16);
            let mut sent = Instant::now();
            while amount.wants_more(latencies.len(), sent - begin) {
                caller.call(&text).await?;
                let answered = Instant::now();
                latencies.push(answered - sent);
                sent = answered;
            }
            Ok::<_, String>((caller, latencies))
        }));
    }
    tokio::time::sleep_until(begin.into()).await;
    let started = Instant::now();
    println!("begin");
    let mut latencies = Vec::new();
    // Callers are kept to the end: closing a connection is no part of a call.
    let mut callers = Vec::new();
    for task in tasks {
        let (caller, mut own) =
            task.await.map_err(|error| format!("a task failed: {error}."))??;
        latencies.append(&mut own);
        callers.push(caller);
    }
    let wall = started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at =
        |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    if latencies.is_empty() {
        return Err("no call was answered in time.".into());
    }
    Ok(format!(
        r#"{{"calls":{},"calls_per_s":{:.1},"p50_us":{:.2},"p99_us":{:.2}}}"#,
        latencies.len(),
        latencies.len() as f64 / wall,
        at(0.50),
        at(0.99)
    ))
}

impl Options {
    fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
        let words: Vec<String> = words.collect();
        let [url, mode, tasks, bytes, unit, count] = words.as_slice() else {
            return Err(HOW.into());
        };
        let number = |word: &str| {
            word.parse::<u32>().map_err(|_| format!("`{word}` is no number of anything."))
        };
        let mode = match mode.as_str() {
            "session" => Mode::Session,
            "stateless" => Mode::Stateless,
            "shared" => Mode::Shared,
            _ => {
                return Err(format!(
                    "`{mode}` is no mode; say `session`, `stateless` or `shared`."
                ));
            }
        };
        let amount = match unit.as_str() {
            "milliseconds" => Amount::Time(Duration::from_millis(number(count)?.into())),
            "calls" => Amount::Calls(number(count)? as usize),
            _ => return Err(HOW.into()),
        };
        Ok(Options {
            url: url.clone(),
            mode,
            tasks: number(tasks)?.max(1) as usize,
            bytes: number(bytes)? as usize,
            amount,
        })
    }
}

fn text(bytes: usize) -> String {
    "a stitch in time saves nine, said the tailor to his mice; "
        .chars()
        .cycle()
        .take(bytes)
        .collect()
}

const HOW: &str = "Say `URL MODE TASKS BYTES milliseconds N` or `… calls N`; the driver does, see `driver client`.";
/// The warm-up lasts this fraction of the measurement.
const WARM_UP: u32 = 5;
