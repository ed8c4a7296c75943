//! Two ends of a conversation inside one process.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// One end: what the other wrote, and where to write.
///
/// ```
/// # use tokio::io::AsyncWriteExt;
/// # use trunkline_transport::memory::{pair, End};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// async fn hello((_, mut to): End) -> std::io::Result<()> {
///     to.write_all(b"{}\n").await
/// }
/// let (near, far) = pair();
/// assert!(hello(near).await.is_ok());
/// # drop(far);
/// # }
/// ```
pub type End = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

/// Two connected ends. What one writes the other reads; dropping one ends the other's reading.
///
/// ```
/// # use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// # use trunkline_transport::memory::pair;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let ((_, mut to), (mut from, _back)) = pair();
/// to.write_all(b"{}\n").await.unwrap();
/// let mut text = [0; 3];
/// from.read_exact(&mut text).await.unwrap();
/// assert_eq!(&text, b"{}\n");
/// # }
/// ```
pub fn pair() -> (End, End) {
    let (left, right) = duplex(BUFFER);
    (split(left), split(right))
}

const BUFFER: usize = 64 * 1024;
