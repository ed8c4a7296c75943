//! A request without an answer → the next step of the handshake, a retry, or the caller's error.
//!
//! Only over HTTP, where each request has its own exchange, which can fail alone.

use std::time::{Duration, Instant};

use trunkline_wire::jsonrpc::Id;
use trunkline_wire::method::Method;
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
        // A call with an open round has no request in flight.
        if sent.with.round.is_some() || sent.with.due.is_some() {
            return;
        }
        let ticket = sent.ticket;
        // A retry that was not sent proves nothing about the first attempt.
        let was_made = sent.method != Method::SubscriptionsListen
            && (sent.with.repeats > 0 || (sent.with.rounds > 0 && !sent.with.relays));
        if self.is_worth_repeating(id, &why) {
            return self.schedule_repeat(ticket, now);
        }
        let why = if was_made { why.after_unknown() } else { why };
        if matches!(why, CallError::Lost(_)) {
            self.gave_up(now);
        }
        self.asked.settle_ticket(ticket);
        self.settle(ticket, Err(why));
    }

    /// The request `id` got a response that no stateless server sends. If it was the probe, the server
    /// is an older one.
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

    /// The request `id` starts (or, with `false`, stops) waiting for a person to log in. Meanwhile only
    /// the hard deadline applies.
    pub fn waits_for_people(&mut self, id: i64, does: bool, now: Instant) {
        let bounds = &self.config.bounds;
        let by = now + if does { bounds.call.hard } else { bounds.open };
        match &mut self.phase {
            Phase::Probing { id: handshake, silence, deadline, .. } if *handshake == id => {
                (*silence, *deadline, self.open_by) = (by, by, by);
                return;
            }
            Phase::Initializing { id: handshake, deadline, .. } if *handshake == id => {
                (*deadline, self.open_by) = (by, by);
                return;
            }
            _ => {}
        }
        let sent = self.asked.by_id(&Id::Number(id));
        let Some(clock) = sent.and_then(|it| it.clock.as_mut()) else { return };
        match does {
            true => clock.hold(),
            false => clock.resume(now),
        }
    }

    /// Whether the answer to `id` is still awaited: it may have come on another stream.
    pub fn is_waited_for(&mut self, id: i64) -> bool {
        self.asked.by_id(&Id::Number(id)).is_some()
    }

    /// An id for a request of the transport itself. It is never reused.
    pub fn spare_id(&mut self) -> i64 {
        self.asked.next_id()
    }

    /// The server no longer knows the session: opens a new one. Calls made meanwhile are refused, so
    /// hold them back until [`Output::Opened`].
    pub fn renew(&mut self, now: Instant) {
        let Phase::Open { facts, .. } = &self.phase else { return };
        self.renewing = Some(facts.revision);
        // The server's questions are gone with the session.
        for open in self.calls.drain() {
            self.out.push_back(Output::Abandon(open.key));
        }
        self.resume_calls(now);
        self.open_by = now + self.config.bounds.open;
        self.initialize(false);
    }

    /// Whether to retry a request under a new id after a lost answer, as 2026-07-28 requires: only
    /// idempotent ones, and once; a subscription up to a limit.
    fn is_worth_repeating(&mut self, id: i64, why: &CallError) -> bool {
        let Some(sent) = self.asked.by_id(&Id::Number(id)) else { return false };
        if sent.with.params.is_none() || sent.with.rounds > 0 {
            return false;
        }
        if sent.method == Method::SubscriptionsListen {
            let is_lost = matches!(why, CallError::Lost(_) | CallError::Unreachable(_));
            // A subscription that was never acknowledged fails at once: its caller still waits.
            return is_lost && sent.with.is_heard && sent.with.repeats < MAX_RETRIES;
        }
        let is_lost = matches!(why, CallError::Lost(_));
        is_lost && sent.with.repeats == 0 && may_repeat(sent.method, Era::Stateless)
    }

    fn schedule_repeat(&mut self, ticket: Ticket, now: Instant) {
        let Some(sent) = self.asked.by_ticket(ticket) else { return };
        sent.with.repeats += 1;
        if sent.method != Method::SubscriptionsListen {
            return self.repeat(ticket);
        }
        sent.with.due = Some(now + RETRY_DELAY * (1 << sent.with.repeats.min(5)));
    }

    /// Retries a request under a new id.
    pub(super) fn repeat(&mut self, ticket: Ticket) {
        let id = self.asked.next_id();
        let Some(sent) = self.asked.by_ticket(ticket) else { return };
        let Some(params) = sent.with.params.clone() else { return };
        sent.id = id;
        sent.with.due = None;
        let (method, progress) = (sent.method, sent.with.wants_progress);
        self.send_call(id, method, params, progress);
    }
}

