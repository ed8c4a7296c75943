//! Tools: functions that a model can call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json as RawJson;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CallToolResult, Content, Icon, TaskSupport, Tool, ToolAnnotations};

use super::function::{Function, Input};
use super::lists::Entry;
use super::{Context, Inner};
use crate::{ToolError, schema};

/// A tool, ready to be registered.
#[derive(Clone)]
pub struct ToolEntry {
    pub(crate) tool: Tool,
    /// The arguments that HTTP repeats as headers.
    pub(crate) params: ParamHeaders,
    run: Run,
}

type Running = Pin<Box<dyn Future<Output = CallToolResultOr> + Send>>;
type Run = Arc<dyn Fn(&Context, Option<&RawJson>) -> Result<Running, String> + Send + Sync>;
pub(crate) type CallToolResultOr = Result<CallToolResult, ErrorObject>;

/// Makes a tool of an async function. Its schemas come from the function's types.
///
/// A field with `#[schemars(extend("x-mcp-header" = "Region"))]` is repeated by clients of
/// 2026-07-28 as the HTTP header `Mcp-Param-Region`, for whatever routes by it. Only strings,
/// integers and truth values can be, and secrets should not.
///
/// # Panics
/// If such an annotation is wrong: clients would have to do without the tool.
pub fn tool<M, F>(name: impl Into<String>, function: F) -> ToolEntry
where
    F: Function<M>,
    F::Output: IntoToolResult,
{
    let mut tool = Tool::new(name, F::schema().unwrap_or_else(schema::no_input));
    tool.output_schema = F::Output::schema();
    let params = param_headers(&tool);
    let run = move |context: &Context, arguments: Option<&RawJson>| {
        let future = function.call(&Input { context, arguments })?;
        let running: Running = Box::pin(async move { future.await.into_tool_result() });
        Ok(running)
    };
    ToolEntry { tool, params, run: Arc::new(run) }
}

fn param_headers(tool: &Tool) -> ParamHeaders {
    ParamHeaders::read(&tool.input_schema).unwrap_or_else(|invalid| {
        panic!("`{}` is a tool that clients must not use: {invalid}", tool.name)
    })
}

impl ToolEntry {
    /// Says what it is for.
    #[must_use]
    pub fn about(mut self, description: impl Into<String>) -> Self {
        self.tool.description = Some(description.into());
        self
    }

    /// Names it for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.tool.title = Some(title.into());
        self
    }

    /// Says how it behaves.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.tool.annotations = Some(annotations);
        self
    }

    /// Gives it a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.tool.icons.push(icon);
        self
    }

    /// Lets it run as a task that outlives its request.
    #[must_use]
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.tool.task_support = support;
        self
    }

    /// Replaces the schema that the types gave.
    ///
    /// # Panics
    /// If an `x-mcp-header` in it is wrong; see [`tool`].
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.tool.input_schema = schema.into();
        self.params = param_headers(&self.tool);
        self
    }

    /// Starts the function, or says what is wrong with the arguments.
    pub(crate) fn start(
        &self,
        context: &Context,
        arguments: Option<&RawJson>,
    ) -> Result<Running, String> {
        (self.run)(context, arguments)
    }
}

impl Inner {
    /// The arguments of a tool that HTTP repeats as headers, if it has any.
    pub(super) fn param_headers(&self, tool: &str) -> Option<&ParamHeaders> {
        self.tools.find(tool).map(|it| &it.params).filter(|it| !it.is_empty())
    }
}

impl Entry for ToolEntry {
    fn key(&self) -> &str {
        &self.tool.name
    }
}

/// A structured result: the type gives the output schema, and older revisions get it as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// What a tool may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "return a `String`, `Json<T>`, `Content`, `Vec<Content>`, `CallToolResult`, `()` or a `Result` of one of them"
)]
pub trait IntoToolResult: Send + 'static {
    /// Turns it into the protocol's result, or into an error of the call itself.
    fn into_tool_result(self) -> CallToolResultOr;

    /// The schema of the structured part, if there is one.
    fn schema() -> Option<RawJson> {
        None
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> CallToolResultOr {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> CallToolResultOr {
        Ok(CallToolResult::text(self))
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> CallToolResultOr {
        Ok(CallToolResult::text(self))
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> CallToolResultOr {
        Ok(CallToolResult::new(Vec::new()))
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> CallToolResultOr {
        Ok(CallToolResult::new(vec![self]))
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> CallToolResultOr {
        Ok(CallToolResult::new(self))
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> CallToolResultOr {
        RawJson::try_of(&self.0)
            .map(CallToolResult::structured)
            .map_err(|_| ErrorObject::internal("result", "The tool's result cannot be written."))
    }

    fn schema() -> Option<RawJson> {
        Some(schema::output::<T>())
    }
}

impl<T: IntoToolResult, E: Into<ToolError> + Send + 'static> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> CallToolResultOr {
        match self.map_err(Into::into) {
            Ok(result) => result.into_tool_result(),
            Err(ToolError { rpc: Some(error), .. }) => Err(error),
            Err(error) => {
                let mut result = CallToolResult::error(error.message);
                result.structured_content = error.data;
                Ok(result)
            }
        }
    }

    fn schema() -> Option<RawJson> {
        T::schema()
    }
}

#[cfg(test)]
mod tests {
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
        let params = server.0.0.param_headers("find").expect("it is annotated");
        let mut names: Vec<_> = params.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["mcp-param-exact", "mcp-param-limit", "mcp-param-region"]);
        assert_eq!(server.0.0.param_headers("plain"), None);
        assert_eq!(server.0.0.param_headers("unknown"), None);
    }

    #[test]
    fn a_schema_by_hand_replaces_the_annotations() {
        let property = json!({ "type": "string", "x-mcp-header": "Other" });
        let schema = json!({ "type": "object", "properties": { "a": property } });
        let entry = tool("find", find).input_schema(schema);
        assert_eq!(entry.params.names().collect::<Vec<_>>(), ["mcp-param-other"]);
    }

    #[test]
    #[should_panic(expected = "`share` is a tool that clients must not use: The `x-mcp-header`")]
    fn an_annotation_on_a_fraction_is_refused() {
        let _ = tool("share", async |_: Args<Share>| {});
    }
}
