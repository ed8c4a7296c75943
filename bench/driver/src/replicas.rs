//! Gateways that run already, called in turn for a moment each → one JSON object per moment.

use std::time::Duration;

use serde_json::json;

use crate::amount::{Amount, Volume};
use crate::calls::{Calls, Revision};
use crate::http::{Endpoint, Load, Shape};
use crate::process::{Cores, cpu_of};
use crate::words::{Measurement, Subject, number};

/// What one run of the driver does.
pub struct Options {
    revision: Revision,
    shape: Shape,
    volume: Volume,
    tool: String,
    rounds: usize,
}

impl Default for Options {
    fn default() -> Options {
        let (shape, volume) = Default::default();
        let revision = Revision::V2025_11_25;
        Options { revision, shape, volume, tool: "echo".into(), rounds: 5 }
    }
}

impl Measurement for Options {
    const USAGE: &str = USAGE;
    const LABEL: &str = "gateways";

    fn take(&mut self, option: &str, value: &str) -> Result<bool, String> {
        match option {
            "--revision" => self.revision = Revision::named(value)?,
            "--tool" => self.tool = value.into(),
            "--rounds" => self.rounds = number(option, value)?,
            _ => return Ok(self.volume.takes(option, value)? || self.shape.takes(option, value)?),
        }
        Ok(true)
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        let Amount::Time(time) = self.volume.amount else {
            return Err("gateways that take turns are measured by time.".into());
        };
        Cores::two()?.stand()?;
        let parties = Party::all(&subject.command)?;
        let mut loads = Vec::new();
        for party in &parties {
            let calls = Calls::new(self.revision, &self.tool, self.volume.payload);
            let [at, opener] = [&party.at, &party.opener].map(|it| Endpoint::new(it.clone()));
            loads.push(Load::connect_with(&at, Some(&opener), calls, self.shape)?);
        }
        // The first turn of each is its warm-up.
        for round in 0..=self.rounds {
            for turn in 0..parties.len() {
                let turn = (turn + round) % parties.len();
                let (party, load) = (&parties[turn], &mut loads[turn]);
                let (mut measured, _) = load.run(|| party.cpu(), Amount::Time(time))?;
                if round == 0 {
                    continue;
                }
                measured.latencies.sort_unstable();
                let report = json!({
                    "label": party.label,
                    "calls": measured.calls,
                    "calls_per_s": measured.calls_per_s(),
                    "p50_us": measured.latency(0.50),
                    "p99_us": measured.latency(0.99),
                    "gateway_cpu_us": measured.per_call(measured.server_cpu),
                    "driver_cpu_us": measured.per_call(measured.driver_cpu),
                });
                println!("{report}");
            }
        }
        Ok(())
    }
}

/// A way to call that is measured.
struct Party {
    label: String,
    /// Where calls go.
    at: String,
    /// Where their sessions are opened.
    opener: String,
    /// The processes whose time counts.
    pids: Vec<u32>,
}

impl Party {
    fn all(words: &[String]) -> Result<Vec<Party>, String> {
        let read = |words: &[String]| {
            let [label, at, opener, pids] = words else {
                return Err(format!("`{}` says no gateway; four words do.", words.join(" ")));
            };
            let pids: Result<Vec<u32>, _> = pids.split(',').map(str::parse).collect();
            let pids = pids.map_err(|_| format!("`{label}` has no processes."))?;
            Ok(Party { label: label.clone(), at: at.clone(), opener: opener.clone(), pids })
        };
        words.chunks(4).map(read).collect()
    }

    fn cpu(&self) -> Result<Duration, String> {
        self.pids.iter().map(|pid| cpu_of(*pid)).sum()
    }
}

const USAGE: &str = "\
driver replicas [OPTIONS] -- LABEL ADDRESS OPENER PID[,PID…] …
  gateways that run already, four words each: a label, the address that is called, the address where the sessions of
  these calls are opened, and the processes whose CPU counts
  --rounds N            how many turns each has (5), after one that warms it up
  --milliseconds N      how long a turn takes (1000)
  --tool NAME           what the gateways call the upstream's `echo` (echo)
  --revision (2025-11-25), --connections, --payload, --show   as with `http`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_words_are_a_gateway() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let all = Party::all(&words("forwarded 1:2 1:3 7,8 direct 1:3 1:3 8")).expect("two");
        assert_eq!((all[0].pids.as_slice(), &*all[1].opener), (&[7, 8][..], "1:3"));
        assert!(Party::all(&words("forwarded 1:2 1:3")).is_err());
        assert!(Party::all(&words("forwarded 1:2 1:3 me")).is_err());
    }
}
