//! What happened to one call → its log: stages with their times, and the messages on both sides.
//!
//! Nothing here reads a clock: moments are handed in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_recording::line::{Direction, Side};
use trunkline_wire::jsonrpc::Message;
use trunkline_wire::model::Tool;
use trunkline_wire::revision::Revision;

use super::journal::{Sends, What};
use super::kept_message::KeptText;
use crate::merge::Target;
use crate::outcome::Outcome;
use crate::trace::Trace;

/// The log of one call. Rounds, questions and polls of its task are in the same log.
#[derive(Debug)]
pub(crate) struct CallLog {
    /// Whether messages are kept, not only their sizes.
    pub(crate) keeps: bool,
    began: Instant,
    pub(crate) target: CallTarget,
    pub(crate) instance: Option<(u64, Revision)>,
    /// When and how it ended; `None` while the call goes on.
    pub(crate) ended: Option<(Instant, Ended)>,
    /// How often its caller came: once, and once for each answer or poll.
    pub(crate) rounds: u32,
    pub(crate) questions: u32,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// When each stage began.
    stages: Vec<(Stage, Instant)>,
    /// When the server answered, if nothing has been entered since: from then on the time belongs to `Carry`.
    answered: Option<Instant>,
    pub(crate) said: Vec<Said>,
    /// Messages that were too many or too large to keep.
    pub(crate) left_out: u32,
    /// The revision that a handshake agreed on.
    pub(crate) spoken: Option<Revision>,
}

/// What a call is about.
#[derive(Clone, Debug, Default)]
pub(crate) enum CallTarget {
    #[default]
    Nothing,
    Known(Arc<Target>),
    /// What the caller asked for, where no server has it.
    Named(Arc<str>),
    /// A server as a whole.
    Server(Arc<str>),
}

impl CallTarget {
    pub(crate) fn server(&self) -> Option<&Arc<str>> {
        match self {
            Self::Known(target) => Some(&target.server),
            Self::Server(server) => Some(server),
            Self::Nothing | Self::Named(_) => None,
        }
    }

    /// The target's own name at its server, or what the caller asked for if no server has it.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Known(target) => Some(&target.name),
            Self::Named(name) => Some(name),
            Self::Nothing | Self::Server(_) => None,
        }
    }

    pub(crate) fn tool(&self) -> Option<&Arc<Tool>> {
        match self {
            Self::Known(target) => target.tool(),
            _ => None,
        }
    }
}

/// How a call ended, for now: a call that asked goes on when its caller comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<&'static str>,
    /// The id of the call in logs and errors.
    pub(crate) trace: Trace,
}

impl Ended {
    /// The call of this id succeeded.
    pub(crate) fn well(trace: Trace) -> Self {
        Self { outcome: Outcome::Ok, reason: None, trace }
    }
}

/// Where the time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Finding the target, rules, rates, consent, plugins.
    Policy,
    /// Waiting for an instance that was there already.
    Wait,
    /// Waiting for an instance to start.
    Start,
    /// The server works.
    Upstream,
    /// The caller is asked.
    Question,
    /// The answer is carried to the caller's revision.
    Carry,
}

impl Stage {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Wait => "wait",
            Self::Start => "start",
            Self::Upstream => "upstream",
            Self::Question => "question",
            Self::Carry => "carry",
        }
    }
}

/// A message as it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// When, after the call began.
    pub(crate) at: Duration,
    pub(crate) side: Side,
    pub(crate) direction: Direction,
    pub(crate) size: usize,
    /// `None` if it is not kept.
    pub(crate) text: Option<KeptText>,
}

impl Said {
    pub(crate) fn message(&self) -> Option<Message> {
        self.text.as_ref()?.to_message()
    }
}

/// On which link, and in which direction.
pub(crate) type Place = (Side, Direction);

