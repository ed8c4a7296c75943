//! What happens to one call → its log: stages with their times, sizes, and the messages on both sides.
//!
//! Nothing here reads a clock: times are handed in, as the time since the call began.

use std::sync::Arc;
use std::time::Duration;

use trunkline_recording::line::{Direction, Side};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message, Object, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::Tool;
use trunkline_wire::revision::Revision;

use crate::outcome::Outcome;
use crate::trace::Trace;

/// The log of one call. Rounds, questions and polls of its task are in the same log.
#[derive(Debug)]
pub(crate) struct CallLog {
    /// The number that the ids of its messages begin with.
    number: u64,
    /// Whether messages are kept, not only their sizes.
    keeps: bool,
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
    said: Vec<Said>,
    /// The bytes of kept messages.
    kept: usize,
    /// Messages that were too many or too large to keep.
    pub(crate) left_out: u32,
    /// How many messages are in a file already.
    pub(crate) written: usize,
    /// How many requests there were, to name the next.
    requests: i64,
    /// The open request on each side.
    open: [i64; 2],
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
    pub(crate) after: Duration,
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
    first: [(Stage, Duration); 4],
    count: usize,
    more: Vec<(Stage, Duration)>,
}

impl Default for Stages {
    fn default() -> Self {
        Self { first: [(Stage::Policy, Duration::ZERO); 4], count: 0, more: Vec::new() }
    }
}

impl Stages {
    fn push(&mut self, stage: Stage, at: Duration) {
        if self.last_mut().is_some_and(|it| *it == stage) {
            return;
        }
        match self.first.get_mut(self.count) {
            Some(place) => {
                *place = (stage, at);
                self.count += 1;
            }
            None if self.more.len() < MOST_STAGES => self.more.push((stage, at)),
            None => {}
        }
    }

    fn last_mut(&mut self) -> Option<&mut Stage> {
        let last = match self.more.last_mut() {
            Some(last) => Some(last),
            None => self.first[..self.count].last_mut(),
        };
        last.map(|it| &mut it.0)
    }

    /// The call has waited for an instance to start, not for a place in one.
    fn waited_for_start(&mut self) {
        if let Some(stage @ Stage::Wait) = self.last_mut() {
            *stage = Stage::Start;
        }
    }

    fn iter(&self) -> impl Iterator<Item = (Stage, Duration)> {
        self.first[..self.count].iter().chain(&self.more).copied()
    }
}

/// What a request asks: its method, its params, and its `_meta` where that is apart from them.
pub(crate) type Asked<'a> = (Method, &'a Object, Option<&'a Json>);

