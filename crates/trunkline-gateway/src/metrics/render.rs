//! Numbers → the text that Prometheus reads, or what OpenTelemetry is told.

use std::sync::{Arc, PoisonError};
use std::time::UNIX_EPOCH;

use trunkline_wire::prometheus::Exposition;

use super::parts::{BOUNDS, Histogram, Words};
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

/// Where numbers are told.
pub(crate) trait Page {
    /// What comes next is about this.
    fn family(&mut self, name: &str, kind: &'static str, help: &'static str);

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64);

    /// One that has nothing is not shown.
    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram);

    /// What belongs to no server.
    fn whole(&mut self, metrics: &Metrics) {
        self.family("build_info", "gauge", "The version that runs.");
        self.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let begun = metrics.begun.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let gauges = [
            ("start_time_seconds", "When the gateway was started, since 1970.", begun),
            ("clients", "Clients that are connected.", metrics.clients.get() as f64),
            (
                "parked_calls",
                "Calls that wait for an answer of their caller.",
                metrics.parked.get() as f64,
            ),
            (
                "audit_failing",
                "Whether the audit cannot be written: 1 if so.",
                metrics.audit_failing.get() as f64,
            ),
        ];
        let counters = [
            (
                "audit_lost_total",
                "Calls that the audit does not have.",
                metrics.audit_lost.get() as u64,
            ),
            (
                "notifications_dropped_total",
                "Progress and log messages dropped because their caller did not read.",
                metrics.dropped.get() as u64,
            ),
            (
                "reload_success_total",
                "Catalogs that were taken over.",
                metrics.reload_success.get(),
            ),
            (
                "reload_failure_total",
                "Catalogs that were not taken over.",
                metrics.reload_failure.get(),
            ),
            (
                "reload_restart_total",
                "Servers that got another plan by a reload.",
                metrics.reload_restarts.get(),
            ),
        ];
        let gauges = gauges.map(|(name, help, value)| (name, "gauge", help, value));
        let counters = counters.map(|(name, help, value)| (name, "counter", help, value as f64));
        for (name, kind, help, value) in gauges.into_iter().chain(counters) {
            self.family(name, kind, help);
            self.sample(name, &[], value);
        }
        for (name, help, label, words) in [
            (
                "governance_rejections_total",
                "Calls that policy refused.",
                "reason",
                &metrics.rejections,
            ),
            ("door_refusals_total", "Requests that were not let in.", "status", &metrics.refusals),
            (
                "otel_spans_total",
                "Spans for the collector, by what became of them.",
                "result",
                &metrics.spans,
            ),
        ] {
            self.family(name, "counter", help);
            words.each(|word, count| self.sample(name, &[(label, word)], count as f64));
        }
        let name = "governance_call_duration_seconds";
        self.family(name, "histogram", "How long plugins take over a call.");
        let plugins = metrics.plugins.read().unwrap_or_else(PoisonError::into_inner);
        for (plugin, histogram) in plugins.iter() {
            self.histogram(name, &[("plugin", plugin)], histogram);
        }
        let name = "search_duration_seconds";
        self.family(name, "histogram", "How long searches for tools take.");
        self.histogram(name, &[], &metrics.searches);
    }

    /// The calls of each server.
    fn calls(&mut self, servers: &Servers) {
        let name = "route_duration_seconds";
        self.family(name, "histogram", "How long calls take, from the door and back.");
        for (server, it) in servers {
            it.each_call(|method, outcome, histogram| {
                let labels =
                    [("server", &**server), ("method", method), ("outcome", outcome.word())];
                self.histogram(name, &labels, histogram);
            });
        }
        let name = "pool_capacity_ratio";
        self.family(name, "gauge", "Calls under way, of those that there is room for.");
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
            self.family(name, "histogram", help);
            for (server, it) in servers {
                self.histogram(name, &[("server", server)], of(it));
            }
        }
        for (name, kind, help, of) in NUMBERS {
            self.family(name, kind, help);
            for (server, it) in servers {
                self.sample(name, &[("server", server)], of(it));
            }
        }
        for (name, help, label, of) in WORDS {
            self.family(name, "counter", help);
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

/// Durations of a server: the name, what it is, and where it is kept.
const HISTOGRAMS: [(&str, &str, fn(&ServerMetrics) -> &Histogram); 2] = [
    ("pool_wait_seconds", "How long calls wait that find no free instance.", |it| &it.waits),
    ("instance_start_duration_seconds", "How long starts take that work.", |it| {
        &it.start_durations
    }),
];

/// Numbers of a server: the name, its kind, what it is, and where it is kept.
const NUMBERS: [(&str, &str, &str, fn(&ServerMetrics) -> f64); 6] = [
    ("inflight_routes", "gauge", "Calls that are under way or wait for an instance.", |it| {
        it.in_flight.get() as f64
    }),
    ("pool_waiters", "gauge", "Calls that wait for an instance.", |it| it.waiters.get() as f64),
    ("instance_backoff_total", "counter", "Pauses after starts that failed.", |it| {
        it.back_offs.get() as f64
    }),
    (
        "instance_suspended_total",
        "counter",
        "Times at which starting was given up until `retry`.",
        |it| it.suspensions.get() as f64,
    ),
    ("instance_starting", "gauge", "Instances that are being started.", |it| {
        it.starting.get() as f64
    }),
    ("active_instances", "gauge", "Instances that run.", |it| it.active.get() as f64),
];

/// Counters of a server by a word: the name, what it is, what the word is called, and where they are kept.
const WORDS: [(&str, &str, &str, fn(&ServerMetrics) -> &Words); 4] = [
    ("pool_acquire_fail_total", "Calls that got no instance.", "reason", |it| &it.acquire_failures),
    ("instance_starts_total", "Instances that were to start, by what made them.", "cause", |it| {
        &it.starts
    }),
    ("instance_start_result_total", "How starts ended.", "result", |it| &it.start_results),
    ("instance_stops_total", "Instances that are gone, by why.", "reason", |it| &it.stops),
];
