//! A queue between one channel and one listener: bounded, and the oldest goes first when it is full.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Hears what is published on a channel, from [`Store::listen`](crate::Store::listen).
#[derive(Debug)]
pub struct Listener {
    queue: Arc<Queue>,
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Somebody said this.
    Message(Arc<[u8]>),
    /// So many messages were lost here, because this listener was too far behind. Whoever needs them
    /// reads the store anew.
    Lost(u64),
}

/// The other end of a [`Listener`]; for backends.
#[derive(Debug)]
pub struct Feed {
    queue: Arc<Queue>,
}

impl Listener {
    /// A listener and what feeds it; it may be `most` messages behind. For backends.
    pub fn new(most: usize) -> (Feed, Listener) {
        let queue = Arc::new(Queue { most: most.max(1), ..Queue::default() });
        (Feed { queue: queue.clone() }, Listener { queue })
    }

    /// Waits for the next message. `None` when the store is gone and everything was heard. Dropping
    /// the future loses nothing.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(heard) = self.ready() {
                return Some(heard);
            }
            if self.queue.state().is_closed {
                // It may have been closed right after a last message.
                return self.ready();
            }
            // `notify_one` is remembered when nobody waits yet, so nothing is missed in between.
            self.queue.news.notified().await;
        }
    }

    /// What was heard already, without waiting.
    pub fn ready(&mut self) -> Option<Heard> {
        let mut state = self.queue.state();
        if state.lost > 0 {
            return Some(Heard::Lost(std::mem::take(&mut state.lost)));
        }
        state.messages.pop_front().map(Heard::Message)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.is_closed = true;
        // What nobody will hear is freed now; the feed may be kept for a while.
        state.messages = VecDeque::new();
    }
}

impl Feed {
    /// Hands `message` on, over the oldest if there is no room. `false`: nobody listens any more.
    pub fn push(&self, message: Arc<[u8]>) -> bool {
        let mut state = self.queue.state();
        if state.is_closed {
            return false;
        }
        while state.messages.len() >= self.queue.most {
            state.messages.pop_front();
            state.lost += 1;
        }
        state.messages.push_back(message);
        drop(state);
        self.queue.news.notify_one();
        true
    }

    /// Counts `count` messages as lost that never came this far.
    pub fn lose(&self, count: u64) {
        let mut state = self.queue.state();
        // What is queued is older than the loss; heard after it, it would seem newer.
        state.lost += count + state.messages.len() as u64;
        state.messages.clear();
        drop(state);
        self.queue.news.notify_one();
    }

    /// Whether the listener is gone.
    pub fn is_closed(&self) -> bool {
        self.queue.state().is_closed
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.queue.state().is_closed = true;
        self.queue.news.notify_one();
    }
}

#[derive(Debug, Default)]
struct Queue {
    most: usize,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Arc<[u8]>>,
    /// Lost since the listener was last told; they were older than all in the queue.
    lost: u64,
    /// One of the two ends is gone.
    is_closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
