//! The pool as transcripts, as a property test, and with tasks.

mod fake;
mod keeping;
mod owners;
mod property;
mod runner;
mod shares;
mod sharing;
mod sim;
mod sticky;
mod trouble;

use sim::check;
