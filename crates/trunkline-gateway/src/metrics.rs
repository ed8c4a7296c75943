//! What happens → numbers that Prometheus reads.
//!
//! Everything is an atomic that was made once: after the first call of a kind, counting it takes no
//! lock that others wait for and no allocation. No label is made of what a client sent: servers and
//! plugins come from the catalog, methods and outcomes from lists, reasons from our own words. Where
//! there are too many all the same, the rest is `other`.

mod parts;
mod render;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use trunkline_wire::method::TABLE;
pub use trunkline_wire::prometheus::samples;

pub use crate::outcome::Outcome;
use crate::pool::{Cause, Event, PoolStatus, Why};

pub(crate) use parts::{BOUNDS, Histogram};
use parts::{Counter, Gauge, Words};
pub(crate) use render::Page;

/// All numbers of one gateway.
#[derive(Debug)]
pub struct Metrics {
    begun: SystemTime,
    servers: RwLock<BTreeMap<Arc<str>, Arc<ServerMetrics>>>,
    /// How long plugins take, by their names.
    plugins: RwLock<BTreeMap<Arc<str>, Arc<Histogram>>>,
    rejections: Words,
    refusals: Words,
    spans: Words,
    reload_success: Counter,
    reload_failure: Counter,
    reload_restarts: Counter,
    clients: Gauge,
    parked: Gauge,
    audit_lost: Gauge,
    audit_failing: Gauge,
    dropped: Gauge,
    searches: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            begun: SystemTime::now(),
            servers: RwLock::default(),
            plugins: RwLock::default(),
            rejections: Words::default(),
            refusals: Words::default(),
            spans: Words::default(),
            reload_success: Counter::default(),
            reload_failure: Counter::default(),
            reload_restarts: Counter::default(),
            clients: Gauge::default(),
            parked: Gauge::default(),
            audit_lost: Gauge::default(),
            audit_failing: Gauge::default(),
            dropped: Gauge::default(),
            searches: Histogram::default(),
        }
    }
}

impl Metrics {
    /// The numbers of a server. Whoever has much to count keeps them.
    pub fn server(&self, name: &str) -> Arc<ServerMetrics> {
        named(&self.servers, name, SERVERS)
    }

    /// A server is no longer in the catalog.
    pub fn forget(&self, server: &str) {
        self.servers.write().unwrap_or_else(PoisonError::into_inner).remove(server);
    }

    /// A call to a server is over.
    pub fn call_finished(&self, server: &str, method: &str, outcome: Outcome, took: Duration) {
        self.server(server).call_finished(method, outcome, took);
    }

    /// Something was refused: by a rule, a rate, a plugin, or because it is held back.
    pub fn rejected(&self, reason: &'static str) {
        self.rejections.of(reason).add(1);
    }

    /// Somebody was not let in.
    pub fn refused(&self, status: u16) {
        let word = if status == 401 { "401" } else { "403" };
        self.refusals.of(word).add(1);
    }

    /// A plugin has looked at a call.
    pub fn plugin_asked(&self, plugin: &str, took: Duration) {
        named(&self.plugins, plugin, PLUGINS).note(took);
    }

    /// The catalog was read anew and taken over; so many servers have another plan now.
    pub fn reloaded(&self, restarted: usize) {
        self.reload_success.add(1);
        self.reload_restarts.add(restarted as u64);
    }

    /// The catalog was read anew and not taken over.
    pub fn reload_failed(&self) {
        self.reload_failure.add(1);
    }

    /// How many calls the audit has not noted, and whether it cannot be written just now.
    pub fn audit(&self, lost: u64, is_failing: bool) {
        self.audit_lost.set(lost as usize);
        self.audit_failing.set(usize::from(is_failing));
    }

    /// How many clients there are just now, how many calls wait for their caller's answer, and how many
    /// notifications were ever dropped because a caller did not read.
    pub fn now(&self, clients: usize, parked: usize, dropped: u64) {
        self.clients.set(clients);
        self.parked.set(parked);
        self.dropped.set(dropped as usize);
    }

    /// Tools were searched for.
    pub fn searched(&self, took: Duration) {
        self.searches.note(took);
    }

    /// So many spans were `sent`, `failed` or `dropped`.
    pub(crate) fn spans(&self, result: &'static str, count: u64) {
        self.spans.of(result).add(count);
    }

    /// When counting began.
    pub(crate) fn begun(&self) -> SystemTime {
        self.begun
    }

    /// Writes all of it onto a page.
    pub(crate) fn tell(&self, page: &mut impl Page) {
        render::tell(self, page);
    }

    /// All of it, as Prometheus reads it.
    pub fn render(&self) -> String {
        render::render(self)
    }
}

