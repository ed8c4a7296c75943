//! Prompts: message templates that a user picks and fills in with arguments.

use std::sync::Arc;

use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{GetPromptResult, Icon, Prompt, PromptArgument, PromptMessage};

use super::complete::Completions;
use super::compose::Origin;
use super::function::{Function, Input, Rejection, Signature};
use super::job::Work;
use super::proxy::Completer;
use super::texts::Texts;
use crate::ToolError;
use crate::caller::Visible;
use crate::schema::{self, SchemaProfile};

/// A prompt, ready to be registered.
///
/// ```
/// let plan = trunkline::prompt("plan", async || "Plan my day.".to_owned()).title("Plan a day");
/// assert!(trunkline::Server::builder("days", "1.0.0").prompt(plan).try_build().is_ok());
/// ```
#[derive(Clone)]
pub struct PromptEntry {
    pub(crate) prompt: Prompt,
    pub(crate) completions: Completions,
    pub(crate) signature: Signature,
    pub(crate) visible: Visible,
    /// Set if a mounted server offers it.
    pub(crate) origin: Option<Arc<Origin>>,
    /// Completes its arguments at a remote server.
    pub(crate) completer: Option<Completer>,
    texts: Texts,
    run: Run,
}

type Run = Arc<dyn Fn(&Input<'_>) -> Result<Work<GetPromptResult>, Rejection> + Send + Sync>;

/// Makes a prompt of an async function. Its arguments are the members of the function's
/// [`Args`](crate::Args).
///
/// ```
/// # use trunkline::{Args, Client, Server, data, prompt};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// #[data]
/// struct Day { city: String }
/// let plan = prompt("plan", async |Args(it): Args<Day>| format!("Plan a day in {}.", it.city));
/// let server = Server::builder("days", "1.0.0").prompt(plan).build();
/// let prompt = Client::in_memory(&server).await?.get_prompt("plan", [("city", "Oslo")]).await?;
/// assert_eq!(prompt.messages[0].content.as_text(), Some("Plan a day in Oslo."));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn prompt<M, F>(name: impl Into<String>, function: F) -> PromptEntry
where
    F: Function<M>,
    F::Output: IntoPrompt,
{
    let mut prompt = Prompt::new(name);
    let mut signature = Signature::default();
    F::describe(&mut signature);
    let schema = signature.schema(SchemaProfile::Plain);
    for (name, description, required) in schema.iter().flat_map(schema::members) {
        let mut argument = PromptArgument::new(name);
        argument.description = description;
        argument.required = required;
        prompt.arguments.push(argument);
    }
    let run = move |input: &Input<'_>| {
        let future = function.call(input)?;
        let work: Work<GetPromptResult> = Box::pin(async move { future.await.into_prompt() });
        Ok(work)
    };
    let completions = Completions::new();
    PromptEntry {
        prompt,
        completions,
        signature,
        visible: None,
        origin: None,
        completer: None,
        texts: Texts::default(),
        run: Arc::new(run),
    }
}

/// What can be registered as a prompt: a [`PromptEntry`], or a function with `#[prompt]`.
///
/// ```
/// use trunkline::server::{IntoPromptEntry, PromptEntry};
///
/// struct Plan;
///
/// impl IntoPromptEntry for Plan {
///     fn into_prompt_entry(self) -> PromptEntry {
///         trunkline::prompt("plan", async || "Plan my day.".to_owned())
///     }
/// }
///
/// assert!(trunkline::Server::builder("days", "1.0.0").prompt(Plan).try_build().is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt",
    note = "write `prompt(\"name\", function)`, or put `#[prompt]` on the function"
)]
pub trait IntoPromptEntry<Marker = ()> {
    /// The prompt.
    ///
    /// ```
    /// use trunkline::{prompt, server::IntoPromptEntry};
    ///
    /// let plan = prompt("plan", async || "Plan my day.".to_owned()).into_prompt_entry();
    /// assert!(trunkline::Server::builder("days", "1.0.0").prompt(plan).try_build().is_ok());
    /// ```
    fn into_prompt_entry(self) -> PromptEntry;
}

impl IntoPromptEntry for PromptEntry {
    fn into_prompt_entry(self) -> PromptEntry {
        self
    }
}

impl PromptEntry {
    /// Adds an icon.
    ///
    /// ```
    /// # use trunkline::{Client, Server, model::Icon, prompt};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let icon = Icon::new("https://example.com/sun.svg");
    /// let plan = prompt("plan", async || "Plan my day.".to_owned()).icon(icon.clone());
    /// let client = Client::in_memory(&Server::builder("days", "1").prompt(plan).build()).await?;
    /// assert_eq!(client.list_prompts().await?[0].icons, [icon]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.prompt.icons.push(icon);
        self
    }

    pub(crate) fn start(&self, input: Input<'_>) -> Result<Work<GetPromptResult>, Rejection> {
        self.texts.read(input, &*self.run)
    }

    /// Prepares it for calls, and adds its faults.
    pub(crate) fn prepare(&mut self, faults: &mut Vec<String>) {
        let name = &self.prompt.name;
        if name.is_empty() {
            faults.push("A prompt has no name.".to_owned());
        }
        if self.signature.arguments.len() > 1 {
            faults.push(format!("The prompt `{name}` reads its arguments twice; keep one `Args`."));
        }
        self.texts = Texts::of(&self.signature);
    }
}

/// What a prompt may return.
///
/// ```
/// use trunkline::server::IntoPrompt;
///
/// assert_eq!("Plan my day.".to_owned().into_prompt().unwrap().messages.len(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    note = "return a `String`, `Vec<PromptMessage>`, `GetPromptResult` or a `Result` of one of them"
)]
pub trait IntoPrompt: Send + 'static {
    /// Converts it into the protocol's result.
    ///
    /// ```
    /// use trunkline::{ToolError, server::IntoPrompt};
    ///
    /// let failed: Result<String, ToolError> = Err(ToolError::new("There is no plan."));
    /// assert_eq!(failed.into_prompt().unwrap_err().message, "There is no plan.");
    /// ```
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
        self.map_err(|error| error.into().into_rpc())?.into_prompt()
    }
}
