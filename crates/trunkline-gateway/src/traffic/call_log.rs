//! What happens to one call → its log: stages with their times, sizes, and the messages on both sides.
//!
//! Nothing here reads a clock: moments are handed in. What the log is told it keeps as it is; times, sizes of all and
//! messages are made of that when somebody looks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_recording::line::{Direction, Side};
use trunkline_wire::jsonrpc::Message;
use trunkline_wire::model::Tool;
use trunkline_wire::revision::Revision;

use super::kept_message::KeptMessage;
use crate::outcome::Outcome;
use crate::trace::Trace;

/// The log of one call. Rounds, questions and polls of its task are in the same log.
#[derive(Debug)]
pub(crate) struct CallLog {
    /// Whether messages are kept, not only their sizes.
    keeps: bool,
    began: Instant,
    pub(crate) target: Option<CallTarget>,
    pub(crate) instance: Option<(u64, Revision)>,
    /// `None` while the call goes on.
    pub(crate) ended: Option<Ended>,
    /// How often its caller came: once, and once for each answer or poll.
    pub(crate) rounds: u32,
    pub(crate) questions: u32,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    stages: Stages,
    /// When the server answered, if nothing has been entered since: from then on the time belongs to `Carry`.
    answered: Option<Instant>,
    said: Messages,
    /// The bytes of kept messages.
    kept: usize,
    /// The memory that those who keep the log know of.
    pub(crate) known_bytes: usize,
    /// Messages that were too many or too large to keep.
    pub(crate) left_out: u32,
    /// How many messages are in a file already.
    pub(crate) written: usize,
    /// The side whose bytes are counted.
    pub(crate) counts: Side,
    /// The revision that a handshake agreed on.
    pub(crate) spoken: Option<Revision>,
    /// Whether somebody who follows the calls has been told of it as it was at its end.
    pub(crate) is_shown: bool,
}

/// What a call is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTarget {
    pub(crate) server: Option<Arc<str>>,
    /// The target's own name at its server, or what the caller asked for if no server has it.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) tool: Option<Arc<Tool>>,
}

/// How a call ended, for now: a call that asked goes on when its caller comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<&'static str>,
    pub(crate) at: Instant,
    /// The id of the call in logs and errors.
    pub(crate) trace: Trace,
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

/// When each stage began. A call that asks nothing has four and needs no memory of its own for them.
#[derive(Debug)]
struct Stages {
    first: [(Stage, Instant); 4],
    count: usize,
    more: Vec<(Stage, Instant)>,
    last: Option<Stage>,
}

impl Stages {
    fn new(began: Instant) -> Self {
        Self { first: [(Stage::Policy, began); 4], count: 0, more: Vec::new(), last: None }
    }

    fn push(&mut self, stage: Stage, at: Instant) {
        if self.last == Some(stage) {
            return;
        }
        self.last = Some(stage);
        match self.first.get_mut(self.count) {
            Some(place) => {
                *place = (stage, at);
                self.count += 1;
            }
            None if self.more.len() < MOST_STAGES => self.more.push((stage, at)),
            None => {}
        }
    }