/// The numbers of one server.
#[derive(Debug)]
pub struct ServerMetrics {
    /// By method and outcome; made when there is something to note.
    calls: Box<[[OnceLock<Box<Histogram>>; OUTCOMES.len()]]>,
    in_flight: Gauge,
    waits: Histogram,
    waiters: Gauge,
    acquire_failures: Words,
    starts: Words,
    start_results: Words,
    start_durations: Histogram,
    starting: Gauge,
    back_offs: Counter,
    suspensions: Counter,
    stops: Words,
    active: Gauge,
    capacity: Gauge,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        Self {
            calls: (0..=TABLE.len()).map(|_| Default::default()).collect(),
            in_flight: Gauge::default(),
            waits: Histogram::default(),
            waiters: Gauge::default(),
            acquire_failures: Words::default(),
            starts: Words::default(),
            start_results: Words::default(),
            start_durations: Histogram::default(),
            starting: Gauge::default(),
            back_offs: Counter::default(),
            suspensions: Counter::default(),
            stops: Words::default(),
            active: Gauge::default(),
            capacity: Gauge::default(),
        }
    }
}

impl ServerMetrics {
    /// A call is over.
    pub fn call_finished(&self, method: &str, outcome: Outcome, took: Duration) {
        let of_outcome = OUTCOMES.iter().position(|it| *it == outcome).unwrap_or_default();
        self.calls[place(method)][of_outcome].get_or_init(Box::default).note(took);
    }

    /// Something happened in its pool.
    pub fn pool_event(&self, event: &Event) {
        match event {
            Event::Starting { cause, .. } => self.starts.of(cause_word(*cause)).add(1),
            Event::Started { took, .. } => {
                self.start_results.of("ok").add(1);
                self.start_durations.note(*took);
            }
            Event::StartFailed { failure, .. } => {
                self.start_results.of(failure.reason.word()).add(1)
            }
            Event::BackingOff { .. } => self.back_offs.add(1),
            Event::Suspended { .. } => self.suspensions.add(1),
            Event::Stopping { .. } => {}
            Event::Stopped { why, .. } => self.stops.of(why_word(*why)).add(1),
            Event::Waited { took, .. } => self.waits.note(*took),
            Event::Refused { reason } => self.acquire_failures.of(reason).add(1),
        }
    }

    /// How its pool is just now, and for how many calls there is room in it at most. What goes up
    /// and down is looked at when somebody asks, not counted.
    pub fn pool_status(&self, status: &PoolStatus, capacity: usize) {
        let starting = status.instances.iter().filter(|it| it.state == "starting").count();
        let in_flight: usize = status.instances.iter().map(|it| it.in_flight).sum();
        self.starting.set(starting);
        self.active.set(status.instances.len() - starting);
        self.waiters.set(status.waiters);
        self.in_flight.set(in_flight + status.waiters);
        self.capacity.set(capacity);
    }

    /// Tells of every kind of call that was noted.
    fn each_call(&self, mut tell: impl FnMut(&'static str, Outcome, &Histogram)) {
        for (row, cells) in self.calls.iter().enumerate() {
            let method = TABLE.get(row).map_or(parts::OTHER, |it| it.name);
            for (cell, outcome) in cells.iter().zip(OUTCOMES) {
                if let Some(histogram) = cell.get() {
                    tell(method, outcome, histogram);
                }
            }
        }
    }
}

fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::Call => "call",
        Cause::List => "list",
        Cause::Warm => "warm",
        Cause::AlwaysOn => "always_on",
        Cause::Subscription => "subscription",
        Cause::Retry => "retry",
    }
}

fn why_word(why: Why) -> &'static str {
    match why {
        Why::Idle => "idle",
        Why::NoClients => "no_clients",
        Why::SessionOver => "session_over",
        Why::Profile => "profile",
        Why::Owner => "owner",
        Why::Reconfigured => "reconfigured",
        Why::Closed => "closed",
        Why::Forced => "forced",
        Why::Ended => "ended",
        Why::Unwell => "unwell",
        Why::Killed => "killed",
    }
}

/// The row of a method; that of all others, if it is in no revision.
fn place(method: &str) -> usize {
    TABLE.iter().position(|it| it.name == method).unwrap_or(TABLE.len())
}

fn named<T: Default>(all: &RwLock<BTreeMap<Arc<str>, Arc<T>>>, name: &str, limit: usize) -> Arc<T> {
    if let Some(found) = all.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return Arc::clone(found);
    }
    let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
    let name = if all.len() < limit { name } else { parts::OTHER };
    Arc::clone(all.entry(name.into()).or_default())
}

const OUTCOMES: [Outcome; 9] = [
    Outcome::Ok,
    Outcome::Asked,
    Outcome::ToolError,
    Outcome::Error,
    Outcome::Refused,
    Outcome::Unavailable,
    Outcome::Unknown,
    Outcome::TimedOut,
    Outcome::Cancelled,
];
/// More than anybody has, and few enough for Prometheus.
const SERVERS: usize = 1024;
const PLUGINS: usize = 64;

#[cfg(test)]
mod tests;
