//! The one integration-test binary of this crate: conversations as text, by theme.

mod asks;
mod audit;
mod batch;
mod calls;
mod lifecycle;
mod logging;
mod malformed;
mod samples;
mod stateless;
mod subscriptions;
mod table;
mod transcript;
