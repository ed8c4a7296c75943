//! Real processes and pipes.

mod child;
mod stdio;
