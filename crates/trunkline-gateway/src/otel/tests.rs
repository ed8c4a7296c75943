//! Expected OTLP texts written by hand, and calls that leave spans at a collector.

mod calls;

use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value as Json, json};
use trunkline_wire::json::Json as Raw;
use trunkline_wire::method::Method;

use super::context::{Context, Ids, Sampler};
use super::encode::{self, Numbers};
use super::settings::OtelSettings;
use super::span::{Kind, Span, Value};
use crate::metrics::{Metrics, Outcome};

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn sent(meta: &Json) -> Option<Context> {
    Context::of_meta(Some(&Raw::of(meta)))
}

#[test]
fn a_span_is_written_as_otlp_has_it() {
    let context = sent(&json!({ "traceparent": GOOD, "tracestate": "rojo=1" })).unwrap();
    let span = Span {
        context,
        parent: Some(0xb7),
        is_remote: true,
        kind: Kind::Server,
        name: "tools/call book".to_owned(),
        start: 1_544_712_660_000_000_000,
        end: 1_544_712_661_000_000_000,
        attributes: vec![
            ("mcp.method.name", Value::Text("tools/call".into())),
            ("trunkline.server", Value::Shared("travel".into())),
            ("trunkline.instance", Value::Int(7)),
        ],
        is_failed: true,
    };
    let resource = encode::resource(&[("service.name".to_owned(), "gate".to_owned())]);
    let text = encode::spans(&resource, &[span]);
    let expected = json!({ "resourceSpans": [{
        "resource": { "attributes": [
            { "key": "service.name", "value": { "stringValue": "gate" } },
        ] },
        "scopeSpans": [{
            "scope": { "name": "trunkline-gateway", "version": env!("CARGO_PKG_VERSION") },
            "spans": [{
                "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                "spanId": "00f067aa0ba902b7",
                "parentSpanId": "00000000000000b7",
                "traceState": "rojo=1",
                "flags": 0x301,
                "name": "tools/call book",
                "kind": 2,
                "startTimeUnixNano": "1544712660000000000",
                "endTimeUnixNano": "1544712661000000000",
                "attributes": [
                    { "key": "mcp.method.name", "value": { "stringValue": "tools/call" } },
                    { "key": "trunkline.server", "value": { "stringValue": "travel" } },
                    { "key": "trunkline.instance", "value": { "intValue": "7" } },
                ],
                "status": { "code": 2 },
            }],
        }],
    }] });
    assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), expected);
}

#[test]
fn numbers_are_written_as_otlp_has_them() {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let mut numbers = Numbers::new(at(10), at(70));
    numbers.begin("stops_total", "counter", "Stops.");
    numbers.point(&[("why", "idle")], 3.0);
    numbers.begin("clients", "gauge", "Clients.");
    numbers.point(&[], 2.0);
    numbers.begin("wait_seconds", "histogram", "Waits.");
    numbers.distribution(&[], &[0.5, 1.0], &[1, 0, 2], 9.25);
    numbers.begin("nothing", "gauge", "Of this there is none.");
    let text = encode::numbers(&encode::resource(&[]), numbers);
    let expected = json!([
        { "name": "trunkline.stops", "unit": "", "description": "Stops.", "sum": {
            "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{
                "attributes": [{ "key": "why", "value": { "stringValue": "idle" } }],
                "startTimeUnixNano": "10000000000", "timeUnixNano": "70000000000", "asInt": "3",
            }],
        } },
        { "name": "trunkline.clients", "unit": "", "description": "Clients.", "gauge": {
            "dataPoints": [
                { "attributes": [], "timeUnixNano": "70000000000", "asDouble": 2.0 },
            ],
        } },
        { "name": "trunkline.wait", "unit": "s", "description": "Waits.", "histogram": {
            "aggregationTemporality": 2, "dataPoints": [{
                "attributes": [],
                "startTimeUnixNano": "10000000000", "timeUnixNano": "70000000000",
                "count": "3", "sum": 9.25,
                "bucketCounts": ["1", "0", "2"], "explicitBounds": [0.5, 1.0],
            }],
        } },
    ]);
    let told: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(told["resourceMetrics"][0]["scopeMetrics"][0]["metrics"], expected);
}

