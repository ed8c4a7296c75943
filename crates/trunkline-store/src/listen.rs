//! A bounded queue between a channel and one listener; when full, it drops the oldest message.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Receives the messages of a channel, from [`Store::listen`](crate::Store::listen).
#[derive(Debug)]
pub struct Listener {
    queue: Arc<Queue>,
}

/// What a listener receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message.
    Message(Arc<[u8]>),
    /// This many messages were lost here, because the listener was too far behind. A listener that
    /// needs them reads the store again.
    Lost(u64),
}

/// The sending end of a [`Listener`]; for backends.
#[derive(Debug)]
pub struct Feed {
    queue: Arc<Queue>,
}

impl Listener {
    /// A listener that may be `most` messages behind, and its feed. For backends.
    pub fn new(most: usize) -> (Feed, Listener) {
        let queue = Arc::new(Queue { most: most.max(1), ..Queue::default() });
        (Feed { queue: queue.clone() }, Listener { queue })
    }

    /// Waits for the next message. `None` once the store is gone and the queue is empty. Cancel-safe.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(heard) = self.ready() {
                return Some(heard);
            }
            if self.queue.state().is_closed {
                // It may have been closed right after a last message.
                return self.ready();
            }
            // `notify_one` stores a permit if nobody waits yet, so no message is missed in between.
            self.queue.news.notified().await;
        }
    }

    /// The next message if it has arrived, without waiting.
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
        // Frees the unread messages now; the feed may live on for a while.
        state.messages = VecDeque::new();
    }
}

impl Feed {
    /// Queues `message`, replacing the oldest if there is no room. `false`: the listener is gone.
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

    /// Counts `count` messages as lost that never arrived here.
    pub fn lose(&self, count: u64) {
        let mut state = self.queue.state();
        // The queued messages are older than the loss; delivered after it, they would seem newer.
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
    /// Lost since the last report; all older than the queue.
    lost: u64,
    /// Whether one of the two ends is gone.
    is_closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
