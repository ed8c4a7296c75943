//! The gateway: many MCP servers behind one endpoint. It is a handler like any tool.
//!
//! Where to read first: `gate.rs`, the path of a call from top to bottom.

#![forbid(unsafe_code)]

mod accounts;
pub mod admin;
mod allowed;
pub mod attach;
mod bearer;
mod cache;
mod call_record;
mod caller;
mod calls;
pub mod catalog;
pub mod certificates;
mod client_profile;
mod compared;
mod copies;
pub mod failure;
#[cfg(test)]
mod fixture;
mod fleet;
mod forward;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod gateway;
mod instance_handler;
mod list_changes;
mod login_steps;
pub mod logs;
pub mod merge;
pub mod metrics;
mod named;
mod operate;
mod otel;
mod outcome;
mod parked_calls;
mod placement;
pub mod policy;
pub mod pool;
mod question;
mod question_router;
mod report;
mod runner;
mod scoped_handler;
mod seal;
mod search;
mod selector;
mod server;
mod socket;
mod state;
mod subscriptions;
mod tasks;
mod trace;
mod traffic;
mod trying;
mod upstream;
mod upstream_call;
mod watcher;

pub use allowed::{Allowed, allowed};
pub use fleet::{Fleet, LocalSessions, ReplicaInfo, ReplicaView};
pub use front::{Front, reached_at};
pub use gateway::Gateway;
pub use operate::Operation;
pub use otel::OtelSettings;
pub use selector::Selector;
pub use state::Settings;
pub use watcher::{Found, Logins};
