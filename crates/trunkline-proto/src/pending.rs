//! Calls in flight in both directions, and their deadlines.
//!
//! The tables of the peer's calls are short (tens of entries): a linear search is quicker than hashing and keeps the
//! order of arrival. A gateway may have thousands of calls at one server, so ours are found by halving.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, Object, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::LogLevel;
use trunkline_wire::revision::Revision;

use crate::{CallKey, Ticket, Timing};

/// A call of the peer that is being answered.
#[derive(Debug)]
pub(crate) struct OpenCall<T> {
    pub(crate) key: CallKey,
    pub(crate) id: Id,
    pub(crate) revision: Revision,
    pub(crate) clock: Option<Clock>,
    pub(crate) progress: Option<ProgressSink>,
    pub(crate) log_level: Option<LogLevel>,
    /// State of the role.
    pub(crate) with: T,
}

/// Where progress goes, and the last value: it must strictly increase.
#[derive(Debug)]
pub(crate) struct ProgressSink {
    pub(crate) token: Json,
    pub(crate) reached: f64,
    /// When it was last sent.
    pub(crate) sent: Option<Instant>,
}

/// The two deadlines of a call. Activity moves the idle deadline; nothing moves the hard one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// How long it may be idle.
    patience: Duration,
    idle: Instant,
    hard: Instant,
    /// Whether the call waits for people, which pauses the idle deadline.
    held: bool,
}

impl Clock {
    pub(crate) fn start(timing: Timing, now: Instant) -> Self {
        let (idle, hard) = (now + timing.idle, now + timing.hard);
        Self { patience: timing.idle, idle, hard, held: false }
    }

    pub(crate) fn sign_of_life(&mut self, now: Instant) {
        if !self.held {
            self.idle = now + self.patience;
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.idle.min(self.hard)
    }

    /// The call waits for people: only the hard deadline applies.
    pub(crate) fn hold(&mut self) {
        self.held = true;
        self.idle = self.hard;
    }

    /// The people have answered: both deadlines apply again.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.held = false;
        self.sign_of_life(now);
    }
}

/// The peer's calls. Mostly there is one at a time, for which nothing is allocated.
// Invariant: a call is here exactly while its answer is still owed. `first` is older than all of `more`.
#[derive(Debug)]
pub(crate) struct Calls<T> {
    first: Option<OpenCall<T>>,
    more: Vec<OpenCall<T>>,
    next: u64,
}

impl<T> Default for Calls<T> {
    #[inline]
    fn default() -> Self {
        Self { first: None, more: Vec::new(), next: 0 }
    }
}

impl<T> Calls<T> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    /// How many are being worked on; subscriptions do not count.
    pub(crate) fn at_work(&self) -> usize {
        let is_at_work = |it: &&OpenCall<T>| it.clock.is_some();
        usize::from(self.first.as_ref().filter(is_at_work).is_some())
            + self.more.iter().filter(is_at_work).count()
    }

    pub(crate) fn next_key(&mut self) -> CallKey {
        self.next += 1;
        CallKey(self.next)
    }

    pub(crate) fn add(&mut self, call: OpenCall<T>) {
        match self.first.is_none() && self.more.is_empty() {
            true => self.first = Some(call),
            false => self.more.push(call),
        }
    }

    pub(crate) fn has_id(&self, id: &Id) -> bool {
        let has_it = |it: &OpenCall<T>| it.id == *id;
        self.first.as_ref().is_some_and(has_it) || self.more.iter().any(has_it)
    }

    pub(crate) fn get(&mut self, key: CallKey) -> Option<&mut OpenCall<T>> {
        match &mut self.first {
            Some(first) if first.key == key => Some(first),
            _ => self.more.iter_mut().find(|it| it.key == key),
        }
    }

    /// Closes a call; `None` if it is closed already.
    #[inline]
    pub(crate) fn close(&mut self, key: CallKey) -> Option<OpenCall<T>> {
        self.close_if(|it| it.key == key)
    }

    pub(crate) fn close_id(&mut self, id: &Id) -> Option<OpenCall<T>> {
        self.close_if(|it| it.id == *id)
    }

    #[inline]
    fn close_if(&mut self, is_it: impl Fn(&OpenCall<T>) -> bool) -> Option<OpenCall<T>> {
        if self.first.as_ref().is_some_and(&is_it) {
            return self.first.take();
        }
        let at = self.more.iter().position(is_it)?;
        Some(self.more.remove(at))
    }

    pub(crate) fn drain(&mut self) -> Vec<OpenCall<T>> {
        self.first.take().into_iter().chain(std::mem::take(&mut self.more)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &OpenCall<T>> {
        self.first.iter().chain(&self.more)
    }

    /// Closes and returns every call whose deadline has passed.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<OpenCall<T>> {
        let late = |it: &mut OpenCall<T>| it.clock.is_some_and(|clock| clock.deadline() <= now);
        let first = self.first.take_if(late);
        first.into_iter().chain(self.more.extract_if(.., late)).collect()
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let deadline = |it: &OpenCall<T>| it.clock.map(|clock| clock.deadline());
        let more = self.more.iter().filter_map(deadline).min();
        earlier(self.first.as_ref().and_then(deadline), more)
    }
}

