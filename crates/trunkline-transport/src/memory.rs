//! A connected pair of byte streams inside one process.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// One end: a reader and a writer.
pub type End = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

/// Two connected ends. Dropping one ends the other's input.
pub fn pair() -> (End, End) {
    let (left, right) = duplex(BUFFER);
    (split(left), split(right))
}

const BUFFER: usize = 64 * 1024;
