//! Operations → histograms of their durations in the Prometheus text format.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use trunkline_wire::method::Method;
use trunkline_wire::prometheus::Exposition;
use trunkline_wire::revision::Revision;

use super::{ErrorType, Meter, OTHER, Operation, Role, Transport};

/// Counts operations and their durations: the two histograms of the OpenTelemetry conventions,
/// `mcp.server.operation.duration` and `mcp.client.operation.duration`, with their buckets. Clones
/// share their counts.
///
/// The number of histograms is bounded, however many names clients invent.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use trunkline::{Server, observe::Metrics, server::bind};
///
/// let metrics = Metrics::new();
/// let server = Server::builder("example", "1.0.0").meter(metrics.clone()).build();
/// let http = server.http().page("/metrics", move || metrics.render());
/// http.serve(bind("127.0.0.1:8080").await?, std::future::pending()).await
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// By tool or prompt, so that a lookup need not copy the name.
    targets: HashMap<Box<str>, Vec<(Labels, Histogram)>>,
    histograms: usize,
}

/// The labels of a histogram, besides the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    role: Role,
    method: &'static str,
    error: Option<ErrorType>,
    revision: Revision,
    transport: Option<Transport>,
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    /// One per bound, and one for everything above the last.
    buckets: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Metrics {
    /// Nothing counted yet.
    ///
    /// ```
    /// assert_eq!(trunkline::observe::Metrics::new().render(), "");
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// All counts so far, in the Prometheus text format. The names are those of the conventions
    /// with `_` for `.`.
    pub fn render(&self) -> String {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = table.targets.iter();
        let all = all.flat_map(|(target, all)| all.iter().map(move |it| (&**target, it)));
        let mut all: Vec<_> = all.map(|(target, (labels, it))| (*labels, target, it)).collect();
        all.sort_unstable_by_key(|(labels, target, _)| (*labels, *target));
        let mut text = Exposition::default();
        let mut last = None;
        for (labels, target, histogram) in all {
            if last.replace(labels.role) != Some(labels.role) {
                text.family(name(labels.role), "histogram", about(labels.role));
            }
            histogram.write(&mut text, labels, target);
        }
        text.0
    }
}

impl Meter for Metrics {
    fn operation(&self, operation: &Operation<'_>) {
        let labels = Labels {
            role: operation.role,
            method: operation.method,
            error: operation.error,
            revision: operation.revision,
            transport: operation.transport,
        };
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.histogram(labels, operation.target.unwrap_or_default()).add(operation.duration);
    }
}

impl Table {
    fn histogram(&mut self, mut labels: Labels, mut target: &str) -> &mut Histogram {
        let is_known = self.targets.get(target).is_some_and(|it| find(it, labels).is_some());
        let is_full = self.histograms >= MOST_HISTOGRAMS || self.targets.len() >= MOST_TARGETS;
        if !is_known && (is_full || target.len() > LONGEST_TARGET) {
            // These few always have room.
            target = if target.is_empty() { target } else { OTHER };
            labels.error = labels.error.map(|it| match it {
                ErrorType::Code(_) | ErrorType::Http(_) => ErrorType::Other,
                it => it,
            });
        }
        if !self.targets.contains_key(target) {
            self.targets.insert(target.into(), Vec::new());
        }
        let all = self.targets.get_mut(target).expect("it is there or has just been put there");
        let at = find(all, labels).unwrap_or_else(|| {
            self.histograms += 1;
            all.push((labels, Histogram::default()));
            all.len() - 1
        });
        &mut all[at].1
    }
}

fn find(all: &[(Labels, Histogram)], labels: Labels) -> Option<usize> {
    all.iter().position(|(it, _)| *it == labels)
}

impl Histogram {
    fn add(&mut self, duration: Duration) {
        let at = BOUNDS.iter().position(|it| duration.as_secs_f64() <= *it);
        self.buckets[at.unwrap_or(BOUNDS.len())] += 1;
        self.sum += duration;
    }

    fn write(&self, text: &mut Exposition, labels: Labels, target: &str) {
        let count = self.buckets.iter().sum();
        let at_most = self.buckets.iter().scan(0, |sum, bucket| {
            *sum += bucket;
            Some(*sum)
        });
        let buckets = BOUNDS.into_iter().zip(at_most);
        let written = labels.written(target);
        let written: Vec<_> = written.iter().map(|(name, value)| (*name, &**value)).collect();
        text.histogram(name(labels.role), &written, buckets, count, self.sum.as_secs_f64());
    }
}

