//! How much to measure: a time or a number of calls.

use std::time::Duration;

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
            "--deadline" => self.deadline = Duration::from_secs(number(option, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Default for Volume {
    fn default() -> Volume {
        let amount = Amount::Time(Duration::from_secs(1));
        Volume { payload: 100, amount, deadline: Duration::from_secs(60) }
    }
}