/// The caller's own messages, and those to it.
pub(crate) const FROM_CLIENT: Place = (Side::Client, Direction::In);
pub(crate) const TO_CLIENT: Place = (Side::Client, Direction::Out);
pub(crate) const FROM_SERVER: Place = (Side::Server, Direction::In);
pub(crate) const TO_SERVER: Place = (Side::Server, Direction::Out);

impl CallLog {
    /// The log of a call, or of what a conversation says beside its calls.
    pub(crate) fn new(began: Instant, is_call: bool) -> Self {
        let mut log = Self {
            keeps: true,
            began,
            target: CallTarget::Nothing,
            instance: None,
            ended: None,
            rounds: 0,
            questions: 0,
            bytes_in: 0,
            bytes_out: 0,
            stages: Vec::new(),
            answered: None,
            said: Vec::new(),
            left_out: 0,
            spoken: None,
        };
        if is_call {
            log.apply(began, &What::Returns);
        }
        log
    }

    /// Something happened to the call.
    pub(crate) fn apply(&mut self, at: Instant, what: &What) {
        match what {
            What::Returns => {
                self.rounds += 1;
                self.ended = None;
                self.enter(Stage::Policy, at);
            }
            What::Sends(sends) => self.sends(at, sends),
            What::Enters(stage) => self.enter(*stage, at),
            What::Asks(questions) => {
                self.questions += questions;
                // An answer of the server before that was part of the way there.
                self.answered = None;
                self.enter(Stage::Question, at);
            }
            What::Parks(questions) => self.questions += questions,
            What::IsAbout(target) => self.target = target.clone(),
            What::IsWith { server, instance, revision } => {
                self.target = server.clone();
                self.instance = Some((*instance, *revision));
            }
            What::Speaks(revision) => {
                self.spoken = Some(*revision);
                if let Some((_, instance)) = &mut self.instance {
                    *instance = *revision;
                }
            }
            What::Ends(ended) => self.ends(at, *ended),
        }
    }

    /// It is about to reach an instance.
    pub(crate) fn sends(&mut self, at: Instant, sends: &Sends) {
        self.target = sends.to.clone();
        self.instance = Some((sends.instance, sends.revision));
        if let Some(since) = sends.waits {
            self.enter(if sends.is_new { Stage::Start } else { Stage::Wait }, since);
        }
        self.enter(Stage::Upstream, at);
    }

    /// It ends, or its round does.
    pub(crate) fn ends(&mut self, at: Instant, ended: Ended) {
        self.ended = Some((at, ended));
        if ended.outcome == Outcome::Asked {
            self.enter(Stage::Question, at);
        }
    }

    /// From now on the time belongs to this stage.
    fn enter(&mut self, stage: Stage, at: Instant) {
        if let Some(at) = self.answered.take() {
            self.push(Stage::Carry, at);
        }
        self.push(stage, at);
    }

    fn push(&mut self, stage: Stage, at: Instant) {
        if self.stages.last().is_none_or(|it| it.0 != stage) {
            self.stages.push((stage, at));
        }
    }

    /// A message, which may be the answer of the server.
    pub(crate) fn hear(&mut self, (side, direction): Place, at: Instant, is_result: bool) {
        if side == Side::Server {
            self.answered = (direction == Direction::In && is_result).then_some(at);
        }
    }

    /// The stages so far: each ends where the next begins.
    pub(crate) fn stages(&self, now: Instant) -> Vec<(Stage, Duration, Duration)> {
        let end = self.ended.map_or(now, |it| it.0);
        let is_carried = self.stages.last().is_some_and(|it| it.0 == Stage::Carry);
        let carry = self.answered.filter(|_| !is_carried);
        let begun = || self.stages.iter().copied().chain(carry.map(|at| (Stage::Carry, at)));
        let ends = begun().skip(1).map(|it| it.1).chain([end]);
        let all = begun().zip(ends);
        let all = all.map(|((stage, from), to)| (stage, self.after(from), self.after(to)));
        all.filter(|(stage, from, to)| to > from || *stage == Stage::Upstream).collect()
    }

