//! The client's half of `input_required`: has the questions answered, then sends the call again with
//! the answers under a new id, until it is complete.

use std::time::{Duration, Instant};

use trunkline_wire::era::stateless::{self, Decoded};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, Object, Outcome, Params};
use trunkline_wire::method::{Method, Row};
use trunkline_wire::model::{ClientCapabilities, InputRequest, InputRequired, meta};

use super::{Client, Origin, Phase};
use crate::input_required::{Round, missing_capability};
use crate::{CallError, Output, Ticket};

impl Client {
    pub(super) fn on_stateless_result(&mut self, id: &Id, result: Json, now: Instant) {
        let Some(sent) = self.asked.peek(id) else { return };
        let ticket = sent.ticket;
        let raw = result.clone();
        let outcome = match stateless::decode_result(result) {
            // The result depends on the answers, so it must not be cached.
            Ok(Decoded::Complete(result)) if sent.with.rounds > 0 => {
                Ok(stateless::never_kept(result))
            }
            Ok(Decoded::Complete(result)) => Ok(result),
            // The caller follows the task itself.
            Ok(Decoded::Task(_)) if sent.method == Method::ToolsCall => Ok(raw),
            Ok(Decoded::InputRequired(_)) if sent.with.may_ask && sent.with.relays => Ok(raw),
            Ok(Decoded::InputRequired(required)) if sent.with.may_ask => {
                return self.on_input_required(ticket, required, now);
            }
            Ok(_) => Err(CallError::Invalid(format!(
                "`{}` cannot be answered with this `resultType`.",
                sent.method
            ))),
            Err(why) => Err(CallError::Invalid(why.to_string())),
        };
        self.asked.settle(id);
        self.settle(ticket, outcome);
    }

    fn on_input_required(&mut self, ticket: Ticket, required: InputRequired, now: Instant) {
        let Some(refusal) = self.refusal(ticket, &required) else {
            return self.begin_round(ticket, required, now);
        };
        self.asked.settle_ticket(ticket);
        self.settle(ticket, Err(CallError::Invalid(refusal)));
    }

    /// Why this round is refused, if it is.
    fn refusal(&mut self, ticket: Ticket, required: &InputRequired) -> Option<String> {
        let sent = self.asked.by_ticket(ticket)?;
        let (rounds, declared) = (sent.with.rounds, declared(sent.with.params.as_ref()));
        if rounds >= self.config.bounds.rounds {
            return Some(format!("the call came back with questions {rounds} times."));
        }
        if required.requests.is_empty() && required.state.is_none() {
            return Some("`input_required` without questions or state.".to_owned());
        }
        let room = self.config.bounds.in_flight.saturating_sub(self.calls.len());
        if required.requests.len() > room {
            return Some(format!("it asks {} questions at once.", required.requests.len()));
        }
        // Each request declares what its caller can be asked (2026-07-28); the connection speaks for those
        // that do not.
        let able = declared.as_ref().unwrap_or(&self.config.capabilities);
        let mut requests = required.requests.iter();
        let undeclared = requests.find(|(_, it)| missing_capability(it, able).is_some())?;
        Some(format!("it asks for `{}`, which we did not offer.", undeclared.1.method()))
    }

    fn begin_round(&mut self, ticket: Ticket, required: InputRequired, now: Instant) {
        let Phase::Open { facts, .. } = &self.phase else { return };
        let revision = facts.revision;
        let Some(sent) = self.asked.by_ticket(ticket) else { return };
        sent.with.rounds += 1;
        let (round, questions) = Round::open(required);
        if questions.is_empty() {
            // State without questions: the server wants a retry, with backoff.
            sent.with.due = Some(now + RETRY_DELAY * sent.with.rounds.min(20));
        } else if let Some(clock) = &mut sent.clock {
            clock.hold();
        }
        sent.with.round = Some(round);
        for (name, question) in questions {
            let origin = Origin::Round { ticket, name };
            let (row, params) = take_apart(question);
            // No id: the question was not a request of its own.
            self.open_call(Id::Null, origin, row, params, revision, now);
        }
    }

    /// One question of a round was answered.
    pub(super) fn on_answer(&mut self, ticket: Ticket, name: &str, outcome: Outcome, now: Instant) {
        let Some(sent) = self.asked.by_ticket(ticket) else { return };
        let Some(round) = &mut sent.with.round else { return };
        match outcome {
            Ok(answer) => {
                if round.answer(name, answer) {
                    self.retry(ticket, now);
                }
            }
            // The stateless era cannot send an error as an answer, so the call fails.
            Err(error) => {
                self.asked.settle_ticket(ticket);
                self.drop_round(ticket);
                self.settle(ticket, Err(CallError::Refused(error)));
            }
        }
    }

    fn retry(&mut self, ticket: Ticket, now: Instant) {
        let id = self.asked.next_id();
        let Some(sent) = self.asked.by_ticket(ticket) else { return };
        let (Some(round), Some(params)) = (sent.with.round.take(), &sent.with.params) else {
            return;
        };
        let params = round.into_params(params.clone());
        sent.id = id;
        sent.with.due = None;
        if let Some(clock) = &mut sent.clock {
            clock.resume(now);
        }
        let (method, progress) = (sent.method, sent.with.wants_progress);
        self.send_call(id, method, params, progress);
    }

    pub(super) fn retry_due(&mut self, now: Instant) {
        for ticket in self.due(|due| due <= now) {
            match self.asked.by_ticket(ticket).is_some_and(|it| it.with.round.is_some()) {
                true => self.retry(ticket, now),
                false => self.repeat(ticket),
            }
        }
    }

    /// Sends a request unchanged.
    pub(super) fn request(&mut self, id: i64, method: Method, params: Object) {
        let params = if params.is_empty() { Params::Absent } else { Params::Object(params) };
        self.send(Message::Request { id: Id::Number(id), method: method.into(), params });
    }

    fn due(&self, is_due: impl Fn(Instant) -> bool) -> Vec<Ticket> {
        let due = self.asked.iter().filter(|it| it.with.due.is_some_and(&is_due));
        due.map(|it| it.ticket).collect()
    }

    /// Stops answering the questions of a call that is over.
    pub(super) fn drop_round(&mut self, ticket: Ticket) {
        let of_this =
            |origin: &Origin| matches!(origin, Origin::Round { ticket: it, .. } if *it == ticket);
        let keys: Vec<_> =
            self.calls.iter().filter(|it| of_this(&it.with)).map(|it| it.key).collect();
        for key in keys {
            self.calls.close(key);
            self.out.push_back(Output::Abandon(key));
        }
    }
}

/// The capabilities that a call declares itself. Those that cannot be read are none.
fn declared(params: Option<&Object>) -> Option<ClientCapabilities> {
    let meta = Object::parse(params?.get("_meta")?.get()).ok()?;
    Some(meta.get(meta::CLIENT_CAPABILITIES)?.to().unwrap_or_default())
}

fn take_apart(question: InputRequest) -> (&'static Row, Object) {
    // The revision lacks this method as a request: it embeds the question.
    let row = question.method().oldest_row();
    let params = question.params().and_then(|it| Object::parse(it.get()).ok());
    (row, params.unwrap_or_default())
}

/// The delay before the first retry of a round without questions; it grows with each.
const RETRY_DELAY: Duration = Duration::from_millis(100);
