//! The one integration-test binary of this crate: conversations as text, by theme.

mod asks;
mod audit;
mod batch;
mod calls;
mod client_calls;
mod http_classify;
mod http_door;
mod http_reply;
mod http_streams;
mod lifecycle;
mod logging;
mod malformed;
mod matrix;
mod owners;
mod probe;
mod relays;
mod rounds;
mod samples;
mod stateless;
mod stress;
mod subscriptions;
mod table;
mod transcript;
