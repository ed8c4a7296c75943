//! The SDK, from outside.

mod client;
mod client_ask;
mod client_cache;
mod client_child;
mod client_listen;
mod client_peer;
mod client_skills;
mod client_task;
mod client_tools;
mod http;
mod http_bad;
mod http_ends;
mod http_limits;
mod http_resume;
mod http_server;
mod http_service;
mod http_streams;
mod http_stress;
mod server;
mod server_answers;
mod server_asks;
mod server_skills;
mod server_tasks;
