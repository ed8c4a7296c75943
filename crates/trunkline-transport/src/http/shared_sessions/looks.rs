//! One timer for all who wait for other replicas, instead of one each: most have their answer long before it goes off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

/// Goes off again and again, for as long as somebody may wait for it.
#[derive(Default)]
pub(super) struct Looks {
    due: Arc<Notify>,
    is_running: AtomicBool,
}

impl Looks {
    /// Waits until it goes off, at most [`LOOK`] from now.
    pub(super) async fn next(&self) {
        if !self.is_running.swap(true, Ordering::Relaxed) {
            tokio::spawn(go_off(Arc::clone(&self.due)));
        }
        self.due.notified().await;
    }
}

async fn go_off(due: Arc<Notify>) {
    // The other one is that of the looks themselves.
    while Arc::strong_count(&due) > 1 {
        sleep(LOOK).await;
        due.notify_waiters();
    }
}

/// How often a forwarded request looks whether its owner is still there.
const LOOK: Duration = Duration::from_secs(2);
