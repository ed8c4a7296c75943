//! A server's call → its span and measurement, if observed.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::{Level, Span, field::Empty, info_span, span_enabled};
use trunkline_proto::Call;

use super::watch::{Metered, Watch};
use super::{Meter, OTHER, Role, Transport};
use crate::TraceContext;

/// How a server is observed.
#[derive(Clone, Default)]
pub(crate) struct ServerObserver {
    meter: Option<Arc<dyn Meter>>,
    join: Option<Join>,
}

type Join = Arc<dyn Fn(&Span, &TraceContext) + Send + Sync>;

impl ServerObserver {
    /// Sets the meter of finished calls.
    pub(crate) fn set_meter(&mut self, meter: impl Meter) {
        self.meter = Some(Arc::new(meter));
    }

    /// Sets the function that joins the span of a call to its caller's trace.
    pub(crate) fn set_join(&mut self, join: impl Fn(&Span, &TraceContext) + Send + Sync + 'static) {
        self.join = Some(Arc::new(join));
    }

    /// Observes a call, unless nothing would record it.
    #[inline]
    pub(crate) fn watch(
        &self,
        call: &Call,
        transport: Option<Transport>,
        about: impl FnOnce() -> About,
    ) -> Option<Watch> {
        let is_traced = span_enabled!(target: "trunkline::server", Level::INFO);
        if !is_traced && self.meter.is_none() {
            return None;
        }
        Some(self.begin(call, transport, about(), is_traced))
    }

    fn begin(
        &self,
        call: &Call,
        transport: Option<Transport>,
        about: About,
        is_traced: bool,
    ) -> Watch {
        let span = if is_traced { self.span(call, transport, &about) } else { Span::none() };
        let metered = self.meter.as_ref().map(|meter| Metered {
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

    fn span(&self, call: &Call, transport: Option<Transport>, about: &About) -> Span {
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
        if let Some(join) = &self.join
            && !span.is_disabled()
        {
            let trace = TraceContext::of_meta(call.meta.as_ref());
            if !trace.is_none() {
                join(&span, &trace);
            }
        }
        span
    }
}

impl Watch {
    /// Observes the work of a task. Its span is not a child of the original call's, but links to
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

/// What a call is about, in registered names only.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) tool: Option<String>,
    pub(crate) prompt: Option<String>,
    /// The URI, or the template that it matches: the template's variables are arguments.
    pub(crate) uri: Option<String>,
}

impl fmt::Debug for ServerObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerObserver")
            .field("meter", &self.meter.is_some())
            .finish_non_exhaustive()
    }
}
