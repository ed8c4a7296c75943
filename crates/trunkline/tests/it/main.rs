//! The SDK, from outside.

mod client;
mod client_ask;
mod client_cache;
mod client_child;
mod client_listen;
mod client_peer;
mod client_task;
mod client_tools;
mod server;
mod server_asks;
mod server_tasks;
