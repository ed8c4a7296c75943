//! The binary, from outside.

mod asks;
mod catalog;
mod conversations;
mod demo;
mod demo_auth;
mod dialect;
mod failures;
mod faults;
mod http_stress;
mod login;
mod run;
mod stdio;
