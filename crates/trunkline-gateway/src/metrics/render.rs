//! Renders metrics as Prometheus text, or hands them to OpenTelemetry.

use std::fmt::Write;
use std::sync::{Arc, PoisonError};
use std::time::UNIX_EPOCH;

use super::parts::{BOUNDS, Histogram};
use super::{Metrics, ServerMetrics};

pub(super) fn render(metrics: &Metrics) -> String {
    let mut page = Text(String::with_capacity(16 << 10));
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
    page.instances(&servers);
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
    fn whole(&mut self, metrics: &Metrics) {
        self.family("build_info", "gauge", "The running version.");
        self.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        self.family(
            "start_time_seconds",
            "gauge",
            "Start time of the gateway, in seconds since 1970.",
        );
        let begun = metrics.begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.sample("start_time_seconds", &[], begun.as_secs_f64());
        self.family("clients", "gauge", "Connected clients.");
        self.sample("clients", &[], metrics.clients.get() as f64);
        self.family("parked_calls", "gauge", "Calls that wait for their caller's answer.");
        self.sample("parked_calls", &[], metrics.parked.get() as f64);
        self.family("audit_lost_total", "counter", "Calls that the audit lost.");
        self.sample("audit_lost_total", &[], metrics.audit_lost.get() as f64);
        self.family("audit_failing", "gauge", "1 while the audit cannot be written.");
        self.sample("audit_failing", &[], metrics.audit_failing.get() as f64);
        self.family(
            "notifications_dropped_total",
            "counter",
            "Progress and log messages dropped because their caller did not read.",
        );
        self.sample("notifications_dropped_total", &[], metrics.dropped.get() as f64);
        self.family("reload_success_total", "counter", "Successful reloads of the catalog.");
        self.sample("reload_success_total", &[], metrics.reload_success.get() as f64);
        self.family("reload_failure_total", "counter", "Failed reloads of the catalog.");
        self.sample("reload_failure_total", &[], metrics.reload_failure.get() as f64);
        self.family("reload_restart_total", "counter", "Servers whose plan a reload changed.");
        self.sample("reload_restart_total", &[], metrics.reload_restarts.get() as f64);
        self.family("governance_rejections_total", "counter", "Calls that policy refused.");
        metrics.rejections.each(|reason, count| {
            self.sample("governance_rejections_total", &[("reason", reason)], count as f64);
        });
        self.family("door_refusals_total", "counter", "Requests refused at the door, by status.");
        metrics.refusals.each(|status, count| {
            self.sample("door_refusals_total", &[("status", status)], count as f64);
        });
        let name = "governance_call_duration_seconds";
        self.family(name, "histogram", "How long a plugin takes for a call.");
        let plugins = metrics.plugins.read().unwrap_or_else(PoisonError::into_inner);
        for (plugin, histogram) in plugins.iter() {
            self.histogram(name, &[("plugin", plugin)], histogram);
        }
        let name = "otel_spans_total";
        self.family(name, "counter", "Spans for the collector, by result.");
        metrics.spans.each(|result, count| {
            self.sample(name, &[("result", result)], count as f64);
        });
        let name = "search_duration_seconds";
        self.family(name, "histogram", "How long searches for tools take.");
        self.histogram(name, &[], &metrics.searches);
    }

    fn calls(&mut self, servers: &Servers) {
        let name = "route_duration_seconds";
        self.family(name, "histogram", "Duration of calls, as the gateway sees them.");
        for (server, it) in servers {
            it.each_call(|method, outcome, histogram| {
                let labels =
                    [("server", &**server), ("method", method), ("outcome", outcome.word())];
                self.histogram(name, &labels, histogram);
            });
        }
        self.family("inflight_routes", "gauge", "Calls in flight or waiting for an instance.");
        for (server, it) in servers {
            self.sample("inflight_routes", &[("server", server)], it.in_flight.get() as f64);
        }
    }

    fn pools(&mut self, servers: &Servers) {
        let name = "pool_wait_seconds";
        self.family(name, "histogram", "How long calls wait for a free instance.");
        for (server, it) in servers {
            self.histogram(name, &[("server", server)], &it.waits);
        }
        self.family("pool_waiters", "gauge", "Calls that wait for an instance.");
        for (server, it) in servers {
            self.sample("pool_waiters", &[("server", server)], it.waiters.get() as f64);
        }
        let name = "pool_acquire_fail_total";
        self.family(name, "counter", "Calls that got no instance, by reason.");
        for (server, it) in servers {
            it.acquire_failures.each(|reason, count| {
                self.sample(name, &[("server", server), ("reason", reason)], count as f64);
            });
        }
        let name = "pool_capacity_ratio";
        self.family(name, "gauge", "Share of the pool's capacity in use.");
        for (server, it) in servers {
            let capacity = it.capacity.get();
            if capacity > 0 {
                let ratio = it.in_flight.get() as f64 / capacity as f64;
                self.sample(name, &[("server", server)], ratio);
            }
        }
    }

    fn instances(&mut self, servers: &Servers) {
        let name = "instance_starts_total";
        self.family(name, "counter", "Starts of instances, by cause.");
        for (server, it) in servers {
            it.starts.each(|cause, count| {
                self.sample(name, &[("server", server), ("cause", cause)], count as f64);
            });
        }
        let name = "instance_start_result_total";
        self.family(name, "counter", "Starts of instances, by result.");
        for (server, it) in servers {
            it.start_results.each(|result, count| {
                self.sample(name, &[("server", server), ("result", result)], count as f64);
            });
        }
        let name = "instance_start_duration_seconds";
        self.family(name, "histogram", "Duration of successful starts.");
        for (server, it) in servers {
            self.histogram(name, &[("server", server)], &it.start_durations);
        }
        let name = "instance_backoff_total";
        self.family(name, "counter", "Backoffs after failed starts.");
        for (server, it) in servers {
            self.sample(name, &[("server", server)], it.back_offs.get() as f64);
        }
        let name = "instance_suspended_total";
        self.family(name, "counter", "Suspensions after failed starts, until `retry`.");
        for (server, it) in servers {
            self.sample(name, &[("server", server)], it.suspensions.get() as f64);
        }
        let name = "instance_stops_total";
        self.family(name, "counter", "Stopped instances, by reason.");
        for (server, it) in servers {
            it.stops.each(|why, count| {
                self.sample(name, &[("server", server), ("reason", why)], count as f64);
            });
        }
        self.family("instance_starting", "gauge", "Instances that are starting.");
        for (server, it) in servers {
            self.sample("instance_starting", &[("server", server)], it.starting.get() as f64);
        }
        self.family("active_instances", "gauge", "Running instances.");
        for (server, it) in servers {
            self.sample("active_instances", &[("server", server)], it.active.get() as f64);
        }
    }
}

