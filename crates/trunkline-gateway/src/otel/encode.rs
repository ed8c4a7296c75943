//! Encodes spans and metrics as OTLP JSON.
//!
//! That is the JSON mapping of Protocol Buffers, except that ids are hex and enums are numbers. 64-bit integers
//! are strings.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::span::{Span, Value};
use crate::metrics::{BOUNDS, Histogram, Metrics, Page};

/// The body of a request to `/v1/traces`.
pub(super) fn spans(resource: &Json, spans: &[Span]) -> String {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let scoped = json!([{ "scope": scope(), "spans": spans }]);
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": scoped }] }).to_string()
}

/// The body of a request to `/v1/metrics`.
pub(super) fn numbers(resource: &Json, numbers: Numbers) -> String {
    let metrics: Vec<Json> = numbers.metrics.into_iter().filter_map(metric).collect();
    let scoped = json!([{ "scope": scope(), "metrics": metrics }]);
    json!({ "resourceMetrics": [{ "resource": resource, "scopeMetrics": scoped }] }).to_string()
}

/// The resource that sends.
pub(super) fn resource(pairs: &[(String, String)]) -> Json {
    let pairs = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    json!({ "attributes": attributes(pairs) })
}

/// String attributes.
fn attributes<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Json {
    let pair = |(key, value)| json!({ "key": key, "value": { "stringValue": value } });
    pairs.into_iter().map(pair).collect()
}

fn span(span: &Span) -> Json {
    let attributes = span.attributes.iter().map(|(key, value)| {
        let value = match value {
            Value::Text(text) => json!({ "stringValue": text }),
            Value::Shared(text) => json!({ "stringValue": &**text }),
            Value::Int(number) => json!({ "intValue": number.to_string() }),
        };
        json!({ "key": key, "value": value })
    });
    let context = &span.context;
    let remote = if span.is_remote { IS_REMOTE } else { 0 };
    let mut it = json!({
        "traceId": context.trace_id(),
        "spanId": format!("{:016x}", context.span),
        "flags": u32::from(context.flags) | KNOWS_REMOTE | remote,
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
    });
    if let Some(state) = &context.state {
        it["traceState"] = json!(&**state);
    }
    if let Some(parent) = span.parent {
        it["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if span.is_failed {
        it["status"] = json!({ "code": FAILED });
    }
    it
}

/// The metrics of one moment.
pub(super) struct Numbers {
    begun: String,
    now: String,
    metrics: Vec<Metric>,
}

struct Metric {
    name: String,
    unit: &'static str,
    help: &'static str,
    kind: &'static str,
    points: Vec<Json>,
}

impl Numbers {
    /// All metrics of a gateway.
    pub(super) fn of(metrics: &Metrics) -> Self {
        let mut numbers = Self::new(metrics.begun(), SystemTime::now());
        metrics.tell(&mut numbers);
        numbers
    }

    pub(super) fn new(begun: SystemTime, now: SystemTime) -> Self {
        Self { begun: nanos(begun), now: nanos(now), metrics: Vec::new() }
    }

    /// Begins a metric; its points follow. The name is the Prometheus name without the suffixes that a
    /// translation adds; the kind is `counter`, `gauge` or `histogram`.
    pub(super) fn begin(&mut self, name: &str, kind: &'static str, help: &'static str) {
        let name = name.strip_suffix("_total").unwrap_or(name);
        let (name, unit) = match name.strip_suffix("_seconds") {
            Some(name) => (name, "s"),
            None => (name, ""),
        };
        let name = format!("trunkline.{name}");
        self.metrics.push(Metric { name, unit, help, kind, points: Vec::new() });
    }

    pub(super) fn point(&mut self, labels: &[(&str, &str)], value: f64) {
        let Some(metric) = self.metrics.last_mut() else { return };
        let mut point = json!({
            "attributes": attributes(labels.iter().copied()),
            "timeUnixNano": self.now,
        });
        if metric.kind == "counter" {
            point["startTimeUnixNano"] = json!(self.begun);
            point["asInt"] = json!((value as u64).to_string());
        } else {
            point["asDouble"] = json!(value);
        }
        metric.points.push(point);
    }

    /// The count of each bucket, with one bound fewer than buckets, and the sum.
    pub(super) fn distribution(
        &mut self,
        labels: &[(&str, &str)],
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) {
        let Some(metric) = self.metrics.last_mut() else { return };
        metric.points.push(json!({
            "attributes": attributes(labels.iter().copied()),
            "startTimeUnixNano": self.begun,
            "timeUnixNano": self.now,
            "count": counts.iter().sum::<u64>().to_string(),
            "sum": sum,
            "bucketCounts": counts.iter().map(u64::to_string).collect::<Vec<_>>(),
            "explicitBounds": bounds,
        }));
    }
}

/// An empty metric is left out.
fn metric(metric: Metric) -> Option<Json> {
    let Metric { name, unit, help, kind, points } = metric;
    if points.is_empty() {
        return None;
    }
    let mut it = json!({ "name": name, "unit": unit, "description": help });
    match kind {
        "counter" => {
            it["sum"] = json!({
                "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points,
            });
        }
        "histogram" => {
            it["histogram"] = json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points });
        }
        _ => it["gauge"] = json!({ "dataPoints": points }),
    }
    Some(it)
}

fn scope() -> Json {
    json!({ "name": "trunkline-gateway", "version": env!("CARGO_PKG_VERSION") })
}

fn nanos(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// Span flags: whether the next flag is known, and whether the parent is remote.
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
/// The status code of a failure.
const FAILED: u8 = 2;
impl Page for Numbers {
    fn family(&mut self, name: &str, kind: &'static str, help: &'static str) {
        self.begin(name, kind, help);
    }

    fn sample(&mut self, _: &str, labels: &[(&str, &str)], value: f64) {
        self.point(labels, value);
    }

    fn histogram(&mut self, _: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let (counts, all) = histogram.counts();
        if all == 0 {
            return;
        }
        // OTLP buckets are not cumulative.
        let mut before = 0;
        let mut own = |count: u64| count - std::mem::replace(&mut before, count);
        let counts: Vec<u64> = counts.into_iter().chain([all]).map(&mut own).collect();
        let bounds = BOUNDS.map(|it| it as f64 / 1e6);
        self.distribution(labels, &bounds, &counts, histogram.seconds());
    }
}

/// Aggregation temporality: cumulative since the gateway's start.
const CUMULATIVE: u8 = 2;