    /// The call has waited for an instance to start, not for a place in one.
    fn waited_for_start(&mut self) {
        let last = match self.more.last_mut() {
            Some(last) => Some(last),
            None => self.first[..self.count].last_mut(),
        };
        if let Some((stage @ Stage::Wait, _)) = last {
            *stage = Stage::Start;
            self.last = Some(Stage::Start);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (Stage, Instant)> {
        self.first[..self.count].iter().chain(&self.more).copied()
    }
}

/// The messages of a call. Most calls have four, which need no memory of their own.
#[derive(Debug)]
struct Messages {
    first: [Noted; 4],
    more: Vec<Noted>,
    count: usize,
}

impl Messages {
    fn new(began: Instant) -> Self {
        let nothing =
            || Noted { at: began, place: FROM_CLIENT, size: 0, kept: KeptMessage::Nothing };
        let first = [nothing(), nothing(), nothing(), nothing()];
        Self { first, more: Vec::new(), count: 0 }
    }

    #[inline]
    fn push(&mut self, noted: Noted) {
        match self.first.get_mut(self.count) {
            // There is nothing to drop yet.
            Some(place) => std::mem::forget(std::mem::replace(place, noted)),
            None => self.more.push(noted),
        }
        self.count += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &Noted> {
        self.first[..self.count.min(4)].iter().chain(&self.more)
    }
}

/// A message as it is noted.
#[derive(Debug)]
struct Noted {
    at: Instant,
    place: Place,
    size: u32,
    kept: KeptMessage,
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
    pub(crate) message: Option<Message>,
}

/// On which link, and in which direction.
pub(crate) type Place = (Side, Direction);

/// The caller's own messages, and those to it.
pub(crate) const FROM_CLIENT: Place = (Side::Client, Direction::In);
pub(crate) const TO_CLIENT: Place = (Side::Client, Direction::Out);
pub(crate) const FROM_SERVER: Place = (Side::Server, Direction::In);
pub(crate) const TO_SERVER: Place = (Side::Server, Direction::Out);

impl CallLog {
    pub(crate) fn new(keeps: bool, began: Instant) -> Self {
        Self {
            keeps,
            began,
            target: None,
            instance: None,
            ended: None,
            rounds: 0,
            questions: 0,
            bytes_in: 0,
            bytes_out: 0,
            stages: Stages::new(began),
            answered: None,
            said: Messages::new(began),
            kept: 0,
            known_bytes: 0,
            left_out: 0,
            written: 0,
            counts: Side::Client,
            spoken: None,
            is_shown: false,
        }
    }

    /// The caller comes, for the first time or again.
    pub(crate) fn begin(&mut self, at: Instant) {
        self.rounds += 1;
        self.ended = None;
        self.enter(Stage::Policy, at);
    }

    /// From now on the time belongs to this stage.
    pub(crate) fn enter(&mut self, stage: Stage, at: Instant) {
        if let Some(at) = self.answered.take() {
            self.stages.push(Stage::Carry, at);
        }
        self.stages.push(stage, at);
    }

    /// Somebody is asked. An answer of the server before that was part of the way there.
    pub(crate) fn asks(&mut self, at: Instant) {
        self.answered = None;
        self.enter(Stage::Question, at);
    }

    /// An instance was found for the call; `is_new` if it had to start.
    pub(crate) fn leased(&mut self, instance: (u64, Revision), is_new: bool, at: Instant) {
        self.instance = Some(instance);
        if is_new {
            self.stages.waited_for_start();
        }
        self.enter(Stage::Upstream, at);
    }

    /// The call ends, or its round does.
    pub(crate) fn end(&mut self, ended: Ended) {
        self.ended = Some(ended);
        if ended.outcome == Outcome::Asked {
            self.enter(Stage::Question, ended.at);
        }
    }

    /// A message.
    pub(crate) fn note(&mut self, place: Place, at: Instant, kept: KeptMessage) {
        let length = kept.size();
        let size = u32::try_from(length).unwrap_or(u32::MAX);
        let (side, direction) = place;
        if side == self.counts {
            match direction {
                Direction::In => self.bytes_in += length as u64,
                Direction::Out => self.bytes_out += length as u64,
            }
        }
        if side == Side::Server {
            let is_answer = direction == Direction::In && matches!(kept, KeptMessage::Result(..));
            self.answered = is_answer.then_some(at);
        }
        if self.said.count >= MOST_MESSAGES {
            self.left_out += 1;
        } else if self.takes(length) {
            self.kept += length;
            self.said.push(Noted { at, place, size, kept });
        } else {
            self.left_out += u32::from(self.keeps);
            self.said.push(Noted { at, place, size, kept: KeptMessage::Nothing });
        }
    }

    /// Whether a message of this size is kept.
    fn takes(&self, size: usize) -> bool {
        self.keeps && size <= LARGEST && self.kept + size <= MOST_KEPT
    }

    /// The stages so far: each ends where the next begins.
    pub(crate) fn stages(&self, now: Instant) -> Vec<(Stage, Duration, Duration)> {
        let end = self.ended.map_or(now, |it| it.at);
        let carry = self.answered.filter(|_| self.stages.last != Some(Stage::Carry));
        let begun = || self.stages.iter().chain(carry.map(|at| (Stage::Carry, at)));
        let ends = begun().skip(1).map(|it| it.1).chain([end]);
        let all = begun().zip(ends);
        let all = all.map(|((stage, from), to)| (stage, self.after(from), self.after(to)));
        all.filter(|(stage, from, to)| to > from || *stage == Stage::Upstream).collect()
    }

    /// All messages but the first so many.
    pub(crate) fn said(&self, but: usize) -> Vec<Said> {
        let said = |it: &Noted| {
            let (side, direction) = it.place;
            let (at, message) = (self.after(it.at), it.kept.to_message());
            Said { at, side, direction, size: it.size as usize, message }
        };
        self.said.iter().skip(but).map(said).collect()
    }

    fn after(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.began)
    }

    /// Whether no more messages are taken in.
    pub(crate) fn is_full(&self) -> bool {
        self.said.count >= MOST_MESSAGES || self.kept >= MOST_KEPT / 2
    }

    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// The memory that the log takes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        EACH + self.kept + self.said.count * size_of::<Noted>()
    }

    /// The same with one more message of this size.
    pub(crate) fn bytes_with(&self, size: usize) -> usize {
        self.bytes() + size_of::<Noted>() + if self.takes(size) { size } else { 0 }
    }
}

/// The memory of a log without messages.
const EACH: usize = 1_024;
/// The bounds of one call: stages, messages, the bytes of one message and of all that are kept.
const MOST_STAGES: usize = 64;
const MOST_MESSAGES: usize = 512;
const LARGEST: usize = 1 << 20;
const MOST_KEPT: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use trunkline_wire::json::Json;
    use trunkline_wire::jsonrpc::{Id, Incoming};

