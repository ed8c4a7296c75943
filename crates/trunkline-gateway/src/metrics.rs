//! Counts events as Prometheus metrics.
//!
//! Every metric is an atomic created once: after the first event of a kind, counting takes no contended lock
//! and no allocation. Labels never hold client input: servers and plugins come from the catalog, methods and
//! outcomes from tables, reasons from our own words. Beyond a bound, the rest is counted as `other`.

mod parts;
mod rates;
mod render;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use trunkline_wire::method::{Method, TABLE};
pub use trunkline_wire::prometheus::samples;

pub use crate::outcome::Outcome;
use crate::pool::{Cause, Event, PoolStatus, Why};

pub(crate) use parts::{BOUNDS, Histogram};
use parts::{Counter, Gauge, Words};
use rates::Rates;
pub(crate) use rates::STEP;
pub(crate) use render::Page;

/// All metrics of one gateway.
#[derive(Debug)]
pub struct Metrics {
    begun: SystemTime,
    servers: RwLock<BTreeMap<Arc<str>, Arc<ServerMetrics>>>,
    /// Durations of plugins, by name.
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
    /// The metrics of a server. Frequent users keep the handle.
    pub fn server(&self, name: &str) -> Arc<ServerMetrics> {
        named(&self.servers, name, SERVERS)
    }

    /// Drops the metrics of a server that left the catalog.
    pub fn forget(&self, server: &str) {
        self.servers.write().unwrap_or_else(PoisonError::into_inner).remove(server);
    }

    /// Counts a call that finished at this moment, after so long.
    pub fn call_finished(
        &self,
        server: &str,
        method: Option<Method>,
        outcome: Outcome,
        ends: (Instant, Duration),
    ) {
        // Counted where they are: most servers are known, and nobody keeps this handle.
        if let Some(known) = self.servers.read().unwrap_or_else(PoisonError::into_inner).get(server)
        {
            return known.call_finished(method, outcome, ends);
        }
        self.server(server).call_finished(method, outcome, ends);
    }

    /// How often a server was called lately, and how long that took.
    pub(crate) fn rates(&self, server: &str, now: Instant) -> serde_json::Value {
        let known =
            self.servers.read().unwrap_or_else(PoisonError::into_inner).get(server).cloned();
        match known {
            Some(known) => known.rates().show(now),
            None => Rates::default().show(now),
        }
    }

    /// Counts a refusal: by a rule, a rate limit, a plugin, or because the target is held back.
    pub fn rejected(&self, reason: &'static str) {
        self.rejections.of(reason).add(1);
    }

    /// Counts a client that was refused.
    pub fn refused(&self, status: u16) {
        let word = if status == 401 { "401" } else { "403" };
        self.refusals.of(word).add(1);
    }

    /// Records how long a plugin took for a call.
    pub fn plugin_asked(&self, plugin: &str, took: Duration) {
        named(&self.plugins, plugin, PLUGINS).note(took);
    }

    /// Counts a successful reload, and the servers whose plan changed.
    pub fn reloaded(&self, restarted: usize) {
        self.reload_success.add(1);
        self.reload_restarts.add(restarted as u64);
    }

    /// Counts a failed reload.
    pub fn reload_failed(&self) {
        self.reload_failure.add(1);
    }

    /// Sets how many calls the audit lost, and whether writing it fails now.
    pub fn audit(&self, lost: u64, is_failing: bool) {
        self.audit_lost.set(lost as usize);
        self.audit_failing.set(usize::from(is_failing));
    }

    /// Sets how many clients are connected, how many calls are parked, and how many notifications were dropped
    /// in all because a caller did not read.
    pub fn now(&self, clients: usize, parked: usize, dropped: u64) {
        self.clients.set(clients);
        self.parked.set(parked);
        self.dropped.set(dropped as usize);
    }

    /// Records a search for tools.
    pub fn searched(&self, took: Duration) {
        self.searches.note(took);
    }

    /// Counts spans that were `sent`, `failed` or `dropped`.
    pub(crate) fn spans(&self, result: &'static str, count: u64) {
        self.spans.of(result).add(count);
    }

    /// When counting began.
    pub(crate) fn begun(&self) -> SystemTime {
        self.begun
    }

    /// Writes all metrics to a page.
    pub(crate) fn tell(&self, page: &mut impl Page) {
        render::tell(self, page);
    }

    /// All metrics in the Prometheus text format.
    pub fn render(&self) -> String {
        render::render(self)
    }
}

/// The metrics of one server.
#[derive(Debug)]
pub struct ServerMetrics {
    /// By method and outcome; created on first use.
    calls: Box<[[OnceLock<Box<Histogram>>; OUTCOMES.len()]]>,
    /// The calls of the last minutes.
    rates: Mutex<Rates>,
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
            rates: Mutex::default(),
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
    /// Counts a call that finished at this moment, after so long; of a method that no revision has, if it is `None`.
    #[inline]
    pub fn call_finished(
        &self,
        method: Option<Method>,
        outcome: Outcome,
        (at, took): (Instant, Duration),
    ) {
        let calls = &self.calls[method.map_or(TABLE.len(), |it| it as usize)];
        let micros = calls[outcome as usize].get_or_init(Box::default).note_micros(took);
        self.rates().note(at, micros, outcome.is_failure());
    }

    fn rates(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event of its pool.
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

    /// Sets the gauges of its pool, and the number of calls it has room for. Gauges are sampled on scrape, not
    /// counted.
    pub fn pool_status(&self, status: &PoolStatus, capacity: usize) {
        let starting = status.instances.iter().filter(|it| it.state == "starting").count();
        let in_flight: usize = status.instances.iter().map(|it| it.in_flight).sum();
        self.starting.set(starting);
        self.active.set(status.instances.len() - starting);
        self.waiters.set(status.waiters);
        self.in_flight.set(in_flight + status.waiters);
        self.capacity.set(capacity);
    }

    /// Visits every histogram of calls that was used.
    fn each_call(&self, mut tell: impl FnMut(&'static str, Outcome, &Histogram)) {
        for (row, cells) in self.calls.iter().enumerate() {
            let method = TABLE.iter().find(|it| it.method as usize == row);
            let method = method.map_or(parts::OTHER, |it| it.name);
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

fn named<T: Default>(all: &RwLock<BTreeMap<Arc<str>, Arc<T>>>, name: &str, limit: usize) -> Arc<T> {
    if let Some(found) = all.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return Arc::clone(found);
    }
    let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
    let name = if all.len() < limit { name } else { parts::OTHER };
    Arc::clone(all.entry(name.into()).or_default())
}

/// All outcomes, in the order in which they are declared.
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
/// Bounds of cardinality: more than a gateway has, and few enough for Prometheus.
const SERVERS: usize = 1024;
const PLUGINS: usize = 64;

#[cfg(test)]
mod tests;