impl Labels {
    /// Labels in the text format, with the target's.
    fn written(self, target: &str) -> Vec<(&'static str, Cow<'_, str>)> {
        let Self { method, error, revision, transport, .. } = self;
        let mut all: Vec<(_, Cow<'_, str>)> = vec![
            ("mcp_method_name", method.into()),
            ("mcp_protocol_version", revision.as_str().into()),
        ];
        match target {
            "" => {}
            prompt if method == Method::PromptsGet.name() => {
                all.push(("gen_ai_prompt_name", prompt.into()));
            }
            tool => {
                all.push(("gen_ai_operation_name", "execute_tool".into()));
                all.push(("gen_ai_tool_name", tool.into()));
            }
        }
        if let Some(transport) = transport {
            all.push(("network_transport", transport.network().into()));
            all.extend(transport.protocol().map(|it| ("network_protocol_name", it.into())));
        }
        if let Some(error) = error {
            all.push(("error_type", error.to_string().into()));
            let code = error.code().map(|it| it.to_string());
            all.extend(code.map(|it| ("rpc_response_status_code", it.into())));
        }
        all
    }
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Server => "mcp_server_operation_duration_seconds",
        Role::Client => "mcp_client_operation_duration_seconds",
    }
}

fn about(role: Role) -> &'static str {
    match role {
        Role::Server => "How long the server took to answer.",
        Role::Client => "How long the client waited for an answer.",
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Metrics").field("histograms", &table.histograms).finish()
    }
}

/// In seconds, as the conventions recommend.
const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const MOST_TARGETS: usize = 500;
const MOST_HISTOGRAMS: usize = 2000;
/// The longest target name.
const LONGEST_TARGET: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(target: &'a str, error: Option<ErrorType>, millis: u64) -> Operation<'a> {
        Operation {
            role: Role::Server,
            method: "tools/call",
            target: Some(target),
            revision: Revision::V2025_11_25,
            transport: Some(Transport::Http),
            error,
            duration: Duration::from_millis(millis),
        }
    }

    #[test]
    fn a_histogram_is_written_as_prometheus_reads_it() {
        let metrics = Metrics::new();
        for millis in [5, 10, 15, 400_000] {
            metrics.operation(&call("book", None, millis));
        }
        metrics.operation(&call("book", Some(ErrorType::Code(-32602)), 1));
        let listed = Operation {
            role: Role::Client,
            method: "tools/list",
            target: None,
            transport: None,
            ..call("", None, 40)
        };
        metrics.operation(&listed);
        let text = metrics.render();
        let lines: Vec<_> = text.lines().collect();
        let good = r#"mcp_method_name="tools/call",mcp_protocol_version="2025-11-25",gen_ai_operation_name="execute_tool",gen_ai_tool_name="book",network_transport="tcp",network_protocol_name="http""#;
        let name = "mcp_server_operation_duration_seconds";
        for expected in [
            format!("# TYPE {name} histogram"),
            format!("{name}_bucket{{{good},le=\"0.01\"}} 2"),
            format!("{name}_bucket{{{good},le=\"0.02\"}} 3"),
            format!("{name}_bucket{{{good},le=\"300\"}} 3"),
            format!("{name}_bucket{{{good},le=\"+Inf\"}} 4"),
            format!("{name}_sum{{{good}}} 400.03"),
            format!("{name}_count{{{good}}} 4"),
            format!(
                "{name}_count{{{good},error_type=\"-32602\",rpc_response_status_code=\"-32602\"}} 1"
            ),
            "# TYPE mcp_client_operation_duration_seconds histogram".to_owned(),
            r#"mcp_client_operation_duration_seconds_sum{mcp_method_name="tools/list",mcp_protocol_version="2025-11-25"} 0.04"#.to_owned(),
        ] {
            assert!(lines.contains(&&*expected), "{expected}\nis not in\n{text}");
        }
        assert_eq!(lines.iter().filter(|it| it.starts_with("# HELP")).count(), 2);
    }

    #[test]
    fn names_without_end_make_no_histograms_without_end() {
        let metrics = Metrics::new();
        for at in 0..10_000 {
            metrics.operation(&call(&format!("tool-{at}"), None, 1));
            metrics.operation(&call("book", Some(ErrorType::Code(at)), 1));
        }
        metrics.operation(&call(&"x".repeat(129), None, 1));
        let text = metrics.render();
        let counts = text.lines().filter(|it| it.contains("_count{"));
        let total: u64 =
            counts.clone().map(|it| it.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(total, 20_001);
        assert!(counts.count() <= MOST_HISTOGRAMS + 16);
        assert!(text.contains(r#"gen_ai_tool_name="_other",network"#), "{text}");
        assert!(text.contains(r#"error_type="_OTHER""#));
    }

    #[test]
    fn names_are_escaped() {
        let metrics = Metrics::new();
        metrics.operation(&call("a\"b\\c\nd", None, 1));
        assert!(metrics.render().contains(r#"gen_ai_tool_name="a\"b\\c\nd""#));
    }
}
