//! The body of a request that has not all come: read by its connection when somebody wants it.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// Hands the pieces of a body from its connection to its reader.
#[derive(Debug)]
pub(in crate::http) struct Feed(Mutex<State>);

#[derive(Debug)]
struct State {
    piece: Option<Bytes>,
    is_wanted: bool,
    /// The bytes that are still to come, if that is known.
    left: Option<u64>,
    end: Option<Result<(), io::ErrorKind>>,
    reader: Option<Waker>,
    connection: Option<Waker>,
}

impl Feed {
    /// One of a body with so many bytes, if that is known.
    pub(super) fn new(left: Option<u64>) -> Self {
        let (piece, end, reader, connection) = (None, None, None, None);
        Self(Mutex::new(State { piece, is_wanted: false, left, end, reader, connection }))
    }

    /// The next piece, for the reader; `None` at the end.
    pub(in crate::http) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut state = self.lock();
        if let Some(piece) = state.piece.take() {
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.end {
            Some(Ok(())) => return Poll::Ready(None),
            Some(Err(kind)) => return Poll::Ready(Some(Err(kind.into()))),
            None => {}
        }
        state.is_wanted = true;
        state.reader = Some(cx.waker().clone());
        // The task of the connection looks after it has polled the reader. Another reader has to wake it.
        let elsewhere = state.connection.take_if(|it| !it.will_wake(cx.waker()));
        drop(state);
        if let Some(connection) = elsewhere {
            connection.wake();
        }
        Poll::Pending
    }

    /// Whether the reader wants more. If not, it wakes the connection when it does.
    pub(super) fn is_wanted(&self, connection: &Waker) -> bool {
        let mut state = self.lock();
        state.connection = Some(connection.clone());
        state.is_wanted
    }

    /// Hands on a piece; `is_last` if it is the last one.
    pub(super) fn put(&self, piece: Bytes, is_last: bool) {
        let mut state = self.lock();
        state.left = state.left.map(|it| it.saturating_sub(piece.len() as u64));
        state.piece = Some(piece);
        if is_last {
            state.end = Some(Ok(()));
        }
        wake_reader(state);
    }

    /// No more comes: the body is complete, or why it is not.
    pub(super) fn end(&self, outcome: Result<(), io::ErrorKind>) {
        let mut state = self.lock();
        state.end.get_or_insert(outcome);
        wake_reader(state);
    }

    /// Whether the reader has all of it.
    pub(in crate::http) fn is_over(&self) -> bool {
        let state = self.lock();
        state.piece.is_none() && state.end == Some(Ok(()))
    }

    /// The bytes that the reader has not got, if that is known.
    pub(in crate::http) fn left(&self) -> Option<u64> {
        let state = self.lock();
        let here = state.piece.as_ref().map_or(0, Bytes::len);
        state.left.map(|it| it + here as u64)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake_reader(mut state: MutexGuard<'_, State>) {
    state.is_wanted = false;
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_reads_when_it_is_asked_and_its_reader_hears_of_it() {
        let task = || Arc::new(Count(AtomicUsize::new(0)));
        let woken = |it: &Arc<Count>| it.0.load(Ordering::Relaxed);
        let (connection, reader) = (task(), task());
        let (at_connection, at_reader) =
            (Waker::from(Arc::clone(&connection)), Waker::from(Arc::clone(&reader)));
        let feed = Feed::new(Some(5));
        let kinds = |it: Option<io::Result<Bytes>>| it.map(|it| it.map_err(|it| it.kind()));
        let poll = || feed.poll(&mut Context::from_waker(&at_reader)).map(kinds);
        assert!(!feed.is_wanted(&at_connection));
        assert!(poll().is_pending() && feed.is_wanted(&at_connection));
        assert_eq!((woken(&connection), woken(&reader)), (1, 0));
        feed.put(Bytes::from_static(b"abc"), false);
        assert_eq!((woken(&reader), feed.left(), feed.is_over()), (1, Some(5), false));
        assert_eq!(poll(), Poll::Ready(Some(Ok(Bytes::from_static(b"abc")))));
        assert_eq!(feed.left(), Some(2));
        assert!(poll().is_pending());
        feed.put(Bytes::from_static(b"de"), true);
        assert_eq!(poll(), Poll::Ready(Some(Ok(Bytes::from_static(b"de")))));
        assert!(feed.is_over() && poll() == Poll::Ready(None));
        // What ended well does not fail later.
        feed.end(Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(poll(), Poll::Ready(None));
        let broken = Feed::new(None);
        broken.end(Err(io::ErrorKind::InvalidData));
        let polled = broken.poll(&mut Context::from_waker(&at_reader)).map(kinds);
        assert_eq!(polled, Poll::Ready(Some(Err(io::ErrorKind::InvalidData))));
        assert!(!broken.is_over());
    }
}
