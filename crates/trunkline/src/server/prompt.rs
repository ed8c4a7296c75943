//! Prompts: messages that a user picks, filled in with arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{GetPromptResult, Icon, Prompt, PromptArgument, PromptMessage};

use super::Context;
use super::function::{Function, Input};
use super::job::Work;
use super::lists::Entry;
use crate::{ToolError, schema};

/// A prompt, ready to be registered.
#[derive(Clone)]
pub struct PromptEntry {
    pub(crate) prompt: Prompt,
    pub(crate) completions: Completions,
    run: Run,
}

type Run =
    Arc<dyn Fn(&Context, Option<&Json>) -> Result<Work<GetPromptResult>, String> + Send + Sync>;

/// Suggestions for arguments: from what is typed so far and the other arguments.
pub(crate) type Completions = BTreeMap<String, Complete>;
pub(crate) type Complete =
    Arc<dyn Fn(&str, &BTreeMap<String, String>) -> Vec<String> + Send + Sync>;

/// Makes a prompt of an async function. Its arguments are the members of the function's
/// [`Args`](super::Args).
pub fn prompt<M, F>(name: impl Into<String>, function: F) -> PromptEntry
where
    F: Function<M>,
    F::Output: IntoPrompt,
{
    let mut prompt = Prompt::new(name);
    for (name, description, required) in F::schema().iter().flat_map(schema::members) {
        let mut argument = PromptArgument::new(name);
        argument.description = description;
        argument.required = required;
        prompt.arguments.push(argument);
    }
    let run = move |context: &Context, arguments: Option<&Json>| {
        let future = function.call(&Input { context, arguments })?;
        let work: Work<GetPromptResult> = Box::pin(async move { future.await.into_prompt() });
        Ok(work)
    };
    PromptEntry { prompt, completions: Completions::new(), run: Arc::new(run) }
}

impl PromptEntry {
    /// Says what it is for.
    #[must_use]
    pub fn about(mut self, description: impl Into<String>) -> Self {
        self.prompt.description = Some(description.into());
        self
    }

    /// Names it for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.prompt.title = Some(title.into());
        self
    }

    /// Gives it a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.prompt.icons.push(icon);
        self
    }

    /// Suggests values for an argument.
    #[must_use]
    pub fn complete(
        mut self,
        argument: impl Into<String>,
        complete: impl Fn(&str, &BTreeMap<String, String>) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.completions.insert(argument.into(), Arc::new(complete));
        self
    }

    pub(crate) fn start(
        &self,
        context: &Context,
        arguments: Option<&Json>,
    ) -> Result<Work<GetPromptResult>, String> {
        (self.run)(context, arguments)
    }
}

impl Entry for PromptEntry {
    fn key(&self) -> &str {
        &self.prompt.name
    }
}

/// What a prompt may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    note = "return a `String`, `Vec<PromptMessage>`, `GetPromptResult` or a `Result` of one of them"
)]
pub trait IntoPrompt: Send + 'static {
    /// Turns it into the protocol's result.
    fn into_prompt(self) -> Result<GetPromptResult, ErrorObject>;
}

impl IntoPrompt for GetPromptResult {
    fn into_prompt(self) -> Result<GetPromptResult, ErrorObject> {
        Ok(self)
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<GetPromptResult, ErrorObject> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<GetPromptResult, ErrorObject> {
        Ok(GetPromptResult::new(vec![PromptMessage::user(self)]))
    }
}

impl<T: IntoPrompt, E: Into<ToolError> + Send + 'static> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> Result<GetPromptResult, ErrorObject> {
        self.map_err(|error| into_rpc(error.into()))?.into_prompt()
    }
}

/// Prompts and resources have no result that says "it failed", so failures are errors there.
pub(crate) fn into_rpc(error: ToolError) -> ErrorObject {
    error.rpc.unwrap_or_else(|| {
        let object = ErrorObject::new(trunkline_wire::code::INTERNAL_ERROR, error.message);
        match error.data {
            Some(data) => object.with_data(data),
            None => object,
        }
    })
}
