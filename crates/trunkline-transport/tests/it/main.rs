//! Real processes and pipes.

mod child;
mod drive;
mod stdio;
