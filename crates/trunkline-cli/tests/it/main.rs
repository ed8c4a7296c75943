//! The binary, from outside.

mod admin;
mod asks;
mod bridge;
mod catalog;
mod clients;
mod conversations;
mod crossings;
mod demo;
mod demo_auth;
mod dialect;
mod doctor;
mod failures;
mod faults;
mod gateway_isolation;
mod gateway_kit;
mod gateway_leaks;
mod gateway_once;
mod gateway_pins;
mod gateway_sight;
mod gateway_tasks;
mod http_stress;
mod login;
mod mcpv;
mod roots;
mod run;
mod stdio;
