//! Reports progress to a caller whose call waits for a server to start.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use trunkline_proto::HandlerEvent;
use trunkline_wire::model::Progress;

use super::Walk;
use crate::server::Server;
use crate::state::Visibility;

impl Walk {
    /// Runs work that may wait for a server to start. Callers that asked for progress are told what they
    /// wait for.
    pub(super) async fn with_progress<T>(
        &self,
        server: &Server,
        work: impl Future<Output = T>,
    ) -> T {
        if !self.call.wants_progress {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        let mut next = Instant::now() + PATIENCE;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep_until(next) => next += EVERY,
            }
            let doing = server.doing();
            let doing = doing.as_deref().unwrap_or("starting");
            // Below any value that the server itself reports: progress has to increase (2025-11-25
            // §Progress).
            let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
            let mut progress = Progress::new(f64::from(step) * 1e-9);
            progress.message = Some(format!("Waiting for `{}`: {doing}…", server.name));
            self.handle.say(self.call.key, HandlerEvent::Progress(progress)).await;
        }
    }

    /// The server that a name starts with, if its lists are unknown.
    pub(super) fn unknown_server(&self, shown: &str) -> Option<Arc<Server>> {
        let active = self.shared.active_plan();
        let server = active.unknown(shown)?;
        let is_chosen = self.view.selector.chooses(&server.plan());
        let is_seen = Visibility::new(&active, &self.caller).sees_server(&server.name);
        (is_chosen && is_seen).then(|| Arc::clone(server))
    }
}

/// How long a call waits before its caller is told why, and the interval after that.
const PATIENCE: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(2);
