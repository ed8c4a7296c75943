//! A client's request → its span and measurement, if observed, and its trace context.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::{Level, Span, field::Empty, info_span, span_enabled};
use trunkline_proto::CallError;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::revision::Revision;

use super::watch::{Metered, Observed, Watch, is_tool_error};
use super::{ErrorType, Meter, Role, Transport};
use crate::TraceContext;

/// How a client is observed, and the source of its trace context.
#[derive(Clone, Default)]
pub(crate) struct ClientObserver {
    meter: Option<Arc<dyn Meter>>,
    trace: Option<Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>>,
    transport: Option<Transport>,
}

impl ClientObserver {
    /// Sets the meter of finished requests.
    pub(crate) fn set_meter(&mut self, meter: impl Meter) {
        self.meter = Some(Arc::new(meter));
    }

    /// Sets the source of trace context for requests without any.
    pub(crate) fn set_trace(
        &mut self,
        trace: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) {
        self.trace = Some(Arc::new(trace));
    }

    /// Sets the transport of the requests.
    pub(crate) fn set_transport(&mut self, transport: Transport) {
        self.transport = Some(transport);
    }

    /// Observes a request, unless nothing would record it.
    #[inline]
    pub(crate) fn watch(
        &self,
        method: Method,
        params: &Object,
        revision: Revision,
    ) -> Option<Watch> {
        let is_traced = span_enabled!(target: "trunkline::client", Level::INFO);
        if !is_traced && self.meter.is_none() {
            return None;
        }
        Some(self.begin(method, params, revision, is_traced))
    }

    /// Adds the ambient trace context to the `_meta` of a request that has none.
    pub(crate) fn write_trace(&self, meta: &mut Object) {
        if let Some(trace) = &self.trace
            && meta.get("traceparent").is_none()
            && let Some(trace) = trace()
        {
            trace.write(meta);
        }
    }

    fn begin(&self, method: Method, params: &Object, revision: Revision, is_traced: bool) -> Watch {
        let name = || params.get("name")?.to::<String>().ok();
        let is_tool = method == Method::ToolsCall;
        let target = if is_tool || method == Method::PromptsGet { name() } else { None };
        let span = match is_traced {
            true => self.span(method, target.as_deref(), is_tool, revision),
            false => Span::none(),
        };
        let metered = self.meter.as_ref().map(|meter| Metered {
            meter: Arc::clone(meter),
            role: Role::Client,
            method,
            target,
            revision,
            transport: self.transport,
            begun: Instant::now(),
        });
        Watch::new(span, metered)
    }

    fn span(
        &self,
        method: Method,
        target: Option<&str>,
        is_tool: bool,
        revision: Revision,
    ) -> Span {
        let name = target.map(|it| format!("{method} {it}"));
        info_span!(
            target: "trunkline::client",
            "mcp.client",
            otel.name = name.as_deref().unwrap_or(method.name()),
            otel.kind = "client",
            otel.status_code = Empty,
            mcp.method.name = method.name(),
            mcp.protocol.version = revision.as_str(),
            gen_ai.operation.name = is_tool.then_some("execute_tool"),
            gen_ai.tool.name = target.filter(|_| is_tool),
            gen_ai.prompt.name = target.filter(|_| !is_tool),
            network.transport = self.transport.map(Transport::network),
            network.protocol.name = self.transport.and_then(Transport::protocol),
            rpc.response.status_code = Empty,
            error.type = Empty,
        )
    }
}

impl Observed for Result<Json, CallError> {
    fn failure(&self) -> Option<ErrorType> {
        match self {
            Ok(result) => is_tool_error(result).then_some(ErrorType::Tool),
            Err(error) => Some(error.into()),
        }
    }
}

impl From<&CallError> for ErrorType {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Peer(error) => Self::Code(error.code),
            CallError::Refused(_) => Self::Refused,
            CallError::Invalid(_) => Self::Invalid,
            CallError::TimedOut => Self::Timeout,
            CallError::Cancelled => Self::Cancelled,
            CallError::Closed => Self::Closed,
            CallError::Http(error) => Self::Http(error.status),
            CallError::Credentials(_) => Self::Credentials,
            CallError::Unreachable(_) => Self::Unreachable,
            CallError::Lost(_) => Self::Lost,
            _ => Self::Other,
        }
    }
}

impl fmt::Debug for ClientObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientObserver")
            .field("meter", &self.meter.is_some())
            .field("trace", &self.trace.is_some())
            .field("transport", &self.transport)
            .finish()
    }
}