    pub(crate) fn after(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.began)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// So many milliseconds after all calls began.
    fn ms(ms: u64) -> Instant {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        *BEGAN + Duration::from_millis(ms)
    }

    fn sends(is_new: bool, waits: Option<u64>) -> What {
        let (instance, revision) = (3, Revision::V2025_06_18);
        let (to, waits) = (CallTarget::Nothing, waits.map(ms));
        What::Sends(Sends { to, instance, revision, is_new, waits })
    }

    fn ends(outcome: Outcome) -> What {
        What::Ends(Ended { outcome, reason: None, trace: Trace::default() })
    }

    fn shown(log: &CallLog, now: u64) -> String {
        let stages = log.stages(ms(now));
        let all = stages.iter().map(|(stage, from, to)| {
            format!("{} {}-{}", stage.word(), from.as_millis(), to.as_millis())
        });
        all.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_call_that_asks_is_one_log_with_two_rounds() {
        let mut log = CallLog::new(ms(0), true);
        log.apply(ms(40), &sends(true, Some(1)));
        log.hear(TO_SERVER, ms(40), false);
        log.hear(FROM_SERVER, ms(50), false);
        log.apply(ms(60), &What::Parks(1));
        log.apply(ms(60), &ends(Outcome::Asked));
        assert_eq!(shown(&log, 99), "policy 0-1, start 1-40, upstream 40-60");
        log.apply(ms(90), &What::Returns);
        log.apply(ms(91), &What::Enters(Stage::Upstream));
        log.hear(FROM_SERVER, ms(95), true);
        log.apply(ms(96), &ends(Outcome::Ok));
        assert_eq!((log.rounds, log.questions), (2, 1));
        let all = "policy 0-1, start 1-40, upstream 40-60, question 60-90, policy 90-91, upstream 91-95, carry 95-96";
        assert_eq!(shown(&log, 99), all);
    }

    #[test]
    fn an_answer_is_carried_from_when_it_came_unless_something_follows_it() {
        let mut log = CallLog::new(ms(0), true);
        log.apply(ms(10), &sends(false, None));
        log.hear(FROM_SERVER, ms(20), true);
        assert_eq!(shown(&log, 30), "policy 0-10, upstream 10-20, carry 20-30");
        log.apply(ms(40), &What::Asks(1));
        assert_eq!(shown(&log, 50), "policy 0-10, upstream 10-40, question 40-50");
        log.apply(ms(50), &What::Enters(Stage::Upstream));
        log.hear(FROM_SERVER, ms(60), true);
        log.hear(TO_SERVER, ms(70), false);
        assert_eq!(shown(&log, 80), "policy 0-10, upstream 10-40, question 40-50, upstream 50-80");
        log.hear(FROM_SERVER, ms(90), true);
        log.apply(ms(95), &ends(Outcome::Asked));
        let all = "policy 0-10, upstream 10-40, question 40-50, upstream 50-90, carry 90-95";
        assert_eq!(shown(&log, 99), all);
    }

    #[test]
    fn a_call_that_waits_for_a_place_has_not_waited_for_a_start() {
        let mut log = CallLog::new(ms(0), true);
        log.apply(ms(30), &sends(false, Some(10)));
        assert_eq!(shown(&log, 40), "policy 0-10, wait 10-30, upstream 30-40");
    }

    #[test]
    fn what_is_said_beside_calls_has_no_stages_and_the_revision_of_its_handshake() {
        let mut log = CallLog::new(ms(0), false);
        let server = CallTarget::Server(Arc::from("a"));
        let revision = Revision::LATEST;
        log.apply(ms(0), &What::IsWith { server, instance: 4, revision });
        log.apply(ms(1), &What::Speaks(Revision::V2025_06_18));
        assert_eq!((log.rounds, shown(&log, 9)), (0, String::new()));
        assert_eq!(log.instance, Some((4, Revision::V2025_06_18)));
        assert_eq!(log.target.server().map(|it| &**it), Some("a"));
    }
}
