//! The fixtures and the two binaries, before the suite sees them.

#![forbid(unsafe_code)]

mod binaries;
mod fixtures;
