//! Runs of the suite into a table and a list of what counts against us.

use super::checks::{Except, Scenario, Tally};
use super::suite::{Ran, Required};
use std::collections::BTreeSet;
use std::time::Duration;

/// The rows so far, and every complaint.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    against: Vec<String>,
    excused: BTreeSet<String>,
    in_full: bool,
}

struct Row {
    name: String,
    scored: Share,
    unscored: Share,
    tally: Tally,
    time: Duration,
}

/// So many of so many.
#[derive(Default, Clone, Copy)]
struct Share {
    passed: usize,
    of: usize,
}

impl Report {
    /// An empty one; it says whether messages are given in full.
    pub fn new(in_full: bool) -> Report {
        Report { in_full, ..Report::default() }
    }

    /// Adds a run that should hold these scenarios, and returns how many checks succeeded.
    pub fn add(&mut self, name: &str, wanted: &Required, ran: &Ran) -> usize {
        self.add_except(name, wanted, ran, None)
    }

    /// The same, but some checks may fail.
    pub fn add_except(
        &mut self,
        name: &str,
        wanted: &Required,
        ran: &Ran,
        except: Option<Except<'_>>,
    ) -> usize {
        let before = self.against.len();
        let mut tally = Tally::default();
        let allowed = except.unwrap_or(&|_, _| None);
        let scored = self.share(name, &wanted.scored, ran, &mut tally, allowed);
        let unscored = self.share(name, &wanted.unscored, ran, &mut tally, allowed);
        let is_all = except.is_none() && wanted.is_all(&ran.scenarios);
        let found = self.against.len() - before;
        match ran.status {
            None => self.complain(format!("{name}: the suite did not end in time")),
            Some(status) if !status.success() && found == 0 && is_all => {
                self.complain(format!("{name}: the suite ended with {status}"));
            }
            Some(_) => {}
        }
        if self.against.len() > before {
            self.complain(format!("{name}: see `{}`", ran.log.display()));
        }
        self.rows.push(Row { name: name.to_owned(), scored, unscored, tally, time: ran.time });
        tally.ok
    }

    /// Adds one more complaint.
    pub fn complain(&mut self, line: String) {
        self.against.push(line);
    }

    /// Prints everything; an error if anything counts against us.
    pub fn end(self) -> Result<(), String> {
        self.table();
        if !self.excused.is_empty() {
            println!("\nexcused, each for its reason:");
            self.excused.iter().for_each(|line| println!("  {line}"));
        }
        if self.against.is_empty() {
            return Ok(());
        }
        println!("\nagainst us:");
        for line in &self.against {
            let short: String = line.chars().take(MOST_LETTERS).collect();
            let cut = !self.in_full && short.len() < line.len();
            println!("  {}", if cut { format!("{short}…") } else { line.clone() });
        }
        Err("The suite has something against us; it is listed above.".to_owned())
    }

    /// Judges the scenarios of these names.
    fn share(
        &mut self,
        run: &str,
        names: &[String],
        ran: &Ran,
        tally: &mut Tally,
        except: Except<'_>,
    ) -> Share {
        let mut share = Share { passed: 0, of: names.len() };
        for name in names {
            let Some(scenario) = ran.scenarios.iter().find(|scenario| scenario.name == *name)
            else {
                self.complain(format!("{run}: {name}: it did not run"));
                continue;
            };
            let verdict = scenario.judge(except);
            tally.add(verdict.tally);
            share.passed += usize::from(verdict.against.is_empty());
            self.excused.extend(verdict.excused);
            for line in verdict.against {
                self.complain(format!("{run}: {name}: {line}"));
            }
        }
        share
    }

    fn table(&self) {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        println!(
            "\n{:width$}  scenarios  not scored    ok  fail  warn  skip  info  excused  seconds",
            "run"
        );
        for Row { name, scored, unscored, tally, time } in &self.rows {
            println!(
                "{name:width$}  {:>9}  {:>10}  {:>4}  {:>4}  {:>4}  {:>4}  {:>4}  {:>7}  {:>7.1}",
                scored.text(),
                unscored.text(),
                tally.ok,
                tally.failed,
                tally.warned,
                tally.skipped,
                tally.noted,
                tally.excused,
                time.as_secs_f64()
            );
        }
    }
}

impl Required {
    /// Whether nothing ran that is not wanted, so that the suite's own verdict is about the same.
    fn is_all(&self, scenarios: &[Scenario]) -> bool {
        let wanted = |name: &String| self.scored.contains(name) || self.unscored.contains(name);
        scenarios.iter().all(|scenario| wanted(&scenario.name))
    }
}

impl Share {
    fn text(self) -> String {
        if self.of == 0 { "-".to_owned() } else { format!("{}/{}", self.passed, self.of) }
    }
}

const MOST_LETTERS: usize = 400;
