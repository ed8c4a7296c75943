//! A change → every open conversation. A peer that does not read is told later, and delays no other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use trunkline_proto::Change;

use crate::conversation_handle::ConversationHandle;

/// The open conversations, each with what is known about its peer.
pub struct Listeners<T>(Mutex<Vec<Arc<Listener<T>>>>);

/// One conversation.
pub struct Listener<T> {
    handle: ConversationHandle,
    who: T,
    runtime: Handle,
    late: Mutex<Late>,
}

/// Changes that did not fit into a conversation's queue yet.
#[derive(Default)]
struct Late {
    is_behind: bool,
    waiting: VecDeque<Change>,
}

impl<T> Default for Listeners<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> fmt::Debug for Listeners<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listeners").field(&lock(&self.0).len()).finish()
    }
}

impl<T> fmt::Debug for Listener<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl<T: Send + Sync + 'static> Listeners<T> {
    /// Adds a conversation. Needs a runtime.
    pub fn add(&self, handle: ConversationHandle, who: T) -> Arc<Listener<T>> {
        let late = Mutex::default();
        let listener = Arc::new(Listener { handle, who, runtime: Handle::current(), late });
        lock(&self.0).push(Arc::clone(&listener));
        listener
    }

    /// Removes a conversation.
    pub fn remove(&self, listener: &Arc<Listener<T>>) {
        lock(&self.0).retain(|it| !Arc::ptr_eq(it, listener));
    }

    /// Reports a change to every conversation that may hear it.
    pub fn tell(&self, change: &Change, may_hear: impl Fn(&T) -> bool) {
        // Not under the lock: telling a session runs it, and a session that ends is removed here.
        let all: Vec<_> = lock(&self.0).clone();
        for listener in all.iter().filter(|it| may_hear(&it.who)) {
            listener.tell(change);
        }
    }
}

impl<T: Send + Sync + 'static> Listener<T> {
    /// What is known about the peer.
    pub fn who(&self) -> &T {
        &self.who
    }

    /// Reports a change to this conversation.
    pub fn tell(self: &Arc<Self>, change: &Change) {
        let mut late = lock(&self.late);
        if !late.is_behind {
            if self.handle.try_changed(change.clone()) {
                return;
            }
            late.is_behind = true;
            self.runtime.spawn(catch_up(Arc::clone(self)));
        }
        late.keep(change.clone());
    }

    /// The next queued change; without one, the conversation has caught up.
    fn next(&self) -> Option<Change> {
        let mut late = lock(&self.late);
        let next = late.waiting.pop_front();
        late.is_behind = next.is_some();
        next
    }
}

async fn catch_up<T: Send + Sync + 'static>(listener: Arc<Listener<T>>) {
    while let Some(change) = listener.next() {
        listener.handle.changed(change).await;
    }
}

impl Late {
    /// Queues a change. It replaces a queued one about the same thing.
    fn keep(&mut self, change: Change) {
        if let Some(waits) = self.waiting.iter_mut().find(|it| is_same_matter(it, &change)) {
            *waits = change;
            return;
        }
        if self.waiting.len() >= WAITING
            && let Some(oldest) = self.waiting.iter().position(|it| !is_list(it))
        {
            self.waiting.remove(oldest);
        }
        self.waiting.push_back(change);
    }
}

fn is_same_matter(one: &Change, other: &Change) -> bool {
    match (one, other) {
        (Change::Task(one, _), Change::Task(other, _)) => one.task_id == other.task_id,
        _ => one == other,
    }
}

/// Whether it is about a list: those are few, and a client that missed one would not look again.
fn is_list(change: &Change) -> bool {
    matches!(change, Change::Tools | Change::Prompts | Change::Resources)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many changes may be queued per conversation.
const WAITING: usize = 1024;

#[cfg(test)]
mod tests {
    use trunkline_wire::json::Json;
    use trunkline_wire::model::Task;

    use super::*;

    #[test]
    fn queued_changes_are_bounded_and_no_list_change_is_lost() {
        let mut late = Late::default();
        late.keep(Change::Tools);
        for at in 0..3 * WAITING {
            late.keep(Change::Resource(format!("test://{at}")));
            late.keep(Change::Tools);
            late.keep(Change::Prompts);
        }
        assert_eq!(late.waiting.len(), WAITING);
        assert_eq!(late.waiting.iter().filter(|it| is_list(it)).count(), 2);
        let last = Change::Resource(format!("test://{}", 3 * WAITING - 1));
        assert_eq!(late.waiting.back(), Some(&last));
    }

    #[test]
    fn only_the_newest_state_of_a_task_is_queued() {
        let state = |text: &str| {
            Change::Task(Box::new(Task::new("t", "2026-01-01T00:00:00Z")), Json::string(text))
        };
        let mut late = Late::default();
        late.keep(state("working"));
        late.keep(Change::Tools);
        late.keep(state("completed"));
        assert_eq!(late.waiting, [state("completed"), Change::Tools]);
    }
}
