//! A subscriber that records every span, and the events in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Dispatch, Event, Metadata, Subscriber};
use tracing_core::span::Current;

/// A span, as far as it was reported.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) name: &'static str,
    pub(super) target: String,
    pub(super) fields: BTreeMap<String, String>,
    pub(super) parent: Option<u64>,
    pub(super) follows: Vec<u64>,
    pub(super) events: Vec<String>,
    pub(super) entered: bool,
}

impl Seen {
    pub(super) fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }
}

/// Records every span of ours, and the events in it.
#[derive(Clone, Default)]
pub(super) struct Recorder(pub(super) Arc<Mutex<Notes>>);

#[derive(Default)]
pub(super) struct Notes {
    pub(super) spans: Vec<Seen>,
    metadata: Vec<&'static Metadata<'static>>,
    inside: Vec<u64>,
    pub(super) is_deaf: bool,
}

impl Recorder {
    /// Subscribes on this thread, where the whole test runs.
    pub(super) fn listen() -> (Self, DefaultGuard) {
        let recorder = Self::default();
        let guard = recorder.hear();
        (recorder, guard)
    }

    /// Subscribes on this thread from now on.
    ///
    /// While a process has a single subscriber, `tracing` asks only the current thread's subscriber
    /// whether a callsite is of interest, and caches the answer for all threads. A test that
    /// reaches the callsite first, on a thread without a subscriber, would cache "never". With two
    /// more permanent subscribers, all are asked.
    pub(super) fn hear(&self) -> DefaultGuard {
        static OTHERS: OnceLock<[Dispatch; 2]> = OnceLock::new();
        OTHERS
            .get_or_init(|| [Dispatch::new(IgnoringSubscriber), Dispatch::new(IgnoringSubscriber)]);
        set_default(self.clone())
    }

    pub(super) fn spans(&self, name: &str) -> Vec<(u64, Seen)> {
        let notes = self.0.lock().unwrap();
        let all = notes.spans.iter().enumerate();
        all.filter(|(_, it)| it.name == name).map(|(at, it)| (at as u64 + 1, it.clone())).collect()
    }

    /// The last span of this name.
    pub(super) fn last(&self, name: &str, method: &str) -> (u64, Seen) {
        let all = self.spans(name);
        let found = all.iter().rev().find(|(_, it)| it.get("mcp.method.name") == Some(method));
        found.unwrap_or_else(|| panic!("no `{name}` of `{method}` among {all:#?}")).clone()
    }

    pub(super) fn forget(&self) {
        self.0.lock().unwrap().spans.iter_mut().for_each(|it| it.name = "forgotten");
    }

    pub(super) fn everything(&self) -> String {
        format!("{:?}", self.0.lock().unwrap().spans)
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !self.0.lock().unwrap().is_deaf && !metadata.target().starts_with("hyper")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut notes = self.0.lock().unwrap();
        let parent = match span.is_contextual() {
            true => notes.inside.last().copied(),
            false => span.parent().map(Id::into_u64),
        };
        let metadata = span.metadata();
        let target = metadata.target().to_owned();
        let mut seen = Seen { name: metadata.name(), target, parent, ..Seen::default() };
        span.record(&mut Writer(&mut seen.fields));
        notes.spans.push(seen);
        notes.metadata.push(metadata);
        Id::from_u64(notes.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut notes = self.0.lock().unwrap();
        let at = span.into_u64() as usize - 1;
        values.record(&mut Writer(&mut notes.spans[at].fields));
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let mut notes = self.0.lock().unwrap();
        notes.spans[span.into_u64() as usize - 1].follows.push(follows.into_u64());
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Writer(&mut fields));
        let mut notes = self.0.lock().unwrap();
        if let Some(at) = notes.inside.last().copied() {
            notes.spans[at as usize - 1].events.push(format!("{fields:?}"));
        }
    }

    fn enter(&self, span: &Id) {
        let mut notes = self.0.lock().unwrap();
        notes.inside.push(span.into_u64());
        notes.spans[span.into_u64() as usize - 1].entered = true;
    }

    fn exit(&self, span: &Id) {
        let mut notes = self.0.lock().unwrap();
        assert_eq!(notes.inside.pop(), Some(span.into_u64()), "spans are left in good order");
    }

    fn current_span(&self) -> Current {
        let notes = self.0.lock().unwrap();
        match notes.inside.last() {
            Some(at) => Current::new(Id::from_u64(*at), notes.metadata[*at as usize - 1]),
            None => Current::none(),
        }
    }
}

/// A subscriber that ignores everything.
struct IgnoringSubscriber;

impl Subscriber for IgnoringSubscriber {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Writer<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Writer<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}