/// A message.
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
    pub(crate) fn new(number: u64, keeps: bool) -> Self {
        Self {
            number,
            keeps,
            target: None,
            instance: None,
            ended: None,
            rounds: 0,
            questions: 0,
            bytes_in: 0,
            bytes_out: 0,
            stages: Stages::default(),
            said: Vec::with_capacity(4),
            kept: 0,
            left_out: 0,
            written: 0,
            requests: 0,
            open: [0; 2],
        }
    }

    /// The caller comes, for the first time or again.
    pub(crate) fn begin(&mut self, at: Duration) {
        self.rounds += 1;
        self.ended = None;
        self.enter(Stage::Policy, at);
    }

    /// From now on the time belongs to this stage.
    pub(crate) fn enter(&mut self, stage: Stage, at: Duration) {
        self.stages.push(stage, at);
    }

    /// An instance was found for the call; `is_new` if it had to start.
    pub(crate) fn leased(&mut self, instance: (u64, Revision), is_new: bool, at: Duration) {
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
            self.enter(Stage::Question, ended.after);
        }
    }

    /// A request; its id names it in [`Self::response`].
    pub(crate) fn request(&mut self, place: Place, asked: Asked<'_>, at: Duration) -> i64 {
        let (method, params, meta) = asked;
        self.requests += 1;
        let id = self.number as i64 * IDS + self.requests.min(IDS - 1);
        let members = params.iter().map(|(name, value)| name.len() + value.get().len() + 4);
        let meta_size = meta.map_or(0, |it| it.get().len() + 8);
        let size = ENVELOPE + method.name().len() + members.sum::<usize>() + meta_size;
        self.note(place, size, at, || {
            let mut params = params.clone_for_one_more();
            if let Some(meta) = meta {
                params.set("_meta", meta.clone());
            }
            Message::Request {
                id: Id::Number(id),
                method: method.into(),
                params: Params::Object(params),
            }
        });
        id
    }

    /// The request of the caller, or the call at the server: the one request of its side that is answered at the end.
    pub(crate) fn call(&mut self, place: Place, asked: Asked<'_>, at: Duration) {
        let id = self.request(place, asked, at);
        self.open[place.0 as usize] = id;
    }

    /// The answer to that.
    pub(crate) fn answer(&mut self, place: Place, told: Result<&Json, &ErrorObject>, at: Duration) {
        self.response(place, self.open[place.0 as usize], told, at);
    }

    /// The answer to a request.
    pub(crate) fn response(
        &mut self,
        place: Place,
        id: i64,
        told: Result<&Json, &ErrorObject>,
        at: Duration,
    ) {
        let size = match told {
            Ok(result) => result.get().len(),
            Err(error) => {
                let data = error.data.as_ref().map_or(0, |it| it.get().len());
                error.message.len() + data + ENVELOPE
            }
        };
        self.note(place, ENVELOPE + size, at, || Message::Response {
            id: Some(Id::Number(id)),
            outcome: told.cloned().map_err(ErrorObject::clone),
        });
    }

    /// A notification of about this size. Its parameters are written only if they are kept.
    pub(crate) fn notification(
        &mut self,
        place: Place,
        method: Method,
        size: usize,
        params: impl FnOnce() -> Object,
        at: Duration,
    ) {
        let size = ENVELOPE + method.name().len() + size;
        self.note(place, size, at, || Message::Notification {
            method: method.into(),
            params: Params::Object(params()),
        });
    }

    fn note(&mut self, place: Place, size: usize, at: Duration, message: impl FnOnce() -> Message) {
        let (side, direction) = place;
        if side == Side::Client {
            match direction {
                Direction::In => self.bytes_in += size as u64,
                Direction::Out => self.bytes_out += size as u64,
            }
        }
        if self.said.len() >= MOST_MESSAGES {
            self.left_out += 1;
            return;
        }
        let fits = size <= LARGEST && self.kept + size <= MOST_KEPT;
        if self.keeps && !fits {
            self.left_out += 1;
        }
        let message = (self.keeps && fits).then(message);
        if message.is_some() {
            self.kept += size;
        }
        self.said.push(Said { at, side, direction, size, message });
    }

    /// The stages so far: each ends where the next begins.
    pub(crate) fn stages(&self, now: Duration) -> Vec<(Stage, Duration, Duration)> {
        let end = self.ended.map_or(now, |it| it.after);
        let ends = self.stages.iter().skip(1).map(|it| it.1).chain([end]);
        let all = self.stages.iter().zip(ends).map(|((stage, from), to)| (stage, from, to));
        all.filter(|(stage, from, to)| to > from || *stage == Stage::Upstream).collect()
    }

    pub(crate) fn said(&self) -> &[Said] {
        &self.said
    }

    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// The memory that the log takes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        EACH + self.kept + self.said.len() * size_of::<Said>()
    }
}

