//! Tracks since when a connection is idle, reads a head or has stalled, so that the server can close it
//! without a timer per request.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

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
    /// Whether a head is overdue.
    expired: AtomicBool,
    /// Whether no request is to follow.
    closing: AtomicBool,
    /// Whether a body was dropped before its end, so that the rest may still arrive.
    is_unread: AtomicBool,
}

impl IdleTracker {
    pub(super) fn new() -> Self {
        Self {
            start: now(),
            busy: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            stalled_since: AtomicU64::new(0),
            expired: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            is_unread: AtomicBool::new(false),
        }
    }

    /// Records that a body was dropped before its end.
    pub(super) fn leave_unread(&self) {
        self.is_unread.store(true, Ordering::Relaxed);
    }

    /// Whether an unwanted body may still arrive.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// A request has arrived.
    pub(super) fn begin(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
    }

    /// A request is answered.
    pub(super) fn end(&self, now: Instant) {
        self.idle_since.store(self.at(now).max(1), Ordering::Relaxed);
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// A request has arrived; it is over when the guard is dropped.
    pub(super) fn request(self: &Arc<Self>) -> RequestGuard {
        self.begin();
        RequestGuard(Arc::clone(self))
    }

    /// No request is to follow.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
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

    /// Notes whether a head is overdue, and returns it.
    pub(super) fn expire(&self) -> bool {
        let is_head = self.head_since.load(Ordering::Relaxed) > 0;
        self.expired.store(is_head, Ordering::Relaxed);
        is_head
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
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

    /// The peer has read all that we sent, or some of it.
    pub(super) fn wrote(&self, all: bool, some: bool) {
        if all {
            self.stalled_since.store(0, Ordering::Relaxed);
        } else if some || self.stalled_since.load(Ordering::Relaxed) == 0 {
            self.stalled_since.store(self.now().max(1), Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        self.at(now())
    }

    fn at(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.start);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Marks a request in progress.
pub(super) struct RequestGuard(Arc<IdleTracker>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.end(now());
    }
}

/// A byte stream that reports its end and its writes to the tracker.
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
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        match &polled {
            Poll::Ready(Ok(())) if buf.filled().len() > before => {}
            Poll::Ready(_) => self.is_over = true,
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
        self.tracker.wrote(polled.is_ready(), false);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.tracker.wrote(polled.is_ready(), false);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        // TLS may accept bytes long before it can send them.
        self.tracker.wrote(polled.is_ready(), false);
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
