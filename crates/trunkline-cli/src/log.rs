//! The gateway's own log → lines on stderr, for people or for programs.

use std::io::{self, Write};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::ValueEnum;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// What is logged, and how.
#[derive(Default, clap::Args)]
pub(crate) struct LogArgs {
    /// What is logged to stderr: `error`, `warn`, `info`, `debug`, `trace`, `off`, or more finely
    /// `warn,trunkline::call=debug`. The default is `info`, or `warn` when it serves hosts.
    #[arg(long, value_name = "FILTER", env = "TRUNKLINE_LOG")]
    log: Option<String>,
    /// The format of the log.
    #[arg(long, value_enum, default_value_t, env = "TRUNKLINE_LOG_FORMAT")]
    log_format: Format,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// An object on each line.
    Json,
}

/// Starts logging. The guard flushes when it is dropped. The error is a sentence.
pub(crate) fn begin(args: &LogArgs, unless_said: &str) -> Result<Guard, String> {
    let wanted = args.log.as_deref().map(str::trim).filter(|it| !it.is_empty());
    let filter = Targets::from_str(wanted.unwrap_or(unless_said)).map_err(|error| {
        let text = wanted.unwrap_or_default();
        format!("`--log {text}` cannot be understood: {error}.")
    })?;
    let lines = Lines::begin();
    let guard = Guard(lines.clone());
    let layer = fmt::layer().with_writer(lines);
    let layer = match args.log_format {
        Format::Text => layer.boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    };
    // In tests of this program, the first subscriber stays.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    Ok(guard)
}

/// Flushes the log when it is dropped.
pub(crate) struct Guard(Lines);

impl Drop for Guard {
    fn drop(&mut self) {
        let (tell, told) = channel();
        if self.0.to.send(Item::Flush(tell)).is_ok() {
            let _ = told.recv_timeout(LAST);
        }
    }
}

/// Lines on their way to stderr. A slow reader blocks no call: if it falls behind, lines are
/// dropped, and their number is logged.
#[derive(Clone)]
struct Lines {
    to: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

enum Item {
    Line(Vec<u8>),
    Flush(Sender<()>),
}

impl Lines {
    fn begin() -> Self {
        static LINES: OnceLock<Lines> = OnceLock::new();
        let lines = LINES.get_or_init(|| {
            let (to, from) = sync_channel(WAITING);
            let lost = Arc::new(AtomicU64::new(0));
            let missed = Arc::clone(&lost);
            std::thread::spawn(move || write(&from, &missed, io::stderr()));
            Self { to, lost }
        });
        lines.clone()
    }
}

/// Writes until every sender is dropped.
fn write(from: &Receiver<Item>, lost: &AtomicU64, mut to: impl Write) {
    for item in from {
        // A reader that is gone is ignored.
        let _ = match item {
            Item::Line(line) => to.write_all(&line),
            Item::Flush(tell) => tell.send(()).map_err(io::Error::other),
        };
        let missed = lost.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let _ = writeln!(to, "{missed} lines were left out here: they were not read in time.");
        }
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.to.try_send(Item::Line(line.to_vec())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// How many lines may be queued.
const WAITING: usize = 4096;
/// How long the end waits for the last of them.
const LAST: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_in_time_is_left_out_and_said() {
        let (to, from) = sync_channel(2);
        let mut lines = Lines { to, lost: Arc::default() };
        (0..5).for_each(|it| lines.write_all(format!("{it}\n").as_bytes()).unwrap());
        let lost = Arc::clone(&lines.lost);
        drop(lines);
        let mut written = Vec::new();
        write(&from, &lost, &mut written);
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written, "0\n3 lines were left out here: they were not read in time.\n1\n");
    }
}
