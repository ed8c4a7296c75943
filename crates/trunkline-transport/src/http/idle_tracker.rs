//! Tracks since when a connection is idle, reads a head or has stalled, so that the server can close it
//! without a timer per request.
//!
//! It also stands between a connection and its task: whoever takes the last piece of a body wakes the
//! connection, which has nothing to do then, and would be polled once more for each request.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clock::now;
use crate::limits::Limits;

/// What one connection is doing, and since when.
#[derive(Debug)]
pub(super) struct IdleTracker {
    start: Instant,
    /// Requests in progress.
    busy: AtomicU32,
    /// When the connection last became idle, in milliseconds since its start.
    idle_since: AtomicU64,
    /// When the head that is being read began, likewise; 0 if none, [`UNTIMED`] until [`Self::time_head`].
    head_since: AtomicU64,
    /// Since when the peer has not read what we sent, likewise.
    stalled_since: AtomicU64,
    expired: AtomicBool,
    /// Whether a body was dropped before its end, so that the rest may still arrive.
    is_unread: AtomicBool,
    unread: Mutex<Option<Incoming>>,
    /// The task of the connection.
    task: Mutex<Option<Waker>>,
    pub(super) is_h2: bool,
}

impl IdleTracker {
    pub(super) fn new(is_h2: bool) -> Arc<Self> {
        Arc::new(Self {
            start: now(),
            busy: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            stalled_since: AtomicU64::new(0),
            expired: AtomicBool::new(false),
            is_unread: AtomicBool::new(false),
            unread: Mutex::new(None),
            task: Mutex::new(None),
            is_h2,
        })
    }

    /// Records that a body was dropped before its end. The rest is kept if the next request follows it;
    /// in HTTP/2 a body has its own stream.
    pub(super) fn leave_unread(&self, rest: Option<Incoming>) {
        self.is_unread.store(true, Ordering::Relaxed);
        if !self.is_h2 {
            *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = rest;
        }
    }

    /// The rest of the body of the request that was just answered, if it can be read.
    pub(super) fn take_unread(&self) -> Option<Incoming> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The rest of the body has arrived.
    pub(super) fn arrived(&self) {
        self.is_unread.store(false, Ordering::Relaxed);
    }

    /// Whether an unwanted body may still arrive.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// A request has arrived; it is over when the guard is dropped.
    pub(super) fn request(self: &Arc<Self>) -> RequestGuard {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        RequestGuard(Arc::clone(self))
    }

    /// When to check again; `None` if the connection must be closed.
    pub(super) fn check(&self, limits: &Limits) -> Option<Instant> {
        let at = self.now();
        let stalled = self.stalled_since.load(Ordering::Relaxed);
        if stalled > 0 && at >= stalled + millis(limits.keep_alive) {
            return None;
        }
        if self.busy.load(Ordering::Relaxed) > 0 {
            // It cannot be idle before that.
            return Some(now() + limits.keep_alive.min(limits.header_read));
        }
        let head = self.head_since.load(Ordering::Relaxed);
        let (since, limit) = match head {
            0 => (self.idle_since.load(Ordering::Relaxed), limits.keep_alive),
            since => (since, limits.header_read),
        };
        let due = since + millis(limit);
        if due <= at {
            return None;
        }
        // A head may begin at any time and has a shorter deadline.
        let next = due.min(at + millis(limits.header_read));
        Some(self.start + Duration::from_millis(next))
    }

    /// Makes the next read fail if a head is overdue. Returns whether one is.
    pub(super) fn expire(&self) -> bool {
        let is_head = self.head_since.load(Ordering::Relaxed) > 0;
        self.expired.store(is_head, Ordering::Relaxed);
        is_head
    }

