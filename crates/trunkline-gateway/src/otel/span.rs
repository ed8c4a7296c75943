//! Spans of calls. A span ends with its outcome, or as cancelled when it is dropped.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use trunkline_proto::{Call, CallError};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Outcome as Told;
use trunkline_wire::method::Method;
use trunkline_wire::revision::Revision;

use super::{Context, Otel};
use crate::merge::{Item, Target};
use crate::outcome::{Outcome, of_result};

/// A finished span.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) context: Context,
    pub(super) parent: Option<u64>,
    /// Whether the parent is remote.
    pub(super) is_remote: bool,
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Nanoseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) is_failed: bool,
}

/// The side of a call that a span is on; the numbers are those of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server = 2,
    Client = 3,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(Cow<'static, str>),
    Shared(Arc<str>),
    Int(i64),
}

/// An open span. Dropping it ends it as cancelled.
pub(crate) struct Open {
    context: Context,
    otel: Arc<Otel>,
    /// `None` if the trace is not recorded.
    noted: Option<Box<Noted>>,
}

struct Noted {
    parent: Option<u64>,
    kind: Kind,
    about: About,
    revision: Revision,
    /// `None` for an incoming request: a call does not know its transport.
    is_http: Option<bool>,
    instance: Option<u64>,
    start: SystemTime,
    began: Instant,
}

/// The target of a call: the same for the incoming request and its children.
#[derive(Clone)]
struct About {
    method: Method,
    server: Option<Arc<str>>,
    name: Option<Arc<str>>,
}