/// A call of ours that the peer has not answered yet.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) id: i64,
    pub(crate) ticket: Ticket,
    pub(crate) method: Method,
    pub(crate) clock: Option<Clock>,
    /// State of the role.
    pub(crate) with: T,
}

/// Our calls. Ids are never reused, which satisfies every revision.
#[derive(Debug)]
pub(crate) struct Asked<T> {
    /// By id. Most answers come in the order of the calls, and then nothing is moved.
    sent: VecDeque<Sent<T>>,
    next: i64,
    /// A moment before which no deadline of theirs passes, if one is known. An answer changes nothing about it.
    not_before: Option<Instant>,
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        Self { sent: VecDeque::new(), next: 0, not_before: None }
    }
}

impl<T> Asked<T> {
    pub(crate) fn next_id(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn add(&mut self, sent: Sent<T>) {
        let deadline = sent.deadline();
        self.not_before = match self.sent.is_empty() {
            true => deadline,
            false => self.not_before.map(|it| deadline.map_or(it, |other| it.min(other))),
        };
        match self.sent.back() {
            Some(last) if last.id > sent.id => {
                let at = self.sent.partition_point(|it| it.id < sent.id);
                self.sent.insert(at, sent);
            }
            _ => self.sent.push_back(sent),
        }
    }

    fn place(&self, id: &Id) -> Option<usize> {
        let Id::Number(id) = id else { return None };
        match self.sent.front() {
            Some(first) if first.id == *id => Some(0),
            _ => self.sent.binary_search_by_key(id, |it| it.id).ok(),
        }
    }

    /// The call, to change it, and perhaps its deadlines.
    pub(crate) fn by_id(&mut self, id: &Id) -> Option<&mut Sent<T>> {
        let at = self.place(id)?;
        self.not_before = None;
        self.sent.get_mut(at)
    }

    /// The same to look at: mostly the last one, which is about to be sent.
    #[inline]
    pub(crate) fn peek(&self, id: &Id) -> Option<&Sent<T>> {
        match (id, self.sent.back()) {
            (Id::Number(id), Some(last)) if last.id == *id => Some(last),
            _ => self.sent.get(self.place(id)?),
        }
    }

    pub(crate) fn by_ticket(&mut self, ticket: Ticket) -> Option<&mut Sent<T>> {
        self.not_before = None;
        self.sent.iter_mut().find(|it| it.ticket == ticket)
    }

    pub(crate) fn settle(&mut self, id: &Id) -> Option<Sent<T>> {
        let at = self.place(id)?;
        self.sent.remove(at)
    }

    pub(crate) fn settle_ticket(&mut self, ticket: Ticket) -> Option<Sent<T>> {
        let at = self.sent.iter().position(|it| it.ticket == ticket)?;
        self.sent.remove(at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent<T>> {
        self.not_before = None;
        self.sent.iter_mut()
    }

    pub(crate) fn clocks(&mut self) -> impl Iterator<Item = &mut Clock> {
        self.not_before = None;
        self.sent.iter_mut().filter_map(|it| it.clock.as_mut())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sent<T>> {
        self.sent.iter()
    }

    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Sent<T>> {
        self.not_before = None;
        self.extract(|it| it.clock.is_some_and(|clock| clock.deadline() <= now))
    }

    pub(crate) fn extract(&mut self, which: impl Fn(&Sent<T>) -> bool) -> Vec<Sent<T>> {
        if !self.sent.iter().any(&which) {
            return Vec::new();
        }
        let mut extracted = Vec::new();
        for it in std::mem::take(&mut self.sent) {
            match which(&it) {
                true => extracted.push(it),
                false => self.sent.push_back(it),
            }
        }
        extracted
    }

    pub(crate) fn drain(&mut self) -> Vec<Sent<T>> {
        std::mem::take(&mut self.sent).into()
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.sent.iter().filter_map(Sent::deadline).min()
    }

    /// A moment before which none of them is due, `exact` if none is known.
    pub(crate) fn not_before(
        &mut self,
        exact: impl FnOnce(&Self) -> Option<Instant>,
    ) -> Option<Instant> {
        if self.not_before.is_none() {
            self.not_before = exact(self);
        }
        self.not_before.filter(|_| !self.sent.is_empty())
    }
}

impl<T> Sent<T> {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.clock.map(|clock| clock.deadline())
    }
}

/// The earlier of two deadlines, if there are any.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Adds members to the `_meta` of some parameters. They replace existing members except those in
/// `except`.
pub(crate) fn add_meta(params: &mut Object, more: Object, except: &[&str]) {
    if more.is_empty() {
        return;
    }
    let meta = match params.get("_meta").and_then(|it| Object::parse(it.get()).ok()) {
        Some(mut meta) => {
            for (name, value) in more.iter() {
                if !except.contains(&name) || meta.get(name).is_none() {
                    meta.set(name.to_owned(), value.clone());
                }
            }
            meta
        }
        None => more,
    };
    params.set("_meta", meta.to_json());
}

/// Tells the peer that we cancel a request of ours.
pub(crate) fn cancelled(id: i64, reason: &str) -> Message {
    let mut params = Object::default();
    params.set("requestId", Json::of(&id));
    params.set("reason", Json::string(reason));
    Message::notification(Method::Cancelled, Params::Object(params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::disallowed_methods)] // A test has to begin somewhere.
    fn start() -> Instant {
        Instant::now()
    }

    fn sent(id: i64, timing: Timing, now: Instant) -> Sent<()> {
        let clock = Some(Clock::start(timing, now));
        Sent { id, ticket: Ticket(id as u64), method: Method::ToolsCall, clock, with: () }
    }

    #[test]
    fn the_deadlines_of_thousands_of_calls_are_not_looked_at_for_each_answer() {
        let (mut asked, start) = (Asked::<()>::default(), start());
        let timing = Timing { idle: Duration::from_secs(60), hard: Duration::from_secs(600) };
        let at = |id: i64| start + Duration::from_micros(id as u64);
        (1..=4_000).for_each(|id| asked.add(sent(id, timing, at(id))));
        let mut looks = 0;
        for id in 1..=100_000 {
            asked.add(sent(id + 4_000, timing, at(id + 4_000)));
            assert!(asked.settle(&Id::Number(id)).is_some());
            let bound = asked.not_before(|it| {
                looks += 1;
                it.next_timeout()
            });
            let exact = if id % 1_000 == 0 { asked.next_timeout() } else { bound };
            assert!(bound.is_some() && bound <= exact, "{id}");
        }
        assert_eq!(looks, 0);
        // The moment comes, and nothing is late yet.
        assert!(asked.expire(start + timing.idle).is_empty());
        assert_eq!(asked.not_before(Asked::next_timeout), Some(at(100_001) + timing.idle));
    }

    #[test]
    fn nothing_is_due_before_that_moment_whatever_becomes_of_the_calls() {
        let (mut asked, start) = (Asked::<()>::default(), start());
        let mut seed = 7_u64;
        for step in 0..20_000_u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (what, id) = (seed >> 60, Id::Number(1 + (seed >> 40) as i64 % 40));
            let now = start + Duration::from_millis(step);
            match what {
                0..6 => {
                    let idle = Duration::from_millis(1 + (seed >> 33) % 90);
                    let next = asked.next_id() % 40 + 1;
                    asked.settle(&Id::Number(next));
                    asked.add(sent(next, Timing { idle, hard: 3 * idle }, now));
                }
                6..10 => drop(asked.settle(&id)),
                10 => asked.clocks().for_each(Clock::hold),
                11 => asked.clocks().for_each(|it| it.resume(now)),
                12 => drop(asked.expire(now)),
                _ => asked.by_id(&id).and_then(|it| it.clock.as_mut()).into_iter().for_each(|it| {
                    it.sign_of_life(now);
                }),
            }
            let (bound, exact) = (asked.not_before(Asked::next_timeout), asked.next_timeout());
            assert!(bound.is_some() == exact.is_some() && bound <= exact, "{step}");
        }
    }
}
