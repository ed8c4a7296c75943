//! A message of the server that names no call → the call it belongs to, if that is certain.

use std::time::{Duration, Instant};

use trunkline_wire::era::stateful::RequestMeta;
use trunkline_wire::jsonrpc::{Id, Object};
use trunkline_wire::method::Method;

use super::Client;
use crate::{RequestStream, Ticket};

impl Client {
    /// The call that a message belongs to: the one on whose stream it came, the one that waits for the
    /// task it names, or the only open one if that may be assumed.
    pub(super) fn owner(
        &self,
        via: RequestStream,
        params: &Object,
        now: Instant,
    ) -> Option<Ticket> {
        if via != RequestStream::default() {
            let id = Id::Number(i64::try_from(via.0).ok()?);
            return self.asked.peek(&id).map(|it| it.ticket);
        }
        if let Some(meta) = params.get("_meta")
            && let Some(task) = RequestMeta::read(Some(meta)).ok()?.related_task
        {
            return self.waits_for_task(&task);
        }
        // A call that was given up may be the one that speaks.
        if !self.config.assumes_only_call || self.aftermath.is_some_and(|it| now < it) {
            return None;
        }
        // Notifications of a subscription are tagged, and a round has no request in flight.
        let mut open = self
            .asked
            .iter()
            .filter(|it| it.method != Method::SubscriptionsListen && it.with.round.is_none());
        let only = open.next()?;
        open.next().is_none().then_some(only.ticket)
    }

    /// We gave up a call that the server has not answered.
    pub(super) fn gave_up(&mut self, now: Instant) {
        self.aftermath = Some(now + AFTERMATH);
    }

    fn waits_for_task(&self, task: &str) -> Option<Ticket> {
        let named = |params: &Object| params.get("taskId")?.to::<String>().ok();
        let waits = self.asked.iter().find(|it| {
            let params = it.with.params.as_ref().filter(|_| it.method == Method::TasksResult);
            params.and_then(named).is_some_and(|it| it == task)
        });
        waits.map(|it| it.ticket)
    }
}

/// How long a server may take to notice that a call was given up.
const AFTERMATH: Duration = Duration::from_secs(10);