    /// Bytes have arrived: unless a request is in progress, a head begins.
    pub(super) fn heard(&self) {
        if self.busy.load(Ordering::Relaxed) == 0 && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(UNTIMED, Ordering::Relaxed);
        }
    }

    /// The connection was polled. A head that is not complete by then is timed from now on; most are, and need no
    /// look at the clock.
    pub(super) fn time_head(&self) {
        if self.head_since.load(Ordering::Relaxed) == UNTIMED {
            self.head_since.store(self.now().max(1), Ordering::Relaxed);
        }
    }

    fn wrote<T>(&self, polled: &Poll<T>) {
        match polled {
            Poll::Ready(_) => self.stalled_since.store(0, Ordering::Relaxed),
            Poll::Pending if self.stalled_since.load(Ordering::Relaxed) == 0 => {
                self.stalled_since.store(self.now().max(1), Ordering::Relaxed);
            }
            Poll::Pending => {}
        }
    }

    /// Sets the task that it wakes.
    pub(super) fn wakes(&self, task: &Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
    }

    fn now(&self) -> u64 {
        let elapsed = now().saturating_duration_since(self.start);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Wake for IdleTracker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if HELD.try_with(|it| it.get().map(|_| it.set(Some(true)))).ok().flatten().is_some() {
            return;
        }
        // The waker of a task: it schedules it, and polls nothing under this lock.
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.wake_by_ref();
        }
    }
}

/// Holds back what this thread wakes connections for during `poll`. Returns whether there was anything: then the
/// caller must wake the connection, unless there is nothing left to do for it.
pub(super) fn holding_back<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    struct Holding;
    impl Drop for Holding {
        fn drop(&mut self) {
            HELD.set(None);
        }
    }
    HELD.set(Some(false));
    let holding = Holding;
    let polled = poll();
    let has_woken = HELD.get() == Some(true);
    drop(holding);
    (polled, has_woken)
}

thread_local! {
    /// While it holds back, whether there was anything to.
    static HELD: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Marks a request in progress.
pub(super) struct RequestGuard(Arc<IdleTracker>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now().max(1), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A byte stream that reports its reads and writes to the tracker.
pub(super) struct TrackedStream<S> {
    pub(super) stream: S,
    pub(super) tracker: Arc<IdleTracker>,
    /// Whether the peer has closed its side or is gone.
    pub(super) is_over: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.tracker.expired.load(Ordering::Relaxed) {
            // Best effort: a client this slow is hardly reading.
            let _ = Pin::new(&mut this.stream).poll_write(cx, TIMED_OUT);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        match &polled {
            // HTTP/2 watches its own heads.
            Poll::Ready(Ok(())) if buf.filled().len() > before => {
                if !this.tracker.is_h2 {
                    this.tracker.heard();
                }
            }
            Poll::Ready(_) => this.is_over = true,
            Poll::Pending => {}
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.tracker.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.tracker.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        // TLS may accept bytes long before it can send them.
        self.tracker.wrote(&polled);
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

fn millis(time: Duration) -> u64 {
    // Larger than any real time, but safe to add to one.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

/// A head that has just begun.
const UNTIMED: u64 = u64::MAX;
const TIMED_OUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_wakes_a_connection_is_held_back_on_this_thread_and_for_that_long() {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let woken = || count.0.load(Ordering::Relaxed);
        let tracker = IdleTracker::new(false);
        tracker.wakes(&Waker::from(Arc::clone(&count)));
        let waker = Waker::from(Arc::clone(&tracker));
        assert_eq!(holding_back(|| 1), (1, false));
        assert_eq!(holding_back(|| waker.wake_by_ref()), ((), true));
        assert_eq!(woken(), 0);
        waker.wake_by_ref();
        assert_eq!(woken(), 1);
        let elsewhere = waker.clone();
        let (joined, has_woken) = holding_back(|| thread::spawn(|| elsewhere.wake()).join());
        assert!(joined.is_ok() && !has_woken && woken() == 2);
        let panicked = catch_unwind(|| holding_back(|| panic!("a test wants this")));
        assert!(panicked.is_err());
        waker.wake();
        assert_eq!(woken(), 3);
    }
}
