//! The binary, from outside.

mod asks;
mod conversations;
mod dialect;
mod faults;
mod stdio;
