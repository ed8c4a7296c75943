//! The binary, from outside.

mod admin;
mod asks;
mod catalog;
mod clients;
mod conversations;
mod demo;
mod demo_auth;
mod dialect;
mod doctor;
mod failures;
mod faults;
mod http_stress;
mod login;
mod mcpv;
mod run;
mod stdio;
