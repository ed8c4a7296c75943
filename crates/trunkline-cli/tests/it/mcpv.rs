//! The twenty behaviours that make a gateway of the kind of mcpv, each against the binary with a
//! server behind it that writes down its starts, calls and signals. `cargo xtask mcpv` prints them
//! as a table, so their names begin with their numbers.

mod announced;
mod audit;
mod capacity;
mod claims;
mod config;
mod edge;
mod eras;
mod left_out;
mod lifecycle;
mod log;
mod names;
mod operate;
mod place;
mod plugins;
mod reload;
mod restart;
mod roots;
mod shared;
mod skills;
mod sticky;
mod stress;
mod trouble;
mod unclear;
mod waiting;
