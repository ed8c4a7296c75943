//! Whether there may be something to read, so that a turn about something else does not ask the stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// What the stream wakes.
pub(super) struct Readable {
    signal: Arc<Signal>,
    /// The signal as the stream is given it.
    waker: Waker,
    /// The task that it knows.
    known: Option<Waker>,
}

struct Signal {
    is_up: AtomicBool,
    /// The task that reads.
    task: Mutex<Waker>,
}

impl Readable {
    pub(super) fn new() -> Self {
        let task = Mutex::new(Waker::noop().clone());
        let signal = Arc::new(Signal { is_up: AtomicBool::new(true), task });
        Self { waker: Waker::from(Arc::clone(&signal)), signal, known: None }
    }

    /// Whether the stream was woken since it had nothing. If so it has to be asked, and wakes this task again.
    pub(super) fn take(&mut self, cx: &Context<'_>) -> Option<Context<'_>> {
        let is_known = self.known.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if !is_known {
            self.known = Some(cx.waker().clone());
            self.signal.task().clone_from(cx.waker());
        }
        // Mostly it was not, and then nothing has to be written.
        let is_up = &self.signal.is_up;
        let was_up = is_up.load(Ordering::Acquire) && is_up.swap(false, Ordering::AcqRel);
        (was_up || !is_known).then(|| Context::from_waker(&self.waker))
    }

    /// There may be more to read.
    pub(super) fn set(&self) {
        self.signal.is_up.store(true, Ordering::Release);
    }
}

impl Signal {
    fn task(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_up.store(true, Ordering::Release);
        let task = self.task().clone();
        task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_asked_at_first_and_then_when_it_was_woken() {
        // Two wakers that do nothing need not be known as one; a waker and its copies are.
        let task = Waker::noop().clone();
        let (mut readable, cx) = (Readable::new(), Context::from_waker(&task));
        let stream = readable.take(&cx).expect("nobody has asked it yet").waker().clone();
        assert!(readable.take(&cx).is_none());
        stream.wake_by_ref();
        assert!(readable.take(&cx).is_some() && readable.take(&cx).is_none());
        readable.set();
        assert!(readable.take(&cx).is_some());
    }

    #[test]
    fn whoever_asked_last_is_woken() {
        struct Task(AtomicBool);
        impl Wake for Task {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let tasks = [(); 2].map(|()| Arc::new(Task(AtomicBool::new(false))));
        let mut readable = Readable::new();
        for task in &tasks {
            let waker = Waker::from(Arc::clone(task));
            assert!(readable.take(&Context::from_waker(&waker)).is_some(), "it is another task");
        }
        readable.waker.wake_by_ref();
        assert_eq!(tasks.map(|it| it.0.load(Ordering::Relaxed)), [false, true]);
    }
}
