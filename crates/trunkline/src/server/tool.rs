//! Tools: functions that a model can call.

mod reply;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use trunkline_auth::setters;
use trunkline_proto::Attached;
use trunkline_transport::handler::Repeated;
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json as RawJson;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CallToolResult, Icon, TaskSupport, Tool, ToolAnnotations};
use trunkline_wire::text::is_tool_name;

use super::Inner;
use super::compose::Origin;
use super::function::{Function, Input, Rejection, Signature};
use crate::caller::{Visible, call_by, may_see};
use crate::layer::Layers;
use crate::schema::{self, SchemaProfile};
use crate::validate;

pub use reply::{IntoToolResult, Json, Task, ToolReply};

/// A tool, ready to be registered.
/// ```
/// let now = trunkline::tool("now", async || "noon").title("The time").about("Tells the time.");
/// assert!(trunkline::Server::builder("clock", "1.0.0").tool(now).try_build().is_ok());
/// ```
#[derive(Clone)]
pub struct ToolEntry {
    pub(crate) tool: Tool,
    /// The arguments that HTTP clients repeat as headers.
    pub(crate) params: Arc<ParamHeaders>,
    pub(crate) signature: Signature,
    pub(crate) visible: Visible,
    /// Set if a mounted server offers it.
    pub(crate) origin: Option<Arc<Origin>>,
    pub(crate) layers: Layers,
    /// Whether another process may run a task of it again.
    pub(crate) resumes: bool,
    /// Whether its return value decides that the rest runs as a task.
    pub(crate) leaves: bool,
    schemas: Schemas,
    run: Run,
}

/// The schemas of a tool, and their validators.
#[derive(Clone)]
struct Schemas {
    /// Whether the schema of the arguments was written by hand.
    own_input: bool,
    own_output: bool,
    output: fn(SchemaProfile) -> Option<RawJson>,
    input_check: Option<Arc<validate::Schema>>,
    /// Set if the schema of the result is stricter than its type.
    output_check: Option<Arc<validate::Schema>>,
}

pub(crate) type Running = Pin<Box<dyn Future<Output = CallToolResultOr> + Send>>;
type Run = Arc<dyn Fn(&Input<'_>) -> Result<Running, Rejection> + Send + Sync>;
pub(crate) type CallToolResultOr = Result<CallToolResult, ErrorObject>;

/// Makes a tool of an async function. Its schemas come from the function's types.
///
/// Clients of 2026-07-28 repeat a field with `#[schemars(extend("x-mcp-header" = "Region"))]` as
/// the HTTP header `Mcp-Param-Region`, so that a proxy can route by it. Only strings, integers and
/// booleans can be headers, and secrets should not be. Faults of a tool are reported when the
/// server is built.
/// ```
/// let now = trunkline::tool("now", async || "noon");
/// assert!(trunkline::Server::builder("clock", "1.0.0").tool(now).try_build().is_ok());
/// ```
pub fn tool<M, F>(name: impl Into<String>, function: F) -> ToolEntry
where
    F: Function<M>,
    F::Output: IntoToolResult,
{
    let mut signature = Signature::default();
    F::describe(&mut signature);
    let mut tool = Tool::new(name, schema::no_input());
    let leaves = F::Output::IS_TASK;
    if leaves {
        tool.task_support = TaskSupport::Optional;
    }
    let run = move |input: &Input<'_>| {
        let future = function.call(input)?;
        let context = leaves.then(|| input.context().clone());
        let running: Running = Box::pin(async move {
            let work = match future.await.into_tool_result() {
                ToolReply::Done(result) => return result,
                ToolReply::Task(work) => work,
            };
            let context = context.expect("only a result that says it is a task becomes one");
            context.become_task().await;
            work(context).await
        });
        Ok(running)
    };
    let schemas = Schemas {
        own_input: false,
        own_output: false,
        output: F::Output::schema,
        input_check: None,
        output_check: None,
    };
    let params = Arc::default();
    let mut entry = ToolEntry {
        tool,
        params,
        signature,
        visible: None,
        origin: None,
        layers: Layers::default(),
        resumes: false,
        leaves,
        schemas,
        run: Arc::new(run),
    };
    entry.write_schemas(SchemaProfile::Plain);
    entry
}

