//! A tool's return value → the protocol's result, or work that continues as a task.

use std::future::Future;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::Serialize;
use trunkline_wire::json::Json as RawJson;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CallToolResult, Content};

use super::{CallToolResultOr, Running};
use crate::ToolError;
use crate::schema::{self, SchemaProfile};
use crate::server::Context;

/// A structured result: the type gives the output schema, and older revisions get it as text.
/// ```
/// let sums = trunkline::tool("sums", async || trunkline::Json(vec![4, 5]));
/// assert!(trunkline::Server::builder("sums", "1.0.0").tool(sums).try_build().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The outcome of a tool.
/// ```
/// let _reply = trunkline::server::ToolReply::from(trunkline::model::CallToolResult::text("noon"));
/// ```
pub enum ToolReply {
    /// The protocol's result, or an error of the call itself.
    Done(CallToolResultOr),
    /// Work that continues as a task, if the client has tasks.
    Task(Box<dyn FnOnce(Context) -> Running + Send>),
}

impl From<CallToolResult> for ToolReply {
    fn from(result: CallToolResult) -> Self {
        Self::Done(Ok(result))
    }
}

/// What a tool may return.
/// ```
/// let reply = trunkline::server::IntoToolResult::into_tool_result("noon");
/// assert!(matches!(reply, trunkline::server::ToolReply::Done(Ok(_))));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "return a `String`, `Json<T>`, `Content`, `Vec<Content>`, `CallToolResult`, `()`, a `Task` or a `Result` of one of them"
)]
pub trait IntoToolResult: Send + 'static {
    /// Whether it is work that may continue as a task.
    const IS_TASK: bool = false;

    /// Converts it into the protocol's result, or into an error of the call itself.
    ///
    /// ```
    /// use trunkline::server::{IntoToolResult, ToolReply};
    ///
    /// let ToolReply::Done(Ok(result)) = "Sunny.".into_tool_result() else { panic!() };
    /// assert_eq!(result.as_text(), "Sunny.");
    /// ```
    fn into_tool_result(self) -> ToolReply;

    /// The schema of the structured part, if there is one.
    ///
    /// ```
    /// use trunkline::server::IntoToolResult;
    /// use trunkline::{Json, SchemaProfile};
    ///
    /// assert!(String::schema(SchemaProfile::Plain).is_none());
    /// let number = Json::<f64>::schema(SchemaProfile::Plain).unwrap();
    /// assert!(number.get().contains("number"));
    /// ```
    fn schema(_profile: SchemaProfile) -> Option<RawJson> {
        None
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> ToolReply {
        self.into()
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> ToolReply {
        CallToolResult::text(self).into()
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> ToolReply {
        CallToolResult::text(self).into()
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> ToolReply {
        CallToolResult::new(Vec::new()).into()
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> ToolReply {
        CallToolResult::new(vec![self]).into()
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> ToolReply {
        CallToolResult::new(self).into()
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> ToolReply {
        let result = RawJson::try_of(&self.0).map(CallToolResult::structured);
        ToolReply::Done(result.map_err(|error| {
            tracing::error!(%error, "a result cannot be written");
            ErrorObject::internal("result", "The tool's result cannot be written.")
        }))
    }

    fn schema(profile: SchemaProfile) -> Option<RawJson> {
        Some(schema::output_in::<T>(profile))
    }
}

impl<T: IntoToolResult, E: Into<ToolError> + Send + 'static> IntoToolResult for Result<T, E> {
    const IS_TASK: bool = T::IS_TASK;

    fn into_tool_result(self) -> ToolReply {
        match self {
            Ok(result) => result.into_tool_result(),
            Err(error) => ToolReply::Done(error.into().into_tool_result()),
        }
    }

    fn schema(profile: SchemaProfile) -> Option<RawJson> {
        T::schema(profile)
    }
}

/// Work that may take long. If the client has tasks it continues as one, and the client gets the
/// task at once; otherwise the call takes as long as the work.
///
/// As with a question, the handler runs again from its beginning when its call becomes a task (see
/// [`Context::become_task`]): keep the code before free of effects, or put them into
/// [`Context::once`].
///
/// ```
/// # use trunkline::{Server, ToolError, server::Task, tool};
/// async fn render() -> Result<Task<String>, ToolError> {
///     Ok(Task::new(async |cx| { cx.progress(1.0, 2.0).await; Ok("A film.".to_owned()) }))
/// }
/// assert!(Server::builder("films", "1.0.0").tool(tool("render", render)).try_build().is_ok());
/// ```
pub struct Task<T> {
    work: Box<dyn FnOnce(Context) -> Pending<T> + Send>,
}

type Pending<T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send>>;

impl<T: IntoToolResult> Task<T> {
    /// The work, given the context of its call.
    /// ```
    /// let _task = trunkline::server::Task::new(async |_| Ok("A film."));
    /// ```
    pub fn new<F, Fut>(work: F) -> Self
    where
        F: FnOnce(Context) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
    {
        Self { work: Box::new(move |context| Box::pin(work(context))) }
    }
}

impl<T: IntoToolResult> IntoToolResult for Task<T> {
    const IS_TASK: bool = true;

    fn into_tool_result(self) -> ToolReply {
        let work = self.work;
        ToolReply::Task(Box::new(move |context| {
            Box::pin(async move {
                match work(context).await.into_tool_result() {
                    ToolReply::Done(result) => result,
                    ToolReply::Task(_) => {
                        Err(ErrorObject::internal("task", "A task came to a task."))
                    }
                }
            })
        }))
    }

    fn schema(profile: SchemaProfile) -> Option<RawJson> {
        T::schema(profile)
    }
}