#[test]
fn the_numbers_of_prometheus_are_those_of_otlp() {
    let metrics = Metrics::default();
    for ms in [1, 1, 40, 90_000] {
        metrics.call_finished(
            "time",
            Some(Method::ToolsCall),
            Outcome::Ok,
            (Instant::now(), Duration::from_millis(ms)),
        );
    }
    metrics.spans("sent", 5);
    let text = encode::numbers(&encode::resource(&[]), Numbers::of(&metrics));
    let told: Json = serde_json::from_str(&text).unwrap();
    let all = told["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let find = |name: &str| all.iter().find(|it| it["name"] == name).unwrap();
    let route = &find("trunkline.route_duration")["histogram"]["dataPoints"][0];
    let (counts, bounds) = (&route["bucketCounts"], &route["explicitBounds"]);
    assert_eq!(counts.as_array().unwrap().len(), bounds.as_array().unwrap().len() + 1);
    let filled: Vec<_> = counts.as_array().unwrap().iter().filter(|it| *it != "0").collect();
    assert_eq!(route["count"], "4");
    assert_eq!(filled, ["2", "1", "1"]);
    assert_eq!(find("trunkline.otel_spans")["sum"]["dataPoints"][0]["asInt"], "5");
    assert!(metrics.render().contains("trunkline_otel_spans_total{result=\"sent\"} 5\n"));
}

#[test]
fn an_invalid_traceparent_counts_as_absent() {
    for bad in [
        "",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0é",
    ] {
        assert_eq!(sent(&json!({ "traceparent": bad })), None, "{bad}");
    }
    assert_eq!(sent(&json!({ "other": 1 })), None);
    let later = GOOD.replacen("00", "01", 1) + "-more";
    assert_eq!(sent(&json!({ "traceparent": later })), sent(&json!({ "traceparent": GOOD })));
}

#[test]
fn a_server_gets_our_span_and_the_rest_of_meta_unchanged() {
    let mut context = sent(&json!({ "traceparent": GOOD, "tracestate": "rojo=1" })).unwrap();
    context.span = 5;
    let meta = json!({ "traceparent": GOOD, "tracestate": "rojo=1", "baggage": "a=1" });
    let ours = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000005-01";
    let told: Json = context.within(Some(Raw::of(&meta))).to().unwrap();
    assert_eq!(told, json!({ "traceparent": ours, "tracestate": "rojo=1", "baggage": "a=1" }));
    // A state without a trace is not passed on.
    context.state = None;
    let told: Json = context.within(Some(Raw::of(&meta))).to().unwrap();
    assert_eq!(told, json!({ "traceparent": ours, "baggage": "a=1" }));
    assert_eq!(context.within(None).to::<Json>().unwrap(), json!({ "traceparent": ours }));
}

#[test]
fn a_part_of_the_traces_is_recorded() {
    let ids = Ids::new();
    let count = |sampler: Sampler, has_parent: bool, flags: u8| {
        let draw = || Context { flags, ..ids.begin() };
        (0..4000).filter(|_| sampler.samples(&draw(), has_parent)).count()
    };
    let quarter = Sampler { heeds_parent: true, ratio: 0.25 };
    let found = count(quarter, false, 0);
    assert!((800..1200).contains(&found), "{found}");
    assert_eq!((count(quarter, true, 1), count(quarter, true, 0)), (4000, 0));
    for (ratio, all) in [(0.0, 0), (1.0, 4000)] {
        assert_eq!(count(Sampler { heeds_parent: false, ratio }, true, 1 - ratio as u8), all);
    }
}

fn from(said: &[(&str, &str)]) -> (Option<OtelSettings>, Vec<String>) {
    let find = |name: &str| said.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
    OtelSettings::from_env(find)
}

#[test]
fn the_environment_says_where_to() {
    let (settings, warnings) = from(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://numbers.example/otlp"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret, x-team = a%3Db"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=test"),
        ("OTEL_SERVICE_NAME", "gate"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
    ]);
    let settings = settings.unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(settings.traces.as_deref(), Some("http://127.0.0.1:4318/v1/traces"));
    assert_eq!(settings.metrics.as_deref(), Some("https://numbers.example/otlp"));
    let text = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
    };
    assert_eq!(settings.headers, text(&[("authorization", "Bearer s3cret"), ("x-team", "a=b")]));
    let version = ("service.version", env!("CARGO_PKG_VERSION"));
    let place = ("deployment.environment.name", "test");
    assert_eq!(settings.resource, text(&[("service.name", "gate"), place, version]));
    assert_eq!(settings.sampler, Sampler { heeds_parent: true, ratio: 0.5 });
    assert!(!format!("{settings:?}").contains("s3cret"));
}

#[test]
fn unsupported_settings_are_reported_and_nothing_is_exported() {
    let at = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    assert_eq!(from(&[]), (None, vec![]));
    assert_eq!(from(&[at, ("OTEL_SDK_DISABLED", "true")]), (None, vec![]));
    let none = [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
    assert_eq!(from(&[at, none[0], none[1]]), (None, vec![]));
    let (settings, _) = from(&[at, none[1]]);
    assert_eq!(settings.unwrap().metrics, None);
    let (settings, warnings) = from(&[at, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert_eq!((settings, warnings.len()), (None, 2));
    let (settings, warnings) = from(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]);
    assert_eq!((settings, warnings.len()), (None, 2));
    let (settings, warnings) = from(&[
        at,
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "much"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret"),
    ]);
    assert_eq!(settings.unwrap().sampler, Sampler { heeds_parent: true, ratio: 1.0 });
    assert_eq!(warnings.len(), 3, "{warnings:#?}");
    assert!(!warnings.join(" ").contains("s3cret"));
}
