//! A request whose exchange came to nothing → another way, another try, or the caller's error.
//!
//! Only over HTTP: there each request has an exchange of its own, and that can fail alone.

use std::time::{Duration, Instant};

use trunkline_wire::jsonrpc::Id;
use trunkline_wire::revision::Era;

use super::{Client, HttpError, Phase};
use crate::{CallError, Output, Ticket};

impl Client {
    /// The request `id` gets no answer.
    pub fn undelivered(&mut self, id: i64, why: CallError, now: Instant) {
        match &self.phase {
            Phase::Probing { id: handshake, .. } | Phase::Initializing { id: handshake, .. }
                if *handshake == id =>
            {
                return self.fail(why.into());
            }
            _ => {}
        }
        let Some(sent) = self.asked.by_id(&Id::Number(id)) else { return };
        // A call whose round is open has no request on the wire.
        if sent.with.round.is_some() || sent.with.due.is_some() {
            return;
        }
        let ticket = sent.ticket;
        if self.is_worth_repeating(id, &why) {
            return self.schedule_repeat(ticket, now);
        }
        self.asked.settle_ticket(ticket);
        self.settle(ticket, Err(why));
    }

    /// The request `id` was answered with something that no server of the new era says: an old
    /// server, if this was the probe.
    pub fn unrecognised(&mut self, id: i64, error: HttpError, now: Instant) {
        match self.phase {
            Phase::Probing { id: probe, again, .. } if probe == id => {
                let ours = self.config.revisions;
                match ours.of_era(Era::Stateful).is_empty() {
                    true => self.fail(no_answer(error).into()),
                    false => self.initialize(!again),
                }
            }
            _ => self.undelivered(id, no_answer(error), now),
        }
    }

    /// The server no longer knows the session: begins another one. What is asked meanwhile is
    /// refused, so hold it back until [`Output::Opened`].
    pub fn renew(&mut self, now: Instant) {
        let Phase::Open { facts, .. } = &self.phase else { return };
        self.renewing = Some(facts.revision);
        // Its questions went with it.
        for open in self.calls.drain() {
            self.out.push_back(Output::Abandon(open.key));
        }
        self.resume_calls(now);
        self.open_by = now + self.config.bounds.open;
        self.initialize(false);
    }

    /// Whether a request may be sent again under a new id, as 2026-07-28 wants it done for answers
    /// that were lost: only what changes nothing, and once; a subscription as long as it helps.
    fn is_worth_repeating(&mut self, id: i64, why: &CallError) -> bool {
        let Some(sent) = self.asked.by_id(&Id::Number(id)) else { return false };
        if sent.with.params.is_none() || sent.with.rounds > 0 {
            return false;
        }
        if sent.method == LISTEN {
            let is_lost = matches!(why, CallError::Lost(_) | CallError::Unreachable(_));
            // One that was never acknowledged fails at once: its caller still waits.
            return is_lost && sent.with.is_heard && sent.with.repeats < PATIENCE;
        }
        let is_lost = matches!(why, CallError::Lost(_));
        is_lost && sent.with.repeats == 0 && may_repeat(&sent.method, Era::Stateless)
    }

    fn schedule_repeat(&mut self, ticket: Ticket, now: Instant) {
        let Some(sent) = self.asked.by_ticket(ticket) else { return };
        sent.with.repeats += 1;
        if sent.method != LISTEN {
            return self.repeat(ticket);
        }
        sent.with.due = Some(now + PACE * (1 << sent.with.repeats.min(5)));
    }

    /// Sends a request again, under a new id.
    pub(super) fn repeat(&mut self, ticket: Ticket) {
        let id = self.asked.next_id();
        let Some(sent) = self.asked.by_ticket(ticket) else { return };
        let Some(params) = sent.with.params.clone() else { return };
        sent.id = id;
        sent.with.due = None;
        let (method, progress) = (sent.method.clone(), sent.with.wants_progress);
        self.send_call(id, method, params, progress);
    }
}

/// Whether a method changes nothing, so that asking twice is as good as asking once.
pub(super) fn may_repeat(method: &str, era: Era) -> bool {
    let changes_nothing = method.ends_with("/list")
        || matches!(
            method,
            "server/discover"
                | "resources/read"
                | "prompts/get"
                | "completion/complete"
                | "tasks/get"
                | LISTEN
        );

    era == Era::Stateless && changes_nothing
}

/// A status that stands where an answer should.
fn no_answer(error: HttpError) -> CallError {
    match error.status {
        200..300 => CallError::Invalid(error.message),
        _ => CallError::Http(error),
    }
}

const LISTEN: &str = "subscriptions/listen";
/// The pause before a subscription is opened again; it doubles with each failure up to 32 times.
const PACE: Duration = Duration::from_millis(500);
/// How often in a row a subscription is opened again without anything heard.
const PATIENCE: u32 = 10;
