//! The server's notifications, each delivered to the call it belongs to.

use std::time::Instant;

use trunkline_wire::jsonrpc::{Id, MethodName, Object, Params};
use trunkline_wire::method::{Kind, Method, Sender};
use trunkline_wire::model::meta;
use trunkline_wire::revision::Era;

use super::{Client, Origin};
use crate::{CallError, Output, PeerNotification, RequestStream, Ticket};

impl Client {
    pub(super) fn on_notification(
        &mut self,
        method: &MethodName,
        params: Params,
        via: RequestStream,
        now: Instant,
    ) {
        let Some(facts) = self.opened().cloned() else { return };
        let row = method.row(Sender::Server, facts.revision);
        let (Some(row), Some(params)) = (row, params.into_object()) else {
            return self.noise += 1;
        };
        if row.kind != Kind::Notification {
            return self.noise += 1;
        }
        let ticket = match row.method {
            Method::Cancelled => {
                return self.on_cancelled(&params, facts.revision.era(), now);
            }
            Method::Progress => match self.on_progress(&params, now) {
                Some(ticket) => Some(ticket),
                // An unknown token: late, or invented.
                None => return self.noise += 1,
            },
            Method::Message => self.owner(via, &params, now),
            _ => self.subscription(&params),
        };
        self.out.push_back(Output::Heard(PeerNotification {
            ticket,
            method: row.method,
            params,
            peer: None,
        }));
    }

    fn on_progress(&mut self, params: &Object, now: Instant) -> Option<Ticket> {
        let token = Id::from_json(params.get("progressToken")?.get())?;
        let sent = self.asked.by_id(&token)?;
        if let Some(clock) = &mut sent.clock {
            clock.sign_of_life(now);
        }
        sent.with.wants_progress.then_some(sent.ticket)
    }

    /// The call that opened the subscription a notification is tagged with.
    fn subscription(&mut self, params: &Object) -> Option<Ticket> {
        let meta = Object::parse(params.get("_meta")?.get()).ok()?;
        let id = Id::from_json(meta.get(meta::SUBSCRIPTION_ID)?.get())?;
        let sent = self.asked.by_id(&id)?;
        (sent.with.is_heard, sent.with.repeats) = (true, 0);
        Some(sent.ticket)
    }

    fn on_cancelled(&mut self, params: &Object, era: Era, now: Instant) {
        let Some(id) = params.get("requestId").and_then(|it| Id::from_json(it.get())) else {
            return;
        };
        match era {
            // The server cancels a question of its own.
            Era::Stateful => {
                let asked = self
                    .calls
                    .iter()
                    .any(|it| it.id == id && matches!(it.with, Origin::Wire { .. }));
                if let Some(open) = asked.then(|| self.calls.close_id(&id)).flatten() {
                    self.out.push_back(Output::Abandon(open.key));
                    self.resume_calls(now);
                }
            }
            // The server ends a subscription, the only thing it may cancel here.
            Era::Stateless => {
                let listens = self
                    .asked
                    .by_id(&id)
                    .is_some_and(|it| it.method == Method::SubscriptionsListen);
                if let Some(sent) = listens.then(|| self.asked.settle(&id)).flatten() {
                    self.settle(sent.ticket, Err(CallError::Cancelled));
                }
            }
        }
    }
}
