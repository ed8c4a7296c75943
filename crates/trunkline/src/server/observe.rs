//! How a server is observed, and the registered names that its calls are about.

use tracing::Span;
use trunkline_auth::setters;
use trunkline_proto::Call;
use trunkline_wire::method::Method;

use super::{Inner, ServerBuilder, TemplateEntry};
use crate::TraceContext;
use crate::observe::{About, Meter, OTHER, Transport, Watch};

/// How the server is observed; see [`observe`](crate::observe).
impl ServerBuilder {
    setters! {
        /// Reports every finished call to `meter`. Without one, the server reads no clock.
        ///
        /// ```
        /// use trunkline::{Server, observe::Metrics};
        ///
        /// let metrics = Metrics::new();
        /// let server = Server::builder("example", "1.0.0").meter(metrics.clone()).build();
        /// assert_eq!(metrics.render(), "");
        /// ```
        meter(meter: impl Meter) { observe.set_meter(meter) }

        /// Joins the spans of calls to the traces of their callers. If the caller sent a trace, `join`
        /// gets each new span before anything happens in it. With `tracing-opentelemetry`, call
        /// `set_parent` there.
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
        trace_with(join: impl Fn(&Span, &TraceContext) + Send + Sync + 'static) {
            observe.set_join(join)
        }
    }
}

impl Inner {
    /// Observes a call, unless nothing would record it.
    #[inline]
    pub(super) fn watch(&self, call: &Call, transport: Option<Transport>) -> Option<Watch> {
        self.observe.watch(call, transport, || about(self, call))
    }
}

/// What a call is about, in registered names only.
fn about(server: &Inner, call: &Call) -> About {
    let text = |member: &str| call.params.get(member).and_then(|it| it.to::<String>().ok());
    let other = || OTHER.to_owned();
    let mut about = About::default();
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

fn registered(server: &Inner, uri: &str) -> Option<String> {
    if let Some(resource) = server.resources.find(uri) {
        return Some(resource.resource.uri.clone());
    }
    let templates = server.templates.now();
    let follows = |it: &TemplateEntry| it.parsed.as_ref().is_ok_and(|it| it.matches(uri).is_some());
    templates.iter().find(|it| follows(it)).map(|it| it.template.uri_template.clone())
}