/// Whether a method is idempotent.
pub(super) fn may_repeat(method: Method, era: Era) -> bool {
    let changes_nothing = method.name().ends_with("/list")
        || matches!(
            method,
            Method::ServerDiscover
                | Method::ResourcesRead
                | Method::PromptsGet
                | Method::CompletionComplete
                | Method::TasksGet
                | Method::SubscriptionsListen
        );

    era == Era::Stateless && changes_nothing
}

/// A status in place of an answer.
fn no_answer(error: HttpError) -> CallError {
    match error.status {
        200..300 => CallError::Invalid(error.message),
        _ => CallError::Http(error),
    }
}

/// The delay before a subscription is opened again; it doubles with each failure, up to 32-fold.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often in a row a subscription is opened again without hearing anything.
const MAX_RETRIES: u32 = 10;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trunkline_wire::jsonrpc::{Incoming, Message, Object};
    use trunkline_wire::model::Implementation;
    use trunkline_wire::revision::{Revision, Revisions};

    use super::*;
    use crate::client::{Config, OpenError, Start};
    use crate::{Ask, Attached, Conversation, Input, Outgoing};

    struct Play {
        core: Client,
        now: Instant,
    }

    impl Play {
        fn new(revisions: Revisions, start: Start) -> Self {
            let mut config = Config::new(Implementation::new("t", "1"));
            config.revisions = revisions;
            #[allow(clippy::disallowed_methods)] // A test has to begin somewhere.
            let now = Instant::now();
            Self { core: Client::over_http(Arc::new(config), start, now), now }
        }

        fn stateless() -> Self {
            let mut play = Self::new(Revisions::ALL, Start::Probe);
            play.says("server/discover 1");
            play.hears(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"public"}}"#);
            play.says("opened 2026-07-28");
            play
        }

        /// One that has sent a request with the id 2.
        fn asked(method: &'static str) -> Self {
            let mut play = Self::stateless();
            play.ask(1, method);
            play.says(&format!("{method} 2"));
            play
        }

        fn hears(&mut self, text: &str) {
            self.core.handle(Input::received(Incoming::parse(text.as_bytes())), self.now);
        }

        fn ask(&mut self, ticket: u64, method: &'static str) {
            self.core.handle(
                Input::Ask(Ask {
                    ticket: Ticket(ticket),
                    during: None,
                    method: method.into(),
                    params: Object::default(),
                    wants_progress: false,
                    timing: None,
                    attached: Attached::default(),
                    relays: false,
                }),
                self.now,
            );
        }

        fn lost(&mut self, id: i64) {
            self.core.undelivered(id, CallError::Lost("cut.".to_owned()), self.now);
        }

        fn wait(&mut self, milliseconds: u64) {
            self.now += Duration::from_millis(milliseconds);
            self.core.handle(Input::Tick, self.now);
        }

        /// Everything sent since, in words.
        #[track_caller]
        fn says(&mut self, expected: &str) {
            let mut words = Vec::new();
            while let Some(output) = self.core.poll() {
                words.push(match output {
                    Output::Send(Outgoing::One(Message::Request { id, method, .. }), _) => {
                        format!("{method} {id}")
                    }
                    Output::Send(Outgoing::One(Message::Notification { method, .. }), _) => {
                        method.to_string()
                    }
                    Output::Opened(facts) => format!("opened {}", facts.revision),
                    Output::Failed(error) => format!("failed {error}"),
                    Output::Settled { ticket, outcome } => match outcome {
                        Ok(_) => format!("settled {}", ticket.0),
                        Err(error) => format!("settled {}: {error}", ticket.0),
                    },
                    other => format!("{other:?}"),
                });
            }
            assert_eq!(words.join(", "), expected);
        }
    }

    #[test]
    fn a_probe_that_is_not_recognised_leads_to_initialize() {
        let mut play = Play::new(Revisions::ALL, Start::Probe);
        play.says("server/discover 1");
        play.core.unrecognised(1, HttpError::new(400, ""), play.now);
        play.says("initialize 2");
        play.core.unrecognised(2, HttpError::new(400, "no"), play.now);
        play.says("failed The server answered with HTTP status 400: no");

        let mut play = Play::new(Revisions::only(Revision::V2026_07_28), Start::Probe);
        play.says("server/discover 1");
        play.core.unrecognised(1, HttpError::new(404, ""), play.now);
        play.says("failed The server answered with HTTP status 404.");
    }

    #[test]
    fn a_probe_that_fails_or_is_met_with_silence_leads_nowhere() {
        for (why, expected) in [
            (CallError::Unreachable("x".to_owned()), "The server cannot be reached: x"),
            (CallError::Lost("x".to_owned()), "The server cannot be reached: x"),
            (CallError::Http(HttpError::new(401, "")), "The server answered with HTTP status 401."),
        ] {
            let mut play = Play::new(Revisions::ALL, Start::Probe);
            play.says("server/discover 1");
            play.core.undelivered(1, why, play.now);
            play.says(&format!("failed {expected}"));
        }
        let mut play = Play::new(Revisions::ALL, Start::Probe);
        play.says("server/discover 1");
        play.wait(29_999);
        play.says("");
        play.wait(1);
        play.says(&format!("failed {}", OpenError::TimedOut));
    }

    #[test]
    fn a_server_known_to_be_old_is_not_probed_unless_it_is_new_by_now() {
        let mut play = Play::new(Revisions::ALL, Start::Initialize);
        play.says("initialize 1");
        play.hears(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#);
        play.says("server/discover 2");
        let mut play = Play::new(Revisions::only(Revision::V2026_07_28), Start::Initialize);
        play.says("server/discover 1");
    }

    #[test]
    fn an_idempotent_request_is_retried_once_under_a_new_id() {
        let mut play = Play::stateless();
        play.ask(1, "tools/list");
        play.ask(2, "tools/call");
        play.says("tools/list 2, tools/call 3");
        play.lost(2);
        play.says("tools/list 4");
        play.lost(2);
        play.says("");
        play.lost(3);
        let lost = "The answer was lost, the call may have been carried out: cut.";
        play.says(&format!("settled 2: {lost}"));
        play.lost(4);
        play.says(&format!("settled 1: {lost}"));
    }

    #[test]
    fn a_repetition_that_was_not_made_does_not_undo_what_was_made_before() {
        let mut play = Play::asked("tools/list");
        play.lost(2);
        play.says("tools/list 3");
        play.core.undelivered(3, CallError::Unreachable("x".to_owned()), play.now);
        play.says(
            "settled 1: The answer was lost, the call may have been carried out: it was made \
             before, and now: The server cannot be reached, the call was not made: x",
        );
    }

    #[test]
    fn a_refused_request_is_not_retried() {
        let mut play = Play::asked("tools/list");
        play.core.undelivered(2, CallError::Http(HttpError::new(503, "")), play.now);
        play.says("settled 1: The server answered with HTTP status 503.");
    }

    #[test]
    fn a_subscription_is_opened_again_at_a_growing_pace_once_it_was_acknowledged() {
        let mut play = Play::asked("subscriptions/listen");
        play.lost(2);
        let lost = "The answer was lost, the call may have been carried out: cut.";
        play.says(&format!("settled 1: {lost}"));

        let mut play = Play::asked("subscriptions/listen");
        play.hears(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#);
        while play.core.poll().is_some() {}
        play.lost(2);
        for (id, pause) in [(3, 1000), (4, 2000), (5, 4000)] {
            play.wait(pause - 1);
            play.says("");
            play.wait(1);
            play.says(&format!("subscriptions/listen {id}"));
            play.lost(id);
        }
    }

    #[test]
    fn a_new_session_takes_the_place_of_the_old_one() {
        const ANSWER: &str = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
        let answer = |id: i64| format!(r#"{{"jsonrpc":"2.0","id":{id},{ANSWER}}}"#);
        let mut play = Play::new(Revisions::ALL, Start::Initialize);
        play.says("initialize 1");
        play.hears(&answer(1));
        play.says("notifications/initialized, opened 2025-11-25");
        play.ask(1, "tools/list");
        play.says("tools/list 2");
        play.core.renew(play.now);
        play.says("initialize 3");
        play.hears(&answer(3));
        play.says("notifications/initialized, opened 2025-11-25");
        // The earlier call is still awaited: it is sent again unchanged.
        play.hears(r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#);
        play.says("settled 1");

        play.core.renew(play.now);
        play.says("initialize 4");
        play.hears(&answer(4).replace("2025-11-25", "2025-06-18"));
        let why = "a new session speaks another revision than the one before.";
        play.says(&format!(
            "notifications/initialized, failed The server's handshake breaks the protocol: {why}"
        ));
    }
}