/// What can be registered as a tool: a [`ToolEntry`], or a function with `#[tool]`. The compiler
/// infers the marker, which keeps the two apart; a type of yours leaves it out.
/// ```
/// let _entry = trunkline::server::IntoTool::into_tool(trunkline::tool("now", async || "noon"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "write `tool(\"name\", function)`, or put `#[tool]` on the function"
)]
pub trait IntoTool<Marker = ()> {
    /// The tool.
    ///
    /// ```
    /// use trunkline::{IntoTool, tool};
    ///
    /// /// Says hello.
    /// #[tool]
    /// async fn hello() -> &'static str {
    ///     "Hello!"
    /// }
    ///
    /// assert_eq!(hello.into_tool().definition().name, "hello");
    /// ```
    fn into_tool(self) -> ToolEntry;
}

impl IntoTool for ToolEntry {
    fn into_tool(self) -> ToolEntry {
        self
    }
}

impl ToolEntry {
    /// The tool as clients see it. It can also be offered to a model that is
    /// [asked](crate::Context::sample).
    ///
    /// ```
    /// let add = trunkline::tool("add", async || "3").about("Adds.");
    /// assert_eq!(add.definition().description.as_deref(), Some("Adds."));
    /// ```
    pub fn definition(&self) -> &Tool {
        &self.tool
    }

    setters! {
        /// Sets the hints about its behaviour.
        /// ```
        /// let reads = trunkline::model::ToolAnnotations::new().read_only_hint(true);
        /// let _now = trunkline::tool("now", async || "noon").annotations(reads);
        /// ```
        annotations(annotations: ToolAnnotations) { tool.annotations = Some(annotations) }

        /// Adds an icon.
        /// ```
        /// let icon = trunkline::model::Icon::new("https://example.com/clock.svg");
        /// let _now = trunkline::tool("now", async || "noon").icon(icon);
        /// ```
        icon(icon: Icon) { tool.icons.push(icon) }

        /// Lets it run as a task that outlives its request.
        /// ```
        /// # use trunkline::{model::TaskSupport, tool};
        /// let _render = tool("render", async || "A film.").task(TaskSupport::Optional);
        /// ```
        task(support: TaskSupport) { tool.task_support = support }

        /// Lets another process run a task of it again when its own process died, if the server has a
        /// [store for tasks](super::ServerBuilder::task_store). Results of
        /// [`Context::once`](crate::Context::once) and answers are kept; everything outside `once`
        /// happens again. Without this such a task fails, because how far it got is unknown.
        /// ```
        /// let _render = trunkline::tool("render", async || "A film.").resume();
        /// ```
        resume() { resumes = true }
    }

    /// Replaces the schema derived from the types.
    /// ```
    /// let schema = trunkline::serde_json::json!({ "type": "object", "maxProperties": 0 });
    /// let _now = trunkline::tool("now", async || "noon").input_schema(schema);
    /// ```
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.tool.input_schema = schema.into();
        self.schemas.own_input = true;
        self
    }

    /// Replaces the schema of the result derived from the types. Results are validated against it.
    /// ```
    /// let schema = trunkline::serde_json::json!({ "type": "array", "maxItems": 3 });
    /// let _few = trunkline::tool("few", async || trunkline::Json([1, 2])).output_schema(schema);
    /// ```
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.tool.output_schema = Some(schema.into());
        self.schemas.own_output = true;
        self
    }

    /// Starts the function, or says what is wrong with the call.
    pub(crate) fn start(&self, input: Input<'_>) -> Result<Running, Rejection> {
        (self.run)(&Input { schema: self.schemas.input_check.as_deref(), ..input })
    }

    /// Prepares it for lists and calls: schemas in `profile`, and their validators. Adds its
    /// faults.
    pub(crate) fn prepare(&mut self, profile: SchemaProfile, faults: &mut Vec<String>) {
        let name = self.tool.name.clone();
        let mut fault =
            |why: &dyn std::fmt::Display| faults.push(format!("The tool `{name}` {why}"));
        if !is_tool_name(&name) {
            fault(&"needs another name: 1 to 128 letters, digits, `_`, `.` or `-`.");
        }
        if self.signature.arguments.len() > 1 {
            fault(&"reads its arguments twice; keep one `Args`.");
        }
        self.write_schemas(profile);
        match ParamHeaders::read(&self.tool.input_schema) {
            Ok(params) => self.params = Arc::new(params),
            Err(why) => fault(&format!("is one that clients must not use: {why}")),
        }
        match validate::Schema::compile(&self.tool.input_schema) {
            Ok(schema) => {
                let schema = if self.schemas.own_input { schema.by_hand() } else { schema };
                self.schemas.input_check = Some(Arc::new(schema));
            }
            Err(why) => fault(&format!("has a schema for its arguments that is wrong: {why}")),
        }
        let output = self.tool.output_schema.as_ref().map(validate::Schema::compile);
        match output.transpose() {
            Ok(schema) => {
                let is_needed =
                    |it: &validate::Schema| self.schemas.own_output || it.says_more_than_serde();
                self.schemas.output_check = schema.filter(is_needed).map(Arc::new);
            }
            Err(why) => fault(&format!("has a schema for its result that is wrong: {why}")),
        }
    }

    fn write_schemas(&mut self, profile: SchemaProfile) {
        if !self.schemas.own_input {
            self.tool.input_schema =
                self.signature.schema(profile).unwrap_or_else(schema::no_input);
        }
        if !self.schemas.own_output {
            self.tool.output_schema = (self.schemas.output)(profile);
        }
    }

    /// The result, or an error if it does not match the tool's output schema.
    #[inline]
    pub(crate) fn checked(&self, result: CallToolResult) -> CallToolResult {
        match self.schemas.output_check.as_deref() {
            Some(schema) => self.checked_with(schema, result),
            None => result,
        }
    }

    fn checked_with(&self, schema: &validate::Schema, result: CallToolResult) -> CallToolResult {
        if result.is_error == Some(true) {
            return result;
        }
        let checked = match &result.structured_content {
            Some(content) => validate::result(schema, content),
            None => Err("There is no structured result.".to_owned()),
        };
        match checked {
            Ok(()) => result,
            Err(why) => {
                let tool = &*self.tool.name;
                tracing::error!(tool, why, "a result does not fit the schema of its tool");
                CallToolResult::error(
                    "The tool came to a result that is not what it promises. That is a fault of \
                     the server; other arguments may work.",
                )
            }
        }
    }
}

