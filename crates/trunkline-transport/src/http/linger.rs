//! A connection that is over → closed so that the peer still reads the last answer (lingering close).
//!
//! A kernel that closes a socket with unread bytes in it sends a reset instead of an end, and so does
//! one that gets bytes for a socket that is closed. A reset may overtake the answer, and has many a
//! system throw away what its program has not read yet: a client that was refused before its body was
//! read sees "connection reset", never the 401 (RFC 9112 §9.6). So every refusal that leaves a body
//! unread ends in three steps: the write side is closed, what still comes is read and dropped, and
//! only then is the socket closed.
//!
//! This is done where the socket is owned, after hyper is through with it, and not in each refusal: an
//! answer is then out at once, whoever gave it (a gate, a limit, hyper itself for a head it cannot
//! read), and no way out of a connection is forgotten. Draining bodies before the answer instead would
//! have the slowest clients wait longest for a 401, and would ask those for the body who wait for
//! `100 Continue`. HTTP/2 ends a stream that was answered early with RST_STREAM(NO_ERROR) by itself
//! (RFC 9113 §8.1); its connection ends the same way as one of HTTP/1.
//!
//! What a peer can make of it is bounded in time and in bytes, takes no memory, and counts as a
//! connection while it lasts. A connection on which nothing is owed or on its way closes at once.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use crate::limits::Limits;

/// Ends a connection: closes the write side, then reads and drops what still comes, within
/// [`linger`](Limits::linger) and [`linger_bytes`](Limits::linger_bytes). Dropping the stream after
/// that resets nothing that the peer has yet to read.
///
/// With `is_owed` it waits for what the peer is known to be sending; without, it only looks whether
/// something is there.
pub async fn linger(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    is_owed: bool,
    limits: &Limits,
) {
    let mut left = limits.linger_bytes;
    let mut is_owed = is_owed;
    let ended = async {
        // One that is shut already, or was reset, says so, and then there is nothing to wait for.
        let shut = poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)).await;
        if shut.is_err() {
            return;
        }
        poll_fn(|cx| {
            // On the stack: nobody who waits takes memory for it.
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
    // Whoever is slower than this had that long to read the answer.
    let _ = timeout(limits.linger, ended).await;
}

/// How much is read at once.
const PIECE: usize = 8 << 10;
