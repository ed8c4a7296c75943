//! One call of a registered function: which one, with what, and its result on the wire.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use trunkline_proto::Call;
use trunkline_wire::era::{stateful, stateless::Extras};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::model::{CallToolResult, GetPromptResult, ReadResourceResult};
use trunkline_wire::revision::Revision;

use super::Inner;
use super::context::Context;

/// What is to be called.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) server: Arc<Inner>,
    pub(super) target: Target,
    /// The arguments: an object.
    pub(super) arguments: Option<Json>,
}

/// The registered function, by its place.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Tool(usize),
    Prompt(usize),
    Resource(usize),
    Template { at: usize, uri: String },
}

/// What a function is working on.
pub(super) type Work<T> = Pin<Box<dyn Future<Output = Result<T, ErrorObject>> + Send>>;

impl Job {
    /// Starts the function. What is wrong with the arguments is answered as the revision wants it.
    pub(super) fn start(&self, context: &Context) -> Running {
        let arguments = self.arguments.as_ref();
        let work = match &self.target {
            Target::Tool(at) => {
                self.server.tools.get(*at).start(context, arguments).map(Kind::Tool)
            }
            Target::Prompt(at) => {
                self.server.prompts.get(*at).start(context, arguments).map(Kind::Prompt)
            }
            Target::Resource(at) => {
                self.server.resources.get(*at).start(context, arguments).map(Kind::Resource)
            }
            Target::Template { at, uri } => {
                self.server.templates[*at].start(context, uri, arguments).map(Kind::Resource)
            }
        };
        let revision = context.revision();
        let is_tool = matches!(self.target, Target::Tool(_));
        let work = work.unwrap_or_else(|why| {
            Kind::Failed(Some(if is_tool && revision.profile().argument_error_is_result {
                Ok(CallToolResult::error(why))
            } else {
                Err(ErrorObject::invalid_params(why))
            }))
        });
        Running { work, job: self.clone(), context: context.clone(), revision }
    }

    /// What a sealed state of this call is bound to: it opens for the same call only.
    pub(super) fn bound_to(&self, call: &Call) -> Vec<u8> {
        let target = match &self.target {
            Target::Tool(at) => &self.server.tools.get(*at).tool.name,
            Target::Prompt(at) => &self.server.prompts.get(*at).prompt.name,
            Target::Resource(at) => &self.server.resources.get(*at).resource.uri,
            Target::Template { uri, .. } => uri,
        };
        // As a value, not as a text: whoever carries the call may have written it anew.
        let arguments: serde_json::Value =
            self.arguments.as_ref().and_then(|it| it.to().ok()).unwrap_or_default();
        [call.method.name, target, &arguments.to_string()].join("\0").into_bytes()
    }

    /// Shapes a structured result as the revision shapes the schema of the tool.
    pub(super) fn fit(&self, mut result: CallToolResult, revision: Revision) -> CallToolResult {
        if let Target::Tool(at) = self.target {
            let schema = self.server.tools.get(at).tool.output_schema.as_ref();
            stateful::fit_output(&mut result, schema, revision.profile());
        }
        result
    }

    fn encode_tool(&self, result: CallToolResult, revision: Revision) -> Json {
        stateful::encode(self.fit(result, revision), revision, &self.server.extras(None))
    }
}

/// A function at work. Dropping it tells its context that nobody wants the result any more.
pub(super) struct Running {
    work: Kind,
    job: Job,
    context: Context,
    revision: Revision,
}

enum Kind {
    Tool(Work<CallToolResult>),
    Prompt(Work<GetPromptResult>),
    Resource(Work<ReadResourceResult>),
    Failed(Option<Result<CallToolResult, ErrorObject>>),
}

impl Running {
    /// The result of a tool, not yet written for any revision.
    pub(super) fn poll_tool(
        &mut self,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<CallToolResult, ErrorObject>> {
        match &mut self.work {
            Kind::Tool(work) => work.as_mut().poll(cx),
            Kind::Failed(result) => Poll::Ready(result.take().unwrap_or_else(|| Err(not_a_tool()))),
            _ => Poll::Ready(Err(not_a_tool())),
        }
    }
}

impl Future for Running {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
        let this = &mut *self;
        let server = &this.job.server;
        let cached = server.extras(Some(server.cache));
        let outcome = match &mut this.work {
            Kind::Prompt(work) => ready!(work.as_mut().poll(cx))
                .map(|it| stateful::encode(it, this.revision, &server.extras(None))),
            Kind::Resource(work) => ready!(work.as_mut().poll(cx))
                .map(|it| stateful::encode(it, this.revision, &cached)),
            Kind::Tool(_) | Kind::Failed(_) => {
                ready!(this.poll_tool(cx)).map(|it| this.job.encode_tool(it, this.revision))
            }
        };
        Poll::Ready(outcome)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.context.end();
    }
}

impl Inner {
    /// What results of the newest revision carry besides themselves.
    pub(super) fn extras(&self, cache: Option<trunkline_wire::model::CacheHint>) -> Extras<'_> {
        Extras { cache, server_info: Some(&self.info) }
    }
}

fn not_a_tool() -> ErrorObject {
    ErrorObject::internal("task", "Only tools run as tasks.")
}
