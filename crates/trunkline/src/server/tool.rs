//! Tools: functions that a model can call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use trunkline_wire::json::Json as RawJson;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CallToolResult, Content, Icon, TaskSupport, Tool, ToolAnnotations};

use super::Context;
use super::function::{Function, Input};
use super::lists::Entry;
use crate::{ToolError, schema};

/// A tool, ready to be registered.
#[derive(Clone)]
pub struct ToolEntry {
    pub(crate) tool: Tool,
    run: Run,
}

type Running = Pin<Box<dyn Future<Output = CallToolResultOr> + Send>>;
type Run = Arc<dyn Fn(&Context, Option<&RawJson>) -> Result<Running, String> + Send + Sync>;
pub(crate) type CallToolResultOr = Result<CallToolResult, ErrorObject>;

/// Makes a tool of an async function. Its schemas come from the function's types.
pub fn tool<M, F>(name: impl Into<String>, function: F) -> ToolEntry
where
    F: Function<M>,
    F::Output: IntoToolResult,
{
    let mut tool = Tool::new(name, F::schema().unwrap_or_else(schema::no_input));
    tool.output_schema = F::Output::schema();
    let run = move |context: &Context, arguments: Option<&RawJson>| {
        let future = function.call(&Input { context, arguments })?;
        let running: Running = Box::pin(async move { future.await.into_tool_result() });
        Ok(running)
    };
    ToolEntry { tool, run: Arc::new(run) }
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
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.tool.input_schema = schema.into();
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
