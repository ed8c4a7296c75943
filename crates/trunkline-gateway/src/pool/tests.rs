//! The pool as transcripts, as a property test, and with tasks.

mod fake;
mod keeping;
mod owners;
mod property;
mod runner;
mod shares;
mod sharing;
mod sim;
mod start_failures;
mod sticky;

use sim::check;
