//! Renders metrics as Prometheus text, or hands them to OpenTelemetry.

use std::sync::{Arc, PoisonError};
use std::time::UNIX_EPOCH;

use trunkline_wire::prometheus::Exposition;

use super::parts::{BOUNDS, Counter, Gauge, Histogram, Words};
use super::{Metrics, ServerMetrics};

pub(super) fn render(metrics: &Metrics) -> String {
    let mut page = Exposition(String::with_capacity(16 << 10));
    tell(metrics, &mut page);
    page.0
}

pub(super) fn tell(metrics: &Metrics, page: &mut impl Page) {
    page.whole(metrics);
    let servers: Vec<_> = {
        let servers = metrics.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.iter().map(|(name, it)| (Arc::clone(name), Arc::clone(it))).collect()
    };
    page.calls(&servers);
    page.pools(&servers);
}

type Servers = [(Arc<str>, Arc<ServerMetrics>)];

/// Where metrics are written.
pub(crate) trait Page {
    /// Begins a metric family; samples follow.
    fn family(&mut self, name: &str, kind: &'static str, help: &'static str);

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64);

    /// Writes a histogram, unless it is empty.
    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram);

    /// The metrics that belong to no server.
    fn whole(&mut self, it: &Metrics) {
        self.family("build_info", "gauge", "The running version.");
        self.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let begun = it.begun.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let now = |gauge: &Gauge| gauge.get() as f64;
        let all = |counter: &Counter| counter.get() as f64;
        let (reloads, failed) =
            ("Successful reloads of the catalog.", "Failed reloads of the catalog.");
        let changed = "Servers whose plan a reload changed.";
        let dropped = "Progress and log messages dropped because their caller did not read.";
        for (name, kind, help, value) in [
            (
                "start_time_seconds",
                GAUGE,
                "Start time of the gateway, in seconds since 1970.",
                begun,
            ),
            ("clients", GAUGE, "Connected clients.", now(&it.clients)),
            ("parked_calls", GAUGE, "Calls that wait for their caller's answer.", now(&it.parked)),
            ("audit_lost_total", COUNTER, "Calls that the audit lost.", now(&it.audit_lost)),
            (
                "audit_failing",
                GAUGE,
                "1 while the audit cannot be written.",
                now(&it.audit_failing),
            ),
            ("notifications_dropped_total", COUNTER, dropped, now(&it.dropped)),
            ("reload_success_total", COUNTER, reloads, all(&it.reload_success)),
            ("reload_failure_total", COUNTER, failed, all(&it.reload_failure)),
            ("reload_restart_total", COUNTER, changed, all(&it.reload_restarts)),
        ] {
            self.family(name, kind, help);
            self.sample(name, &[], value);
        }
        let refused = "Requests refused at the door, by status.";
        for (name, help, label, words) in [
            ("governance_rejections_total", "Calls that policy refused.", "reason", &it.rejections),
            ("door_refusals_total", refused, "status", &it.refusals),
            ("otel_spans_total", "Spans for the collector, by result.", "result", &it.spans),
        ] {
            self.family(name, COUNTER, help);
            words.each(|word, count| self.sample(name, &[(label, word)], count as f64));
        }
        let name = "governance_call_duration_seconds";
        self.family(name, HISTOGRAM, "How long a plugin takes for a call.");
        let plugins = it.plugins.read().unwrap_or_else(PoisonError::into_inner);
        for (plugin, histogram) in plugins.iter() {
            self.histogram(name, &[("plugin", plugin)], histogram);
        }
        let name = "search_duration_seconds";
        self.family(name, HISTOGRAM, "How long searches for tools take.");
        self.histogram(name, &[], &it.searches);
    }

    /// The calls of each server.
    fn calls(&mut self, servers: &Servers) {
        let name = "route_duration_seconds";
        self.family(name, HISTOGRAM, "Duration of calls, as the gateway sees them.");
        for (server, it) in servers {
            it.each_call(|method, outcome, histogram| {
                let labels =
                    [("server", &**server), ("method", method), ("outcome", outcome.word())];
                self.histogram(name, &labels, histogram);
            });
        }
        let name = "pool_capacity_ratio";
        self.family(name, GAUGE, "Share of the pool's capacity in use.");
        for (server, it) in servers {
            let capacity = it.capacity.get();
            if capacity > 0 {
                let ratio = it.in_flight.get() as f64 / capacity as f64;
                self.sample(name, &[("server", server)], ratio);
            }
        }
    }

    /// The pool of each server and its instances.
    fn pools(&mut self, servers: &Servers) {
        for (name, help, of) in HISTOGRAMS {
            self.family(name, HISTOGRAM, help);
            for (server, it) in servers {
                self.histogram(name, &[("server", server)], of(it));
            }
        }
        for (name, kind, help, of) in NUMBERS {
            self.family(name, kind, help);
            for (server, it) in servers {
                self.sample(name, &[("server", server)], of(it) as f64);
            }
        }
        for (name, help, label, of) in WORDS {
            self.family(name, COUNTER, help);
            for (server, it) in servers {
                of(it).each(|word, count| {
                    self.sample(name, &[("server", server), (label, word)], count as f64);
                });
            }
        }
    }
}

