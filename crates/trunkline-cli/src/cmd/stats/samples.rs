//! The Prometheus text format → a few numbers per server.

use std::collections::BTreeMap;

use trunkline_gateway::metrics::samples;

/// The numbers of a server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Numbers {
    pub(super) calls: u64,
    /// Failed calls, whosever fault it was.
    pub(super) failed: u64,
    pub(super) not_acquired: u64,
    pub(super) starts: u64,
    pub(super) stops: u64,
    /// Cumulative counts by bucket bound, in seconds.
    buckets: Vec<(f64, u64)>,
}

impl Numbers {
    /// The duration within which this share of the calls finished.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let all = self.buckets.last()?.1;
        let enough = (all as f64 * share).ceil().max(1.0) as u64;
        self.buckets.iter().find(|it| it.1 >= enough).map(|it| it.0)
    }

    fn add_bucket(&mut self, bound: f64, count: u64) {
        match self.buckets.iter_mut().find(|it| it.0 == bound) {
            Some(bucket) => bucket.1 += count,
            None => {
                let place = self.buckets.partition_point(|it| it.0 < bound);
                self.buckets.insert(place, (bound, count));
            }
        }
    }
}

/// Parses the known metrics; skips the others.
pub(super) fn read(text: &str) -> BTreeMap<String, Numbers> {
    let mut servers: BTreeMap<String, Numbers> = BTreeMap::new();
    for sample in samples(text) {
        let (Some(server), count) = (sample.label("server"), sample.value as u64) else { continue };
        let numbers = servers.entry(server.to_owned()).or_default();
        match sample.name {
            "trunkline_route_duration_seconds_count" => {
                numbers.calls += count;
                if !matches!(sample.label("outcome"), Some("ok" | "asked")) {
                    numbers.failed += count;
                }
            }
            "trunkline_route_duration_seconds_bucket" => {
                let bound = sample.label("le");
                let bound = bound.and_then(|it| it.trim_start_matches('+').parse().ok());
                if let Some(bound) = bound {
                    numbers.add_bucket(bound, count);
                }
            }
            "trunkline_pool_acquire_fail_total" => numbers.not_acquired += count,
            "trunkline_instance_starts_total" => numbers.starts += count,
            "trunkline_instance_stops_total" => numbers.stops += count,
            _ => {}
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use trunkline_gateway::metrics::{Metrics, Outcome};
    use trunkline_gateway::pool::{Cause, Event, Why};
    use trunkline_wire::method::Method;

    use super::*;

    #[test]
    fn what_the_gateway_writes_is_read() {
        let metrics = Metrics::default();
        for n in 0..100 {
            let outcome = if n < 7 { Outcome::Unavailable } else { Outcome::Ok };
            let took = Duration::from_millis(if n < 60 { 2 } else { 40 });
            metrics.call_finished("git", Method::of("tools/call"), outcome, (Instant::now(), took));
        }
        metrics.call_finished(
            "git",
            Method::of("prompts/get"),
            Outcome::Asked,
            (Instant::now(), Duration::from_secs(100)),
        );
        let git = metrics.server("git");
        let (id, cause, took) = (1, Cause::Call, Duration::ZERO);
        git.pool_event(&Event::Starting { id, cause });
        git.pool_event(&Event::Starting { id, cause: Cause::Warm });
        git.pool_event(&Event::Stopped { id, why: Why::Idle, took });
        git.pool_event(&Event::Refused { reason: "busy" });
        metrics.server("a\"\\\n");
        let found = read(&metrics.render());
        let git = &found["git"];
        assert_eq!((git.calls, git.failed, git.not_acquired), (101, 7, 1));
        assert_eq!((git.starts, git.stops), (2, 1));
        assert_eq!((git.quantile(0.5), git.quantile(0.95)), (Some(0.0025), Some(0.05)));
        assert_eq!(git.quantile(1.0), Some(f64::INFINITY));
        assert_eq!((found["a\"\\\n"].quantile(0.5), found.len()), (None, 2));
    }

    #[test]
    fn what_is_no_sample_is_passed_over() {
        for line in ["", "# HELP x y", "x 1", "x{a=\"b} 1", "x{a=\"b\"} many", "x{", "x{a=\"\\"] {
            assert!(read(line).is_empty(), "{line}");
        }
    }
}
