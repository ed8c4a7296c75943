//! What both eras use: the calls that are owed an answer, the questions in flight, and the queue of
//! outputs.

use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message, Object, Outcome, Params};
use trunkline_wire::method::{Method, Row};
use trunkline_wire::model::{LogLevel, meta};
use trunkline_wire::revision::{Era, Revision};

use super::envelope_cache::EnvelopeCache;
use super::head_start::{HEAD_START, HeadStart};
use super::{Config, batch, dialect};
use crate::pending::{Asked, Calls, Clock, OpenCall, ProgressSink, Sent, add_meta, cancelled};
use crate::queue::Queue;
use crate::subscribe::Listens;
use crate::{
    Ask, Attached, Call, CallError, CallKey, Outgoing, Output, Peer, PeerNotification,
    RequestStream, Ticket, checked,
};

/// The state that both eras use.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: Arc<Config>,
    pub(super) calls: Calls<Owed>,
    pub(super) asked: Asked<Asker>,
    pub(super) listens: Listens,
    /// Hardly anybody sends one.
    pub(super) batches: Option<Box<batch::Batches>>,
    pub(super) envelopes: EnvelopeCache,
    pub(super) out: Queue<Output>,
    /// Where answers wait for their progress, if they have to.
    pub(super) head_start: Option<Box<HeadStart>>,
    /// The caller, if the instructions depend on it.
    pub(super) caller: Attached,
}

/// What the server keeps with a call it owes an answer to.
#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) batch: Option<batch::BatchId>,
    pub(super) dialect: Option<Box<dialect::Step>>,
    pub(super) via: RequestStream,
    /// Whether its answer may be a task of the session.
    pub(super) may_be_task: bool,
}

/// Which call asks a question, and the stream its request came on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) call: Option<CallKey>,
    pub(super) via: Option<RequestStream>,
}

/// A request that is owed an answer.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) id: Id,
    pub(super) from: From,
}

/// The origin of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct From {
    pub(super) via: RequestStream,
    pub(super) batch: Option<batch::BatchId>,
}