impl Page for Exposition {
    fn family(&mut self, name: &str, kind: &'static str, help: &'static str) {
        Self::family(self, format_args!("{PREFIX}{name}"), kind, help);
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        Self::sample(self, format_args!("{PREFIX}{name}"), labels, value);
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let (counts, all) = histogram.counts();
        if all > 0 {
            let buckets = BOUNDS.into_iter().map(|it| it as f64 / 1e6).zip(counts);
            let name = format_args!("{PREFIX}{name}");
            Self::histogram(self, name, labels, buckets, all, histogram.seconds());
        }
    }
}

const PREFIX: &str = "trunkline_";
const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";
const HISTOGRAM: &str = "histogram";

type HistogramOf = fn(&ServerMetrics) -> &Histogram;
type NumberOf = fn(&ServerMetrics) -> u64;
type WordsOf = fn(&ServerMetrics) -> &Words;

/// Durations of a server: the name, the help, and the histogram.
const HISTOGRAMS: [(&str, &str, HistogramOf); 2] = [
    ("pool_wait_seconds", "How long calls wait for a free instance.", |it| &it.waits),
    (STARTS, "Duration of successful starts.", |it| &it.start_durations),
];
const STARTS: &str = "instance_start_duration_seconds";

/// Numbers of a server: the name, the kind, the help, and the value.
const NUMBERS: [(&str, &str, &str, NumberOf); 6] = [
    ("inflight_routes", GAUGE, IN_FLIGHT, |it| it.in_flight.get() as u64),
    ("pool_waiters", GAUGE, "Calls that wait for an instance.", |it| it.waiters.get() as u64),
    ("instance_backoff_total", COUNTER, BACK_OFFS, |it| it.back_offs.get()),
    ("instance_suspended_total", COUNTER, SUSPENSIONS, |it| it.suspensions.get()),
    ("instance_starting", GAUGE, "Instances that are starting.", |it| it.starting.get() as u64),
    ("active_instances", GAUGE, "Running instances.", |it| it.active.get() as u64),
];
const IN_FLIGHT: &str = "Calls in flight or waiting for an instance.";
const BACK_OFFS: &str = "Backoffs after failed starts.";
const SUSPENSIONS: &str = "Suspensions after failed starts, until `retry`.";

/// Counters of a server by a word: the name, the help, the label, and the counters.
const WORDS: [(&str, &str, &str, WordsOf); 4] = [
    ("pool_acquire_fail_total", REFUSED, "reason", |it| &it.acquire_failures),
    ("instance_starts_total", "Starts of instances, by cause.", "cause", |it| &it.starts),
    ("instance_start_result_total", RESULTS, "result", |it| &it.start_results),
    ("instance_stops_total", "Stopped instances, by reason.", "reason", |it| &it.stops),
];
const REFUSED: &str = "Calls that got no instance, by reason.";
const RESULTS: &str = "Starts of instances, by result.";