impl Open {
    pub(super) fn at_door(
        otel: &Arc<Otel>,
        context: Context,
        parent: Option<u64>,
        call: &Call,
    ) -> Box<Self> {
        let noted = context.is_sampled().then(|| {
            Box::new(Noted {
                parent,
                kind: Kind::Server,
                about: About { method: call.method.method, server: None, name: None },
                revision: call.revision,
                is_http: None,
                instance: None,
                start: SystemTime::now(),
                began: Instant::now(),
            })
        });
        Box::new(Self { context, otel: Arc::clone(otel), noted })
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Sets the target. A name that no server gave is not recorded.
    pub(crate) fn is(&mut self, target: &Target) {
        if let Some(noted) = &mut self.noted {
            noted.about.server = Some(Arc::clone(&target.server));
            noted.about.name = match &target.item {
                Item::Template(template) => Some(Arc::from(template.uri_template.as_str())),
                Item::Unlisted => None,
                _ => Some(Arc::clone(&target.name)),
            };
        }
    }

    /// The span of a try at an instance.
    pub(crate) fn child(&self, instance: u64, revision: Revision, is_http: bool) -> Box<Self> {
        let noted = self.noted.as_ref().map(|noted| {
            Box::new(Noted {
                parent: Some(self.context.span),
                kind: Kind::Client,
                about: noted.about.clone(),
                revision,
                is_http: Some(is_http),
                instance: Some(instance),
                start: SystemTime::now(),
                began: Instant::now(),
            })
        });
        let context = Context { span: self.otel.ids.span(), ..self.context.clone() };
        Box::new(Self { context, otel: Arc::clone(&self.otel), noted })
    }

    /// Ends with what the caller was told; `reason` is the word for a failure of the gateway.
    pub(crate) fn told(mut self, outcome: Outcome, told: &Told, reason: Option<&'static str>) {
        let (error, code) = match told {
            Ok(_) if outcome == Outcome::ToolError => (Some("tool_error".into()), None),
            Ok(_) => (None, None),
            Err(error) => {
                let code = error.code.to_string();
                (Some(reason.map_or_else(|| code.clone().into(), Cow::Borrowed)), Some(code))
            }
        };
        self.end(error, code, Some(outcome));
    }

    /// Ends with the instance's answer or error.
    pub(crate) fn over(mut self, said: &Result<Json, CallError>) {
        let (error, code) = match said {
            Ok(said) if self.is_tool_error(said) => (Some("tool_error".into()), None),
            Ok(_) => (None, None),
            Err(CallError::Peer(error)) => {
                let code = error.code.to_string();
                (Some(code.clone().into()), Some(code))
            }
            Err(error) => (Some(word(error)), None),
        };
        self.end(error, code, None);
    }

    fn is_tool_error(&self, said: &Json) -> bool {
        self.noted.as_ref().is_some_and(|it| of_result(it.about.method, said).0)
    }

    fn end(
        &mut self,
        error: Option<Cow<'static, str>>,
        code: Option<String>,
        outcome: Option<Outcome>,
    ) {
        if let Some(noted) = self.noted.take() {
            let span = noted.end(self.context.clone(), error, code, outcome);
            self.otel.exporter.offer(span);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end(Some("cancelled".into()), None, None);
    }
}

impl Noted {
    fn end(
        self,
        context: Context,
        error: Option<Cow<'static, str>>,
        code: Option<String>,
        outcome: Option<Outcome>,
    ) -> Span {
        let About { method, server, name } = self.about;
        let start = self.start.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        // Monotonic: a clock that is set meanwhile does not change the duration.
        let end = start.saturating_add(self.began.elapsed().as_nanos() as u64);
        let named = match method {
            Method::ToolsCall => Some("gen_ai.tool.name"),
            Method::PromptsGet => Some("gen_ai.prompt.name"),
            Method::ResourcesRead => Some("mcp.resource.uri"),
            _ => None,
        };
        let is_failed = error.is_some();
        let title = match method {
            Method::ToolsCall | Method::PromptsGet => {
                format!("{method} {}", name.as_deref().unwrap_or(OTHER))
            }
            _ => method.name().to_owned(),
        };
        let text = |text: &'static str| Some(Value::Text(text.into()));
        let transport = self.is_http.map(|it| if it { "tcp" } else { "pipe" });
        let name = name.map_or_else(|| Value::Text(OTHER.into()), Value::Shared);
        let all = [
            ("mcp.method.name", text(method.name())),
            ("mcp.protocol.version", text(self.revision.as_str())),
            ("gen_ai.operation.name", text("execute_tool").filter(|_| method == Method::ToolsCall)),
            (named.unwrap_or_default(), named.map(|_| name)),
            ("network.transport", transport.and_then(text)),
            ("network.protocol.name", text("http").filter(|_| self.is_http == Some(true))),
            ("trunkline.server", server.map(Value::Shared)),
            ("trunkline.instance", self.instance.map(|it| Value::Int(it as i64))),
            ("trunkline.outcome", outcome.and_then(|it| text(it.word()))),
            ("error.type", error.map(Value::Text)),
            ("rpc.response.status_code", code.map(|it| Value::Text(it.into()))),
        ];
        Span {
            context,
            parent: self.parent,
            is_remote: self.kind == Kind::Server && self.parent.is_some(),
            kind: self.kind,
            name: title,
            start,
            end,
            attributes: all.into_iter().filter_map(|(key, it)| Some((key, it?))).collect(),
            is_failed,
        }
    }
}

/// The error word, as in the SDK's client.
fn word(error: &CallError) -> Cow<'static, str> {
    match error {
        CallError::Peer(error) => error.code.to_string().into(),
        CallError::Refused(_) => "refused".into(),
        CallError::Invalid(_) => "invalid_answer".into(),
        CallError::TimedOut => "timeout".into(),
        CallError::Cancelled => "cancelled".into(),
        CallError::Closed => "closed".into(),
        CallError::Http(error) => error.status.to_string().into(),
        CallError::Credentials(_) => "credentials".into(),
        CallError::Unreachable(_) => "unreachable".into(),
        CallError::Lost(_) => "lost".into(),
        _ => "_OTHER".into(),
    }
}

const OTHER: &str = "_other";
