//! The one integration-test binary of this crate: conversations as text, by theme.

mod audit;
mod lifecycle;
mod samples;
mod table;
mod transcript;