    use super::*;

    /// So many milliseconds after all calls began.
    fn ms(ms: u64) -> Instant {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        *BEGAN + Duration::from_millis(ms)
    }

    fn say(log: &mut CallLog, place: Place, text: &str, at: u64) {
        let Incoming::One(message) = Incoming::parse(text.as_bytes()) else { panic!("{text}") };
        let kept = KeptMessage::of_read(&message);
        log.note(place, ms(at), kept);
    }

    fn ended(outcome: Outcome, after: u64) -> Ended {
        Ended { outcome, reason: None, at: ms(after), trace: Trace::default() }
    }

    fn shown(log: &CallLog, now: u64) -> String {
        let stages = log.stages(ms(now));
        let all = stages.iter().map(|(stage, from, to)| {
            format!("{} {}-{}", stage.word(), from.as_millis(), to.as_millis())
        });
        all.collect::<Vec<_>>().join(", ")
    }

    fn told(log: &CallLog) -> String {
        let line = |it: &Said| {
            let side = if it.side == Side::Client { "client" } else { "server" };
            let way = if it.direction == Direction::In { "in" } else { "out" };
            let text = it.message.as_ref().map_or("-".to_owned(), Message::to_text);
            format!("{} {side} {way} {text}", it.at.as_millis())
        };
        log.said(0).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_call_that_asks_is_one_log_with_two_rounds() {
        let mut log = CallLog::new(true, ms(0));
        let lines = [
            (
                FROM_CLIENT,
                0,
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a.push"}}"#,
            ),
            (
                TO_SERVER,
                40,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"push"}}"#,
            ),
            (FROM_SERVER, 50, r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}"#),
            (TO_CLIENT, 60, r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"}}"#),
            (
                FROM_CLIENT,
                90,
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"inputResponses":{}}}"#,
            ),
            (TO_SERVER, 91, r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}"#),
            (FROM_SERVER, 95, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            (TO_CLIENT, 96, r#"{"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"No."}}"#),
        ];
        let mut lines_of = lines.iter();
        let mut next = |log: &mut CallLog| {
            let (place, at, text) = lines_of.next().unwrap();
            say(log, *place, text, *at);
        };
        log.begin(ms(0));
        next(&mut log);
        log.enter(Stage::Wait, ms(1));
        log.leased((3, Revision::V2025_06_18), true, ms(40));
        next(&mut log);
        next(&mut log);
        log.questions += 1;
        next(&mut log);
        log.end(ended(Outcome::Asked, 60));
        assert_eq!(shown(&log, 99), "policy 0-1, start 1-40, upstream 40-60");
        log.begin(ms(90));
        next(&mut log);
        next(&mut log);
        log.enter(Stage::Upstream, ms(91));
        next(&mut log);
        log.enter(Stage::Carry, ms(95));
        next(&mut log);
        log.end(ended(Outcome::Ok, 96));
        assert_eq!((log.rounds, log.questions), (2, 1));
        assert_eq!(
            shown(&log, 99),
            "policy 0-1, start 1-40, upstream 40-60, question 60-90, policy 90-91, upstream 91-95, carry 95-96"
        );
        let places = ["client in", "server out", "server in", "client out"];
        let expected = lines
            .iter()
            .enumerate()
            .map(|(number, (_, at, text))| format!("{at} {} {text}", places[number % 4]));
        let expected = expected.collect::<Vec<_>>();
        assert_eq!(told(&log), expected.join("\n"));
    }

