//! Reads OpenTelemetry's environment variables into exporter settings.

use std::fmt;

use super::Sampler;

/// Where spans and metrics are sent, and the resource that sends them.
#[derive(Clone, PartialEq)]
pub struct OtelSettings {
    /// The URL for spans; `None` to export none.
    pub traces: Option<String>,
    /// The URL for metrics; `None` to export none.
    pub metrics: Option<String>,
    /// Sent with every request.
    pub headers: Vec<(String, String)>,
    /// The resource attributes: `service.name` and others.
    pub resource: Vec<(String, String)>,
    /// Trusted certificates in PEM, beside the public roots.
    pub certificates: Vec<Vec<u8>>,
    pub(crate) sampler: Sampler,
}

impl OtelSettings {
    /// Exports everything to the collector at `endpoint`, such as `http://127.0.0.1:4318`.
    pub fn new(endpoint: &str) -> Self {
        let at = |path| Some(format!("{}/{path}", endpoint.trim_end_matches('/')));
        Self {
            traces: at("v1/traces"),
            metrics: at("v1/metrics"),
            headers: Vec::new(),
            resource: vec![("service.name".to_owned(), SERVICE.to_owned())],
            certificates: Vec::new(),
            sampler: Sampler { heeds_parent: true, ratio: 1.0 },
        }
    }

    /// Reads the environment. Also returns a sentence for each value that is ignored. Without an endpoint
    /// nothing is exported.
    pub fn from_env(var: impl Fn(&str) -> Option<String>) -> (Option<Self>, Vec<String>) {
        let var = |name: &str| {
            let value = var(name).map(|it| it.trim().to_owned());
            value.filter(|it| !it.is_empty())
        };
        let mut warnings = Vec::new();
        if var("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return (None, warnings);
        }
        let endpoint = var("OTEL_EXPORTER_OTLP_ENDPOINT");
        let mut settings = Self::new(endpoint.as_deref().unwrap_or_default());
        if endpoint.is_none() {
            (settings.traces, settings.metrics) = (None, None);
        }
        for (signal, place) in
            [("TRACES", &mut settings.traces), ("METRICS", &mut settings.metrics)]
        {
            // A variable for one signal holds the whole URL.
            if let Some(own) = var(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")) {
                *place = Some(own);
            }
            if let Some(to) = var(&format!("OTEL_{signal}_EXPORTER"))
                && to != "otlp"
            {
                if to != "none" && place.is_some() {
                    warnings.push(format!(
                        "`OTEL_{signal}_EXPORTER` is `{to}`, which the gateway does not know, so \
                         none are sent. Use `otlp` or `none`."
                    ));
                }
                *place = None;
            }
            let protocol = var(&format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"))
                .or_else(|| var("OTEL_EXPORTER_OTLP_PROTOCOL"));
            if place.is_some() && protocol.as_deref() == Some("grpc") {
                warnings.push(format!(
                    "The gateway speaks OTLP over HTTP and no gRPC, so no {} are sent. Name the \
                     collector's HTTP port, often 4318, and set `OTEL_EXPORTER_OTLP_PROTOCOL` to \
                     `http/json`.",
                    signal.to_lowercase()
                ));
                *place = None;
            }
            if let Some(url) = place.take_if(|it| !is_http(it)) {
                warnings.push(format!(
                    "`{}` is no URL that begins with `http://` or `https://`, so no {} are sent.",
                    trunkline_auth::url::shown(&url),
                    signal.to_lowercase()
                ));
            }
        }
        if settings.traces.is_none() && settings.metrics.is_none() {
            return (None, warnings);
        }
        let headers = var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
        settings.headers = pairs(&headers, "OTEL_EXPORTER_OTLP_HEADERS", &mut warnings);
        let said = var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let said = pairs(&said, "OTEL_RESOURCE_ATTRIBUTES", &mut warnings);
        settings.resource = resource(said, var("OTEL_SERVICE_NAME"));
        if let Some(path) = var("OTEL_EXPORTER_OTLP_CERTIFICATE") {
            match std::fs::read(&path) {
                Ok(pem) => settings.certificates.push(pem),
                Err(error) => warnings.push(format!(
                    "`{path}`, which `OTEL_EXPORTER_OTLP_CERTIFICATE` names, cannot be read: {error}."
                )),
            }
        }
        let (sampler, argument) = (var("OTEL_TRACES_SAMPLER"), var("OTEL_TRACES_SAMPLER_ARG"));
        settings.sampler = sampling(sampler.as_deref(), argument.as_deref(), &mut warnings);
        (Some(settings), warnings)
    }
}

impl fmt::Debug for OtelSettings {
    /// Without the values of headers, which are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("OtelSettings")
            .field("traces", &self.traces.as_deref().map(trunkline_auth::url::shown))
            .field("metrics", &self.metrics.as_deref().map(trunkline_auth::url::shown))
            .field("headers", &headers)
            .field("resource", &self.resource)
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

fn resource(said: Vec<(String, String)>, service: Option<String>) -> Vec<(String, String)> {
    let named = said.iter().find(|it| it.0 == NAME).map(|it| it.1.clone());
    let service = service.or(named).unwrap_or_else(|| SERVICE.to_owned());
    let mut all = vec![(NAME.to_owned(), service)];
    all.extend(said.into_iter().filter(|it| it.0 != NAME));
    if all.iter().all(|it| it.0 != VERSION) {
        all.push((VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
    }
    all
}

fn sampling(sampler: Option<&str>, argument: Option<&str>, warnings: &mut Vec<String>) -> Sampler {
    let ratio = argument.map_or(1.0, |it| {
        let ratio = it.parse().ok().filter(|it| (0.0..=1.0).contains(it));
        ratio.unwrap_or_else(|| {
            warnings.push(format!(
                "`OTEL_TRACES_SAMPLER_ARG` is `{it}` and should be a number from 0 to 1; all traces \
                 are recorded."
            ));
            1.0
        })
    });
    let (heeds_parent, ratio) = match sampler {
        None | Some("parentbased_traceidratio") => (true, ratio),
        Some("traceidratio") => (false, ratio),
        Some("parentbased_always_on") => (true, 1.0),
        Some("parentbased_always_off") => (true, 0.0),
        Some("always_on") => (false, 1.0),
        Some("always_off") => (false, 0.0),
        Some(other) => {
            warnings.push(format!(
                "`OTEL_TRACES_SAMPLER` is `{other}`, which the gateway does not know. Callers decide, \
                 and what they leave open is recorded."
            ));
            (true, 1.0)
        }
    };
    Sampler { heeds_parent, ratio }
}

/// `a=1,b=2`, with percent-encoded values.
fn pairs(text: &str, of: &str, warnings: &mut Vec<String>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                all.push((name.trim().to_owned(), decoded(value.trim())));
            }
            // Not repeated: it may be a secret.
            _ => warnings.push(format!("A part of `{of}` is not of the form `name=value`.")),
        }
    }
    all
}

/// Decodes percent-encoding; anything else stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let digits = digits.filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        match digits.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_http(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

const NAME: &str = "service.name";
const VERSION: &str = "service.version";
const SERVICE: &str = "trunkline";
