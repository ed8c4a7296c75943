//! A connection that is over → closed so that the peer still reads the last answer (lingering close).
//!
//! A kernel that closes a socket with unread bytes sends a reset instead of an end, and so does one
//! that receives bytes for a closed socket. A reset may overtake the answer, and many systems then
//! discard what the program has not read yet. A client that was refused before its body was read then
//! sees "connection reset" and never the 401 (RFC 9112 §9.6). So every refusal that leaves a body
//! unread ends in three steps: we close the write side, read and discard what still arrives, and only
//! then close the socket.
//!
//! The owner of the socket does this after the last answer, and not each refusal. So an answer goes
//! out at once, whichever part wrote it (a gate, a limit, the connection itself for a malformed head), and no path
//! is forgotten. Draining bodies before the answer would let the slowest clients wait longest for a
//! 401, and would ask clients that wait for `100 Continue` to send their body. HTTP/2 itself ends a
//! stream that was answered early with RST_STREAM(NO_ERROR) (RFC 9113 §8.1); its connection ends like
//! one of HTTP/1.
//!
//! The cost of a lingering peer is bounded in time and bytes. It takes no memory, and counts as a
//! connection while it lasts. A connection that owes nothing and expects nothing closes at once.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use crate::limits::Limits;

/// Ends a connection: closes the write side, then reads and discards what still arrives, within
/// [`linger`](Limits::linger) and [`linger_bytes`](Limits::linger_bytes). Dropping the stream after
/// that destroys no answer that the peer has yet to read.
///
/// With `is_owed` it waits for what the peer is known to be sending; without, it only checks whether
/// something has arrived.
pub async fn linger(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    is_owed: bool,
    limits: &Limits,
) {
    let mut left = limits.linger_bytes;
    let mut is_owed = is_owed;
    let ended = async {
        // A stream that is closed or reset fails here, and there is nothing to wait for.
        let shut = poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)).await;
        if shut.is_err() {
            return;
        }
        poll_fn(|cx| {
            // On the stack: a lingering connection allocates nothing.
            let mut space = [0; PIECE];
            loop {
                let mut piece = ReadBuf::new(&mut space);
                match Pin::new(&mut *stream).poll_read(cx, &mut piece) {
                    Poll::Pending if is_owed => return Poll::Pending,
                    Poll::Ready(Ok(())) if !piece.filled().is_empty() => {
                        is_owed = true;
                        left = left.saturating_sub(piece.filled().len());
                    }
                    _ => return Poll::Ready(()),
                }
                if left == 0 {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    };
    // A slower peer had this long to read the answer.
    let _ = timeout(limits.linger, ended).await;
}

/// How much one read takes.
const PIECE: usize = 8 << 10;