impl Shared {
    #[inline]
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            calls: Calls::default(),
            asked: Asked::default(),
            listens: Listens::default(),
            batches: None,
            envelopes: EnvelopeCache::default(),
            out: Queue::new(),
            head_start: None,
            caller: Attached::default(),
        }
    }

    /// The instructions for this caller's model.
    pub(super) fn instructions(&self) -> Option<String> {
        match &self.config.instruct {
            Some(instruct) => instruct.for_caller(&self.caller),
            None => self.config.instructions.clone(),
        }
    }

    pub(super) fn speaks(&self, era: Era) -> bool {
        !self.config.revisions.of_era(era).is_empty()
    }

    /// Opens a call and emits it, unless too many are open.
    pub(super) fn call(&mut self, from: Asking, mut facts: Facts, now: Instant) {
        let waiting = self.calls.len() - self.calls.at_work();
        if self.calls.at_work() >= self.config.bounds.in_flight
            || waiting >= self.config.bounds.subscriptions
        {
            let error = ErrorObject::internal("overloaded", "Too many calls are open; try later.");
            return self.reply(from, Err(error));
        }
        let key = self.calls.next_key();
        let may_be_task = facts.params.get("task").is_some();
        let progress = facts.token.take().map(|token| ProgressSink {
            token,
            reached: f64::NEG_INFINITY,
            sent: None,
        });
        let call = Call {
            key,
            id: from.id.clone(),
            method: facts.row,
            params: facts.params,
            meta: facts.meta,
            revision: facts.revision,
            peer: facts.peer,
            via: from.from.via,
            is_unseen: false,
            wants_progress: progress.is_some(),
            log_level: facts.log_level,
            attached: Attached::default(),
        };
        // `tasks/result` waits as long as its task, like a subscription, and is bounded like one.
        let waits = facts.row.method == Method::TasksResult;
        let clock = (!waits).then(|| Clock::start(self.config.bounds.call, now));
        self.calls.add(OpenCall {
            key,
            id: from.id,
            revision: facts.revision,
            clock,
            progress,
            log_level: facts.log_level,
            with: Owed {
                batch: from.from.batch,
                dialect: facts.dialect,
                via: from.from.via,
                may_be_task,
            },
        });
        self.out.push_back(Output::Call(call));
    }

    /// Keeps the outcome of a call whose progress is not far enough ahead; any other is returned.
    pub(super) fn hold(
        &mut self,
        call: CallKey,
        outcome: Outcome,
        now: Instant,
    ) -> Option<Outcome> {
        let Some(head_start) = &mut self.head_start else { return Some(outcome) };
        let Some(open) = self.calls.get(call) else { return Some(outcome) };
        let Some(sent) = open.progress.as_ref().and_then(|it| it.sent) else {
            return Some(outcome);
        };
        // A call that is done in time does not become late here.
        let deadline = open.clock.map(|it| it.deadline());
        let until = deadline.into_iter().fold(sent + HEAD_START, Instant::min);
        if until <= now {
            return Some(outcome);
        }
        head_start.hold(call, outcome, until);
        None
    }

    #[inline]
    pub(super) fn finish(&mut self, id: Id, owed: Owed, outcome: Outcome, now: Instant) {
        let from = From { via: owed.via, batch: owed.batch };
        let from = Asking { id, from };
        match owed.dialect {
            Some(step) => self.finish_dialect(from, *step, outcome, now),
            None => self.reply(from, outcome),
        }
    }

    #[inline]
    pub(super) fn reply(&mut self, from: Asking, outcome: Outcome) {
        self.send_in(from.from, Message::Response { id: Some(from.id), outcome });
    }

    /// Sends a message; without `via` it belongs to no request.
    pub(super) fn send(&mut self, message: Message, via: Option<RequestStream>) {
        self.out.push_back(Output::Send(Outgoing::One(message), via));
    }

    /// Tells the handler of a request that the core has answered itself.
    pub(super) fn tell(&mut self, method: Method, params: Object) {
        self.out.push_back(Output::Heard(PeerNotification {
            ticket: None,
            method,
            params,
            peer: None,
        }));
    }

    /// Tells the handler that a client subscribes or unsubscribes.
    pub(super) fn tell_subscribed(&mut self, method: Method, params: Object, peer: &Arc<Peer>) {
        let peer = Some(Arc::clone(peer));
        self.out.push_back(Output::Heard(PeerNotification { ticket: None, method, params, peer }));
    }

    pub(super) fn settle(&mut self, ticket: Ticket, outcome: Result<Json, CallError>) {
        self.out.push_back(Output::Settled { ticket, outcome });
    }

    pub(super) fn on_response(&mut self, id: Option<Id>, outcome: Outcome, now: Instant) {
        if let Some(sent) = id.and_then(|id| self.asked.settle(&id)) {
            self.resume(sent.with, now);
            self.settle(sent.ticket, checked(outcome));
        }
    }

    /// After a handler's last question is answered, its idle deadline, paused meanwhile, runs again.
    pub(super) fn resume(&mut self, asker: Asker, now: Instant) {
        let call = asker.call.filter(|_| !self.asked.iter().any(|it| it.with == asker));
        let Some(call) = call else { return };
        if let Some(clock) = self.calls.get(call).and_then(|it| it.clock.as_mut()) {
            clock.resume(now);
        }
    }

    pub(super) fn ask(&mut self, ask: Ask, method: Method, now: Instant) {
        let id = self.asked.next_id();
        let mut params = ask.params;
        if ask.wants_progress {
            let mut more = Object::default();
            more.set(meta::PROGRESS_TOKEN, Id::Number(id).to_json());
            add_meta(&mut params, more, &[]);
        }
        let mut patience = Clock::start(ask.timing.unwrap_or(self.config.bounds.call), now);
        if ask.timing.is_none() {
            // People answer, so only the hard deadline applies.
            patience.hold();
        }
        let mut asker = Asker { call: ask.during, via: None };
        if let Some(call) = ask.during.and_then(|it| self.calls.get(it)) {
            asker.via = Some(call.with.via);
            // While the client's user thinks, only the hard deadline of the call applies.
            call.clock.iter_mut().for_each(Clock::hold);
        }
        self.asked.add(Sent { id, ticket: ask.ticket, method, clock: Some(patience), with: asker });
        let params = if params.is_empty() { Params::Absent } else { Params::Object(params) };
        let (id, method) = (Id::Number(id), method.into());
        self.send(Message::Request { id, method, params }, asker.via);
    }

    /// The client cancelled this request.
    pub(super) fn cancel(&mut self, id: &Id) {
        let Some(open) = self.calls.close_id(id) else { return };
        if self.listens.remove(id) {
            let mut params = Object::default();
            params.set("requestId", id.to_json());
            return self.tell(Method::Cancelled, params);
        }
        self.stop_asking(open.key);
        match open.with.batch {
            Some(batch) => self.batches.get_or_insert_default().forget(batch, &mut self.out),
            None => self.out.push_back(Output::NoReply(open.with.via)),
        }
        self.out.push_back(Output::Abandon(open.key));
    }

    /// Cancels the questions of a call that is over.
    pub(super) fn stop_asking(&mut self, call: CallKey) {
        // As at the end of nearly every call.
        if self.asked.is_empty() {
            return;
        }
        for sent in self.asked.extract(|it| it.with.call == Some(call)) {
            self.send(cancelled(sent.id, "The call that asked is over."), sent.with.via);
            self.settle(sent.ticket, Err(CallError::Cancelled));
        }
    }

    /// Sends a response, alone or as part of its batch.
    pub(super) fn send_in(&mut self, from: From, message: Message) {
        match from.batch {
            Some(batch) => {
                self.batches.get_or_insert_default().add(batch, message, &mut self.out);
            }
            None => self.send(message, Some(from.via)),
        }
    }
}

/// The facts about a call before it is opened.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) row: &'static Row,
    pub(super) params: Object,
    pub(super) meta: Option<Json>,
    pub(super) revision: Revision,
    pub(super) peer: Arc<Peer>,
    pub(super) token: Option<Json>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) dialect: Option<Box<dialect::Step>>,
}
