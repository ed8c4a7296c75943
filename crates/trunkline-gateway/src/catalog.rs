//! A file → what runs.

pub mod plan;
