//! Integration tests with real processes, pipes and sockets.

mod child;
mod drive;
mod ends;
#[cfg(feature = "http")]
mod http_budget;
#[cfg(feature = "http")]
mod http_client;
#[cfg(feature = "http")]
mod http_heard;
#[cfg(feature = "http")]
mod http_linger;
#[cfg(feature = "http")]
mod http_replicas;
#[cfg(feature = "tls")]
mod http_tls;
#[cfg(feature = "http")]
mod http_trusting;
mod stdio;