struct Text(String);

impl Page for Text {
    fn family(&mut self, name: &str, kind: &'static str, help: &'static str) {
        self.write(format_args!("# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.write(format_args!("{PREFIX}{name}"));
        self.labels(labels, None);
        self.write(format_args!(" {value}\n"));
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let (counts, all) = histogram.counts();
        if all == 0 {
            return;
        }
        for (count, bound) in counts.iter().zip(BOUNDS) {
            self.bucket(name, labels, &(bound as f64 / 1e6).to_string(), *count);
        }
        self.bucket(name, labels, "+Inf", all);
        for (part, value) in [("sum", histogram.seconds().to_string()), ("count", all.to_string())]
        {
            self.write(format_args!("{PREFIX}{name}_{part}"));
            self.labels(labels, None);
            self.write(format_args!(" {value}\n"));
        }
    }
}

impl Text {
    fn bucket(&mut self, name: &str, labels: &[(&str, &str)], bound: &str, count: u64) {
        self.write(format_args!("{PREFIX}{name}_bucket"));
        self.labels(labels, Some(("le", bound)));
        self.write(format_args!(" {count}\n"));
    }

    fn labels(&mut self, labels: &[(&str, &str)], last: Option<(&str, &str)>) {
        let mut opening = '{';
        for (name, value) in labels.iter().copied().chain(last) {
            self.write(format_args!("{opening}{name}=\""));
            for letter in value.chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    letter => self.0.push(letter),
                }
            }
            self.0.push('"');
            opening = ',';
        }
        if opening == ',' {
            self.0.push('}');
        }
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string cannot fail");
    }
}

const PREFIX: &str = "trunkline_";