    #[test]
    fn an_answer_is_carried_from_when_it_came_unless_something_follows_it() {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let mut log = CallLog::new(true, ms(0));
        log.begin(ms(0));
        log.leased((3, Revision::V2025_06_18), false, ms(10));
        say(&mut log, FROM_SERVER, answer, 20);
        assert_eq!(shown(&log, 30), "policy 0-10, upstream 10-20, carry 20-30");
        log.asks(ms(40));
        assert_eq!(shown(&log, 50), "policy 0-10, upstream 10-40, question 40-50");
        log.enter(Stage::Upstream, ms(50));
        say(&mut log, FROM_SERVER, answer, 60);
        say(&mut log, TO_SERVER, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#, 70);
        assert_eq!(shown(&log, 80), "policy 0-10, upstream 10-40, question 40-50, upstream 50-80");
        say(&mut log, FROM_SERVER, answer, 90);
        log.end(ended(Outcome::Asked, 95));
        let all = "policy 0-10, upstream 10-40, question 40-50, upstream 50-90, carry 90-95";
        assert_eq!(shown(&log, 99), all);
    }

    #[test]
    fn without_payloads_only_sizes_are_kept() {
        let mut log = CallLog::new(false, ms(0));
        log.begin(ms(0));
        let params = r#"{"name":"x","arguments":{"key":"hunter2"}}"#;
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        say(&mut log, FROM_CLIENT, &text, 0);
        assert_eq!(told(&log), "0 client in -");
        assert!(log.said(0)[0].size > 60 && log.bytes_in > 60, "{}", log.bytes_in);
        assert!(!format!("{log:?}").contains("hunter2"));
    }

    #[test]
    fn one_call_takes_no_more_than_its_bounds() {
        let mut log = CallLog::new(true, ms(0));
        let result = |bytes| Message::result(Id::Number(1), Json::string(&"x".repeat(bytes)));
        let answer = |log: &mut CallLog, message: &Message| {
            log.note(TO_CLIENT, ms(1), KeptMessage::of(message));
        };
        let large = result(LARGEST / 2);
        for _ in 0..2 * MOST_MESSAGES {
            answer(&mut log, &large);
        }
        assert!(log.is_full());
        assert!(log.bytes() < MOST_KEPT + MOST_MESSAGES * 256, "{}", log.bytes());
        assert_eq!(log.said(0).len(), MOST_MESSAGES);
        assert_eq!(log.left_out as usize, 2 * MOST_MESSAGES - 7);
        let mut log = CallLog::new(true, ms(0));
        answer(&mut log, &result(LARGEST));
        assert_eq!((log.left_out, log.said(0)[0].message.is_none()), (1, true));
        (0..1000).for_each(|it| log.begin(ms(it)));
        (0..1000).for_each(|it| {
            log.enter(Stage::Wait, ms(it));
            log.enter(Stage::Carry, ms(it));
        });
        assert!(log.stages.more.len() <= MOST_STAGES);
    }
}