/// The parts of a message around its parameters or its result.
const ENVELOPE: usize = 36;
/// The memory of a log without messages.
const EACH: usize = 1_024;
/// How many ids a call has for its requests.
const IDS: i64 = 1_000;
/// The bounds of one call: stages, messages, the bytes of one message and of all that are kept.
const MOST_STAGES: usize = 64;
const MOST_MESSAGES: usize = 512;
const LARGEST: usize = 1 << 20;
const MOST_KEPT: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn object(text: &str) -> Object {
        Object::parse(text).unwrap()
    }

    fn ended(outcome: Outcome, after: u64) -> Ended {
        Ended { outcome, reason: None, after: ms(after), trace: Trace::default() }
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
        log.said().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_call_that_asks_is_one_log_with_two_rounds() {
        let mut log = CallLog::new(7, true);
        log.begin(ms(0));
        log.call(FROM_CLIENT, (Method::ToolsCall, &object(r#"{"name":"a.push"}"#), None), ms(0));
        log.enter(Stage::Wait, ms(1));
        log.leased((3, Revision::V2025_06_18), true, ms(40));
        log.call(TO_SERVER, (Method::ToolsCall, &object(r#"{"name":"push"}"#), None), ms(40));
        let asked = object(r#"{"message":"Really?"}"#);
        let id = log.request(FROM_SERVER, (Method::ElicitationCreate, &asked, None), ms(50));
        log.questions += 1;
        let input = Json::parse(r#"{"resultType":"input_required"}"#).unwrap();
        log.answer(TO_CLIENT, Ok(&input), ms(60));
        log.end(ended(Outcome::Asked, 60));
        assert_eq!(shown(&log, 99), "policy 0-1, start 1-40, upstream 40-60");
        log.begin(ms(90));
        let meta = Json::parse(r#"{"k":1}"#).unwrap();
        let again = object(r#"{"inputResponses":{}}"#);
        log.call(FROM_CLIENT, (Method::ToolsCall, &again, Some(&meta)), ms(90));
        let answer = Json::parse(r#"{"action":"accept"}"#).unwrap();
        log.response(TO_SERVER, id, Ok(&answer), ms(91));
        log.enter(Stage::Upstream, ms(91));
        log.answer(FROM_SERVER, Ok(&Json::empty_object()), ms(95));
        log.enter(Stage::Carry, ms(95));
        log.answer(TO_CLIENT, Err(&ErrorObject::new(-1, "No.")), ms(96));
        log.end(ended(Outcome::Ok, 96));
        assert_eq!((log.rounds, log.questions), (2, 1));
        assert_eq!(
            shown(&log, 99),
            "policy 0-1, start 1-40, upstream 40-60, question 60-90, policy 90-91, upstream 91-95, carry 95-96"
        );
        assert_eq!(
            told(&log),
            r#"0 client in {"jsonrpc":"2.0","id":7001,"method":"tools/call","params":{"name":"a.push"}}
40 server out {"jsonrpc":"2.0","id":7002,"method":"tools/call","params":{"name":"push"}}
50 server in {"jsonrpc":"2.0","id":7003,"method":"elicitation/create","params":{"message":"Really?"}}
60 client out {"jsonrpc":"2.0","id":7001,"result":{"resultType":"input_required"}}
90 client in {"jsonrpc":"2.0","id":7004,"method":"tools/call","params":{"inputResponses":{},"_meta":{"k":1}}}
91 server out {"jsonrpc":"2.0","id":7003,"result":{"action":"accept"}}
95 server in {"jsonrpc":"2.0","id":7002,"result":{}}
96 client out {"jsonrpc":"2.0","id":7004,"error":{"code":-1,"message":"No."}}"#
        );
    }

    #[test]
    fn without_payloads_only_sizes_are_kept() {
        let mut log = CallLog::new(1, false);
        log.begin(ms(0));
        let params = object(r#"{"name":"x","arguments":{"key":"hunter2"}}"#);
        log.call(FROM_CLIENT, (Method::ToolsCall, &params, None), ms(0));
        assert_eq!(told(&log), "0 client in -");
        assert!(log.said()[0].size > 60 && log.bytes_in > 60, "{}", log.bytes_in);
        assert!(!format!("{log:?}").contains("hunter2"));
    }

    #[test]
    fn one_call_takes_no_more_than_its_bounds() {
        let mut log = CallLog::new(1, true);
        let large = Json::string(&"x".repeat(LARGEST / 2));
        for _ in 0..2 * MOST_MESSAGES {
            log.response(TO_CLIENT, 1, Ok(&large), ms(1));
        }
        assert!(log.bytes() < MOST_KEPT + MOST_MESSAGES * 256, "{}", log.bytes());
        assert_eq!(log.said().len(), MOST_MESSAGES);
        assert_eq!(log.left_out as usize, 2 * MOST_MESSAGES - 7);
        let mut log = CallLog::new(1, true);
        log.response(TO_CLIENT, 1, Ok(&Json::string(&"x".repeat(LARGEST))), ms(1));
        assert_eq!((log.left_out, log.said()[0].message.is_none()), (1, true));
        (0..1000).for_each(|it| log.begin(ms(it)));
        (0..1000).for_each(|it| {
            log.enter(Stage::Wait, ms(it));
            log.enter(Stage::Carry, ms(it));
        });
        assert!(log.stages.more.len() <= MOST_STAGES);
    }
}