impl Inner {
    /// The arguments of a tool that HTTP clients repeat as headers, if it has any and the caller
    /// can see it.
    pub(super) fn param_headers(
        &self,
        tool: &str,
        meta: Option<&RawJson>,
        attached: &Attached,
    ) -> Repeated {
        let tool = self.tools.find(tool).filter(|it| !it.params.is_empty())?;
        let is_seen = tool.visible.is_none() || may_see(&tool.visible, &call_by(attached, meta));
        is_seen.then(|| Arc::clone(&tool.params))
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::{Args, Server};

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Query {
        /// Where to look
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: Option<String>,
        #[schemars(extend("x-mcp-header" = "Limit"))]
        limit: u32,
        page: Page,
        text: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Page {
        #[schemars(extend("x-mcp-header" = "Exact"))]
        exact: bool,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Share {
        #[schemars(extend("x-mcp-header" = "Share"))]
        share: f64,
    }

    async fn find(_: Args<Query>) {}

    #[test]
    fn an_annotated_field_is_repeated_in_a_header() {
        let entry = tool("find", find);
        let schema: serde_json::Value = entry.tool.input_schema.to().unwrap();
        let region = &schema["properties"]["region"];
        let expected =
            json!({ "type": "string", "description": "Where to look", "x-mcp-header": "Region" });
        assert_eq!(*region, expected);
        let server = Server::builder("test", "1").tool(entry).tool(tool("plain", async || {}));
        let server = server.build();
        let headers_of = |tool| server.0.0.param_headers(tool, None, &Attached::default());
        let params = headers_of("find").expect("it is annotated");
        let mut names: Vec<_> = params.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["mcp-param-exact", "mcp-param-limit", "mcp-param-region"]);
        assert_eq!(headers_of("plain"), None);
        assert_eq!(headers_of("unknown"), None);
    }

    #[test]
    fn a_schema_by_hand_replaces_the_annotations() {
        let property = json!({ "type": "string", "x-mcp-header": "Other" });
        let schema = json!({ "type": "object", "properties": { "a": property } });
        let mut entry = tool("find", find).input_schema(schema);
        entry.prepare(SchemaProfile::Plain, &mut Vec::new());
        assert_eq!(entry.params.names().collect::<Vec<_>>(), ["mcp-param-other"]);
    }

    #[test]
    fn an_annotation_on_a_fraction_is_refused() {
        let share = tool("share", async |_: Args<Share>| {});
        let faults = Server::builder("test", "1").tool(share).try_build().unwrap_err();
        let told = "The tool `share` is one that clients must not use: The `x-mcp-header`";
        assert!(faults.to_string().contains(told), "{faults}");
    }
}
