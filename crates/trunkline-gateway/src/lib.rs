//! Many servers behind one door. Itself a handler like any tool.
//!
//! Where to read first: `gate.rs`, the walk of a call from top to bottom.

#![forbid(unsafe_code)]

mod able;
mod accounts;
pub mod admin;
mod allowed;
mod approve;
pub mod attach;
mod automatic;
mod bearer;
mod cache;
mod caller;
mod calls;
pub mod catalog;
pub mod certificates;
pub mod clients;
mod compared;
mod copies;
mod face;
pub mod failure;
mod forward;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod gateway;
mod hold;
mod keeper;
mod line;
pub mod logs;
pub mod merge;
pub mod metrics;
mod named;
mod news;
mod operate;
mod otel;
mod park;
pub mod policy;
pub mod pool;
mod question;
mod report;
mod runner;
mod seal;
mod search;
mod server;
mod socket;
mod subscriptions;
mod switch;
mod tasks;
mod trail;
mod upstream;

pub use allowed::{Allowed, allowed};
pub use face::Selector;
pub use front::{Front, reached_at};
pub use gateway::{Found, Gateway, Logins, Settings};
pub use operate::Operation;
pub use otel::OtelSettings;
