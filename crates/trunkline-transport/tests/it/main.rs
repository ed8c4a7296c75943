//! Real processes and pipes.

mod child;
mod drive;
#[cfg(feature = "http")]
mod http_client;
mod stdio;
