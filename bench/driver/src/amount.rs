//! How much to measure: a time or a number of calls.

use std::process::Command;
use std::time::Duration;

use crate::process::Process;
use crate::words::number;

/// When a measurement ends.
#[derive(Clone, Copy)]
pub enum Amount {
    Time(Duration),
    Calls(u64),
}

impl Amount {
    /// Whether to begin another call.
    pub fn wants_more(self, begun: u64, elapsed: Duration) -> bool {
        match self {
            Amount::Calls(calls) => begun < calls,
            // At least one call, so that a figure exists.
            Amount::Time(time) => begun == 0 || elapsed < time,
        }
    }
}

/// How much is said, and how long it may take.
pub struct Volume {
    /// The bytes of the text that is echoed.
    pub payload: usize,
    pub amount: Amount,
    /// After this long what was started is killed, whatever it does.
    pub deadline: Duration,
    /// A command that is run when all is ready, before the calls.
    pub ready: Option<String>,
}

impl Volume {
    /// Takes an option that says how much; false if it is another.
    pub fn takes(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--payload" => self.payload = number(option, value)?,
            "--calls" => self.amount = Amount::Calls(number(option, value)?),
            "--milliseconds" => {
                self.amount = Amount::Time(Duration::from_millis(number(option, value)?))
            }
            "--ready" => self.ready = Some(value.into()),
            "--deadline" => self.deadline = Duration::from_secs(number(option, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Tells whoever waits for it that the calls begin.
    pub fn say_ready(&self, process: &Process) -> Result<(), String> {
        let Some(command) = &self.ready else { return Ok(()) };
        let command = command.replace("{pid}", &process.id().to_string());
        let mut words = command.split(' ');
        let mut told = Command::new(words.next().unwrap_or_default());
        let output = told.args(words).output();
        match output.map_err(|error| format!("`{command}` does not start: {error}."))? {
            output if output.status.success() => Ok(()),
            output => {
                let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(format!("`{command}` failed: {}", complaint.trim()))
            }
        }
    }
}

impl Default for Volume {
    fn default() -> Volume {
        let amount = Amount::Time(Duration::from_secs(1));
        Volume { payload: 100, amount, deadline: Duration::from_secs(60), ready: None }
    }
}
