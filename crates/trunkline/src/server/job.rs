//! One call of a registered function: the function, its arguments, and its result on the wire.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use trunkline_proto::Call;
use trunkline_wire::era::{stateful, stateless::Extras};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::model::{CacheHint, CallToolResult, GetPromptResult, ReadResourceResult};
use trunkline_wire::revision::Revision;

use super::context::{Context, LazyContext, MakeContext};
use super::function::{Input, Rejected, Signature};
use super::guard::{Deadline, Fault};
use super::{Inner, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use crate::caller::principal;

/// What is to be called.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) server: Arc<Inner>,
    pub(super) target: Target,
    /// The arguments: an object.
    pub(super) arguments: Option<Json>,
}

/// The registered function. A call in flight keeps it even if it leaves the lists.
#[derive(Clone)]
pub(super) enum Target {
    Tool(Arc<ToolEntry>),
    Prompt(Arc<PromptEntry>),
    Resource(Arc<ResourceEntry>),
    Template(Arc<TemplateEntry>, String),
}

impl Target {
    /// The name or URI that the caller used.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Tool(it) => &it.tool.name,
            Self::Prompt(it) => &it.prompt.name,
            Self::Resource(it) => &it.resource.uri,
            Self::Template(_, uri) => uri,
        }
    }

    pub(super) fn signature(&self) -> &Signature {
        match self {
            Self::Tool(it) => &it.signature,
            Self::Prompt(it) => &it.signature,
            Self::Resource(it) => &it.signature,
            Self::Template(it, _) => &it.signature,
        }
    }

    /// Whether every caller sees it, and sees the same.
    fn is_for_all(&self) -> bool {
        let visible = match self {
            Self::Tool(it) => &it.visible,
            Self::Prompt(it) => &it.visible,
            Self::Resource(it) => &it.visible,
            Self::Template(it, _) => &it.visible,
        };
        let signature = self.signature();
        visible.is_none() && !signature.is_personal && signature.scopes.is_empty()
    }
}

/// The future of a function.
pub(super) type Work<T> = Pin<Box<dyn Future<Output = Result<T, ErrorObject>> + Send>>;

impl Job {
    /// Starts the function. Invalid arguments are answered as the call's revision wants it.
    pub(super) fn start(self, revision: Revision, context: MakeContext<'_>) -> Running {
        let context = LazyContext::new(&self, context);
        let arguments = self.arguments.as_ref();
        let (name, schema, uri) = (self.target.name(), None, None);
        let input = Input { context: &context, name, arguments, schema, uri };
        let work = self.guarded(|| match &self.target {
            Target::Tool(tool) => tool.start(input).map(Kind::Tool),
            Target::Prompt(prompt) => prompt.start(input).map(Kind::Prompt),
            Target::Resource(resource) => resource.start(input).map(Kind::Resource),
            Target::Template(template, uri) => {
                template.start(Input { uri: Some(uri), ..input }).map(Kind::Resource)
            }
        });
        let work = work.unwrap_or_else(|fault| Ok(Kind::failed(self.failed(fault))));
        let is_tool = matches!(self.target, Target::Tool(_));
        let work = work.unwrap_or_else(|rejection| {
            Kind::failed(match rejection.0 {
                Rejected::Arguments(why)
                    if is_tool && revision.profile().argument_error_is_result =>
                {
                    Ok(CallToolResult::error(why))
                }
                _ => Err(rejection.into_error()),
            })
        });
        let deadline = self.target.signature().timeout.map(|it| Box::new(Deadline::new(it)));
        let context = context.into_made();
        Running { work, job: self, context, revision, deadline }
    }

    /// The associated data of a sealed state: it opens only for the same caller and the same call.
    pub(super) fn bound_to(&self, call: &Call) -> Vec<u8> {
        let target = self.target.name();
        // As a value, not as text: a proxy on the way may have re-encoded the arguments.
        let arguments: serde_json::Value =
            self.arguments.as_ref().and_then(|it| it.to().ok()).unwrap_or_default();
        let caller = principal(&call.attached).map(|it| it.id()).unwrap_or_default();
        [call.method.name, target, &arguments.to_string(), &caller].join("\0").into_bytes()
    }

    /// The result, or an error if it does not match the tool's output schema.
    fn checked(&self, result: CallToolResult) -> CallToolResult {
        match &self.target {
            Target::Tool(entry) => entry.checked(result),
            _ => result,
        }
    }

