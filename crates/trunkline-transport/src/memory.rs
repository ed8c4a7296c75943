//! Two ends of a conversation inside one process.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// One end: what the other wrote, and where to write.
pub type End = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

/// Two connected ends. What one writes the other reads; dropping one ends the other's reading.
pub fn pair() -> (End, End) {
    let (left, right) = duplex(BUFFER);
    (split(left), split(right))
}

const BUFFER: usize = 64 * 1024;
