//! The binary, from outside.

mod asks;
mod conversations;
mod demo;
mod dialect;
mod failures;
mod faults;
mod http_stress;
mod run;
mod stdio;