    /// Shapes a structured result as the revision shapes the schema of the tool.
    pub(super) fn fit(&self, result: &mut CallToolResult, revision: Revision) {
        if let Target::Tool(entry) = &self.target {
            let schema = entry.tool.output_schema.as_ref();
            stateful::fit_output(result, schema, revision.profile());
        }
    }

    pub(super) fn encode_tool(&self, mut result: CallToolResult, revision: Revision) -> Json {
        self.fit(&mut result, revision);
        stateful::encode(result, revision, &self.server.extras(None))
    }
}

/// A running function. Dropping it tells its context that the call was cancelled.
pub(super) struct Running {
    work: Kind,
    job: Job,
    /// None if the function takes none: it cannot ask or report, and nobody waits for its end.
    context: Option<Context>,
    revision: Revision,
    deadline: Option<Box<Deadline>>,
}

enum Kind {
    Tool(Work<CallToolResult>),
    Prompt(Work<GetPromptResult>),
    Resource(Work<ReadResourceResult>),
    /// What is rare takes no room in every call.
    Failed(Option<Box<Result<CallToolResult, ErrorObject>>>),
}

impl Kind {
    fn failed(result: Result<CallToolResult, ErrorObject>) -> Self {
        Self::Failed(Some(Box::new(result)))
    }
}

impl Running {
    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// The context of the call, if its function has one.
    pub(super) fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// The result of a tool, not yet written for any revision.
    pub(super) fn poll_tool(
        &mut self,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<CallToolResult, ErrorObject>> {
        let result = ready!(self.poll_step(cx, |work, job, cx| match work {
            Kind::Tool(work) => work.as_mut().poll(cx).map_ok(|it| job.checked(it)),
            Kind::Failed(result) => Poll::Ready(failure(result)),
            _ => Poll::Ready(Err(not_a_tool())),
        }));
        Poll::Ready(result.unwrap_or_else(|fault| self.job.failed(fault)))
    }

    /// Polls the function once. After a panic it is never polled again.
    fn poll_step<T>(
        &mut self,
        cx: &mut TaskContext<'_>,
        step: impl FnOnce(&mut Kind, &Job, &mut TaskContext<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Fault>> {
        let fault = match self.job.guarded(|| step(&mut self.work, &self.job, cx)) {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ok(result)),
            Ok(Poll::Pending) => {
                let Some(deadline) = &mut self.deadline else { return Poll::Pending };
                let is_asking = self.context.as_ref().is_some_and(Context::is_asking);
                ready!(deadline.poll(is_asking, cx))
            }
            Err(fault) => fault,
        };
        self.end();
        self.work = Kind::Failed(None);
        Poll::Ready(Err(fault))
    }

    fn end(&self) {
        if let Some(context) = &self.context {
            context.end();
        }
    }
}

impl Future for Running {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
        let this = &mut *self;
        let revision = this.revision;
        let outcome = ready!(this.poll_step(cx, |work, job, cx| {
            let server = &job.server;
            match work {
                Kind::Prompt(work) => work
                    .as_mut()
                    .poll(cx)
                    .map_ok(|it| stateful::encode(it, revision, &server.extras(None))),
                Kind::Resource(work) => work.as_mut().poll(cx).map_ok(|it| {
                    let hint = server.hint(job.target.is_for_all());
                    stateful::encode(it, revision, &server.extras(Some(hint)))
                }),
                Kind::Tool(work) => {
                    work.as_mut().poll(cx).map_ok(|it| job.encode_tool(job.checked(it), revision))
                }
                Kind::Failed(result) => {
                    Poll::Ready(failure(result).map(|it| job.encode_tool(it, revision)))
                }
            }
        }));
        let failed = |fault| this.job.failed(fault).map(|it| this.job.encode_tool(it, revision));
        Poll::Ready(outcome.unwrap_or_else(failed))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl Inner {
    /// The cache hint of a result: private if other callers get another result.
    pub(super) fn hint(&self, is_for_all: bool) -> CacheHint {
        match is_for_all {
            true => self.cache,
            false => CacheHint::private(self.cache.ttl_ms),
        }
    }

    /// The members that results of 2026-07-28 have besides their own.
    pub(super) fn extras(&self, cache: Option<CacheHint>) -> Extras<'_> {
        Extras { cache, server_info: Some(&self.info) }
    }
}

/// Takes the result of a function that did not start.
fn failure(
    result: &mut Option<Box<Result<CallToolResult, ErrorObject>>>,
) -> Result<CallToolResult, ErrorObject> {
    result.take().map_or_else(|| Err(not_a_tool()), |it| *it)
}

fn not_a_tool() -> ErrorObject {
    ErrorObject::internal("task", "Only tools run as tasks.")
}
