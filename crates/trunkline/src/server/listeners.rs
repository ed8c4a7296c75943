//! A change of the server → every conversation that is open. A peer that does not read is told
//! later, and holds up nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use trunkline_proto::{Call, Change};
use trunkline_transport::voice::Voice;

use super::context::lock;

/// The conversations that are open now.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Arc<Listener>>>);

/// One conversation.
pub(super) struct Listener {
    voice: Voice,
    /// Who listens.
    who: Call,
    runtime: Handle,
    late: Mutex<Late>,
}

/// What a conversation could not be told in time.
#[derive(Default)]
struct Late {
    /// Whether somebody is telling what waits: what comes now must not overtake it.
    is_behind: bool,
    waiting: VecDeque<Change>,
}

impl Listeners {
    /// Tells `voice` of every change from now on. Call it inside the runtime that serves it.
    pub(super) fn add(&self, voice: Voice, who: Call) -> Arc<Listener> {
        let late = Mutex::default();
        let listener = Arc::new(Listener { voice, who, runtime: Handle::current(), late });
        lock(&self.0).push(Arc::clone(&listener));
        listener
    }

    pub(super) fn remove(&self, listener: &Arc<Listener>) {
        lock(&self.0).retain(|it| !Arc::ptr_eq(it, listener));
    }

    /// Tells everybody who may hear it, and waits for nobody.
    pub(super) fn tell(&self, change: &Change, may_hear: impl Fn(&Call) -> bool) {
        // Not under the lock: to tell a session is to have it act, and one that ends is removed here.
        let all: Vec<_> = lock(&self.0).clone();
        for listener in all.iter().filter(|it| may_hear(&it.who)) {
            listener.tell(change);
        }
    }
}

impl Listener {
    fn tell(self: &Arc<Self>, change: &Change) {
        let mut late = lock(&self.late);
        if !late.is_behind {
            if self.voice.try_changed(change.clone()) {
                return;
            }
            late.is_behind = true;
            self.runtime.spawn(catch_up(Arc::clone(self)));
        }
        late.keep(change.clone());
    }

    fn next(&self) -> Option<Change> {
        let mut late = lock(&self.late);
        let next = late.waiting.pop_front();
        late.is_behind = next.is_some();
        next
    }
}

/// Tells what waits as soon as there is room. Once the conversation is over, that is at once.
async fn catch_up(listener: Arc<Listener>) {
    while let Some(change) = listener.next() {
        listener.voice.changed(change).await;
    }
}

impl Late {
    /// Keeps a change. The newest word on a matter stands for the earlier ones; when there are too
    /// many matters, the oldest that is not a list goes.
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

fn is_list(change: &Change) -> bool {
    matches!(change, Change::Tools | Change::Prompts | Change::Resources)
}

/// Changes that may wait for one conversation.
const WAITING: usize = 1024;

#[cfg(test)]
mod tests {
    use trunkline_wire::json::Json;
    use trunkline_wire::model::Task;

    use super::*;

    #[test]
    fn what_waits_is_bounded_and_no_list_is_lost() {
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
    fn the_newest_state_of_a_task_is_told() {
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
