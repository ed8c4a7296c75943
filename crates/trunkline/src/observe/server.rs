//! A call that a server is to answer → the watch on it, if anybody watches.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::{Level, Span, field::Empty, info_span, span_enabled};
use trunkline_proto::Call;

use super::watch::{Metered, Watch};
use super::{Meter, OTHER, Role, Transport};
use crate::TraceContext;
use crate::server::{Inner, ServerBuilder};
use trunkline_wire::method::Method;

/// How a server is watched.
#[derive(Clone, Default)]
pub(crate) struct Inward {
    meter: Option<Arc<dyn Meter>>,
    join: Option<Join>,
}

type Join = Arc<dyn Fn(&Span, &TraceContext) + Send + Sync>;

/// How the server is watched; see [`observe`](crate::observe).
impl ServerBuilder {
    /// Tells `meter` of every call that is over. Without one, no clock is read.
    ///
    /// ```
    /// use trunkline::{Server, observe::Metrics};
    ///
    /// let metrics = Metrics::new();
    /// let server = Server::builder("example", "1.0.0").meter(metrics.clone()).build();
    /// assert_eq!(metrics.render(), "");
    /// ```
    pub fn meter(mut self, meter: impl Meter) -> Self {
        self.observe.meter = Some(Arc::new(meter));
        self
    }

    /// Joins the spans of calls to the traces of their callers: `join` gets each new span before
    /// anything happens in it, if the caller sent a trace. With `tracing-opentelemetry` that is
    /// where `set_parent` belongs.
    ///
    /// ```
    /// use trunkline::Server;
    ///
    /// let server = Server::builder("example", "1.0.0")
    ///     .trace_with(|span, trace| {
    ///         span.in_scope(|| tracing::debug!(trace = trace.trace_id(), "part of a trace"));
    ///     })
    ///     .build();
    /// ```
    pub fn trace_with(
        mut self,
        join: impl Fn(&Span, &TraceContext) + Send + Sync + 'static,
    ) -> Self {
        self.observe.join = Some(Arc::new(join));
        self
    }
}

impl Watch {
    /// A watch on a call, unless nobody would see anything.
    #[inline]
    pub(crate) fn on(server: &Inner, call: &Call, transport: Option<Transport>) -> Option<Self> {
        let is_traced = span_enabled!(target: "trunkline::server", Level::INFO);
        if !is_traced && server.observe.meter.is_none() {
            return None;
        }
        Some(begin(server, call, transport, is_traced))
    }

    /// A watch on the work of a task, which is not part of the call that it began with, but knows
    /// it.
    pub(crate) fn on_task(tool: &str) -> Option<Self> {
        if !span_enabled!(target: "trunkline::task", Level::INFO) {
            return None;
        }
        let span = info_span!(
            target: "trunkline::task",
            parent: None,
            "mcp.task",
            otel.name = format!("task {tool}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            rpc.response.status_code = Empty,
            error.type = Empty,
        );
        span.follows_from(Span::current());
        Some(Self::new(span, None))
    }
}

fn begin(server: &Inner, call: &Call, transport: Option<Transport>, is_traced: bool) -> Watch {
    let about = About::of(server, call);
    let span = if is_traced { span(server, call, transport, &about) } else { Span::none() };
    let metered = server.observe.meter.as_ref().map(|meter| Metered {
        meter: Arc::clone(meter),
        role: Role::Server,
        method: call.method.method,
        target: about.tool.or(about.prompt),
        revision: call.revision,
        transport,
        begun: Instant::now(),
    });
    Watch::new(span, metered)
}

fn span(server: &Inner, call: &Call, transport: Option<Transport>, about: &About) -> Span {
    let method = call.method.name;
    let named = about.tool.as_deref().or(about.prompt.as_deref()).filter(|it| *it != OTHER);
    let name = named.map(|it| format!("{method} {it}"));
    let span = info_span!(
        target: "trunkline::server",
        "mcp.server",
        otel.name = name.as_deref().unwrap_or(method),
        otel.kind = "server",
        otel.status_code = Empty,
        mcp.method.name = method,
        mcp.protocol.version = call.revision.as_str(),
        mcp.resource.uri = about.uri,
        gen_ai.operation.name = about.tool.is_some().then_some("execute_tool"),
        gen_ai.tool.name = about.tool,
        gen_ai.prompt.name = about.prompt,
        network.transport = transport.map(Transport::network),
        network.protocol.name = transport.and_then(Transport::protocol),
        rpc.response.status_code = Empty,
        error.type = Empty,
    );
    if let Some(join) = &server.observe.join
        && !span.is_disabled()
    {
        let trace = TraceContext::of_meta(call.meta.as_ref());
        if !trace.is_none() {
            join(&span, &trace);
        }
    }
    span
}

/// What a call is about, in names that are registered.
#[derive(Default)]
struct About {
    tool: Option<String>,
    prompt: Option<String>,
    /// The URI, or the template that it follows: what fills the template is an argument.
    uri: Option<String>,
}

impl About {
    fn of(server: &Inner, call: &Call) -> Self {
        let text = |member: &str| call.params.get(member).and_then(|it| it.to::<String>().ok());
        let other = || OTHER.to_owned();
        let mut about = Self::default();
        match call.method.method {
            Method::ToolsCall => {
                let tool = text("name").and_then(|it| server.tools.find(&it));
                about.tool = Some(tool.map_or_else(other, |it| it.tool.name.clone()));
            }
            Method::PromptsGet => {
                let prompt = text("name").and_then(|it| server.prompts.find(&it));
                about.prompt = Some(prompt.map_or_else(other, |it| it.prompt.name.clone()));
            }
            Method::ResourcesRead => about.uri = text("uri").and_then(|it| registered(server, &it)),
            _ => {}
        }
        about
    }
}

fn registered(server: &Inner, uri: &str) -> Option<String> {
    if let Some(resource) = server.resources.find(uri) {
        return Some(resource.resource.uri.clone());
    }
    let templates = server.templates.now();
    let follows = |it: &crate::server::TemplateEntry| {
        it.parsed.as_ref().is_ok_and(|it| it.matches(uri).is_some())
    };
    templates.iter().find(|it| follows(it)).map(|it| it.template.uri_template.clone())
}

impl fmt::Debug for Inward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inward").field("meter", &self.meter.is_some()).finish_non_exhaustive()
    }
}
