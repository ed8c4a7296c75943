//! One method for each call of the specification.

use std::sync::PoisonError;

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_wire::era::Tasks;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{
    CallToolParams, CallToolResult, CompleteParams, CompleteResult, Completion, DetailedTask,
    EmptyResult, GetPromptParams, GetPromptResult, InputResponse, ListParams, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult, LogLevel,
    Prompt, ReadResourceParams, ReadResourceResult, Resource, ResourceTemplate, SetLevelParams,
    SubscriptionFilter, Task, TaskParams, Tool, UpdateTaskParams,
};
use trunkline_wire::revision::Era;

use super::Client;
use super::call::{Ask, Call, Running};
use super::error::CallError;
use super::listen::Listener;
use super::pages::{Page, follow, one};
use super::rejected::RejectedTool;
use super::tasks::{self, ToolCall};

impl Client {
    /// Whether the server is there. 2026-07-28 has no `ping`; there it is asked who it is.
    pub fn ping(&self) -> Call<()> {
        let method = match self.caller.revision().era() {
            Era::Stateful => "ping",
            Era::Stateless => "server/discover",
        };
        self.done(self.caller.ask_raw(method, Ok(Object::default())))
    }

    /// All tools that can be used; [`Self::rejected_tools`] has the others.
    pub fn list_tools(&self) -> Call<Vec<Tool>> {
        self.all::<ListToolsResult>("tools/list")
    }

    /// One page of tools.
    pub fn list_tools_page(&self, cursor: Option<&str>) -> Call<ListToolsResult> {
        self.page("tools/list", cursor)
    }

    /// The tools that the last lists left out, because the protocol forbids to use them. Worth a
    /// warning: whoever wrote them does not know.
    pub fn rejected_tools(&self) -> Vec<RejectedTool> {
        self.caller.shared.rejected.list()
    }

    /// Forgets every answer that is still fresh, so that the next calls ask the server. To be used
    /// when the client goes on in somebody else's name.
    pub fn clear_cache(&self) {
        self.caller.shared.cache.clear();
    }

    /// All resources.
    pub fn list_resources(&self) -> Call<Vec<Resource>> {
        self.all::<ListResourcesResult>("resources/list")
    }

    /// One page of resources.
    pub fn list_resources_page(&self, cursor: Option<&str>) -> Call<ListResourcesResult> {
        self.page("resources/list", cursor)
    }

    /// All resource templates.
    pub fn list_resource_templates(&self) -> Call<Vec<ResourceTemplate>> {
        self.all::<ListResourceTemplatesResult>("resources/templates/list")
    }

    /// One page of resource templates.
    pub fn list_resource_templates_page(
        &self,
        cursor: Option<&str>,
    ) -> Call<ListResourceTemplatesResult> {
        self.page("resources/templates/list", cursor)
    }

    /// All prompts.
    pub fn list_prompts(&self) -> Call<Vec<Prompt>> {
        self.all::<ListPromptsResult>("prompts/list")
    }

    /// One page of prompts.
    pub fn list_prompts_page(&self, cursor: Option<&str>) -> Call<ListPromptsResult> {
        self.page("prompts/list", cursor)
    }

    /// Calls a tool. `arguments` write themselves as an object, or as `null` for none. A call
    /// that becomes a task is followed to its end.
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<CallToolResult> {
        Call::new(self.tool(name.into(), &arguments), tasks::call_tool)
    }

    /// Calls a tool for its structured result, or for its text if that is JSON or a `String` is wanted. A tool that
    /// reports an error is [`CallError::Tool`]. Once the tool has been listed, a result that is not
    /// what its `outputSchema` promises is [`CallError::Schema`].
    pub fn call<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<T> {
        Call::new(self.tool(name.into(), &arguments), |ask| {
            Box::pin(async move {
                let (caller, tool) = (ask.caller.clone(), ask.tool());
                let result = tasks::call_tool(ask).await?;
                if let (Some(content), false) = (&result.structured_content, result.is_error()) {
                    let known = &caller.shared.known;
                    known.check(&tool, content).map_err(|why| CallError::Schema { tool, why })?;
                }
                structured(result)
            })
        })
    }

    /// Calls a tool as a task, where tool and server have them; the caller minds the task.
    pub fn call_tool_task(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<ToolCall> {
        Call::new(self.tool(name.into(), &arguments), tasks::call_tool_task)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        Call::plain(self.caller.ask("resources/read", ReadResourceParams::new(uri)))
    }

    /// Gets a prompt, filled in.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Call<GetPromptResult> {
        let arguments = arguments.into_iter().map(|(name, value)| (name.into(), value.into()));
        let params = GetPromptParams::new(name)
            .arguments(arguments.collect::<std::collections::BTreeMap<_, _>>());
        Call::plain(self.caller.ask("prompts/get", params))
    }

    /// Completes what someone began to type.
    pub fn complete(&self, params: CompleteParams) -> Call<Completion> {
        Call::new(self.caller.ask("completion/complete", params), |mut ask| {
            Box::pin(async move { Ok(ask.send_and_read::<CompleteResult>().await?.completion) })
        })
    }

    /// Sets the least severe log message the server should send: once where the server remembers
    /// it, with every later request in 2026-07-28.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), CallError> {
        *self.caller.log_level() = Some(level);
        match self.caller.revision().era() {
            Era::Stateful => {
                self.done(self.caller.ask("logging/setLevel", SetLevelParams::new(level))).await
            }
            Era::Stateless => Ok(()),
        }
    }

    /// Hears of what `filter` names until the listener is dropped.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listener, CallError> {
        Listener::open(&self.caller, filter).await
    }

    /// Hears of changes to one resource, through [`Responder::on_change`](super::Responder::on_change).
    pub async fn subscribe(&self, uri: impl Into<String>) -> Result<(), CallError> {
        let uri = uri.into();
        let filter = SubscriptionFilter::new().resource_subscriptions(vec![uri.clone()]);
        let listener = self.listen(filter).await?;
        if listener.honoured().resource_subscriptions.is_empty() {
            let message = "The server does not tell when its resources change.";
            return Err(CallError::Refused(ErrorObject::invalid_request(message)));
        }
        listener.mute();
        self.subscriptions().insert(uri, listener);
        Ok(())
    }

    /// No longer hears of changes to a resource.
    pub async fn unsubscribe(&self, uri: &str) {
        let listener = self.subscriptions().remove(uri);
        if let Some(listener) = listener {
            listener.close().await;
        }
    }

    /// All tasks; only 2025-11-25 has such a list.
    pub fn list_tasks(&self) -> Call<Vec<Task>> {
        self.all::<ListTasksResult>("tasks/list")
    }

    /// One page of tasks.
    pub fn list_tasks_page(&self, cursor: Option<&str>) -> Call<ListTasksResult> {
        self.page("tasks/list", cursor)
    }

    /// How a task stands.
    pub fn get_task(&self, task_id: impl Into<String>) -> Call<DetailedTask> {
        Call::plain(self.caller.ask("tasks/get", TaskParams::new(task_id)))
    }

    /// The result of a task, once it is there. Questions are answered meanwhile.
    pub fn task_result(&self, task_id: impl Into<String>) -> Call<CallToolResult> {
        Call::new(self.caller.ask("tasks/result", TaskParams::new(task_id)), tasks::result)
    }

    /// Asks the server to stop a task.
    pub fn cancel_task(&self, task_id: impl Into<String>) -> Call<()> {
        let ask = self.caller.ask("tasks/cancel", TaskParams::new(task_id));
        Call::new(ask, |mut ask| Box::pin(async move { ask.send().await.map(drop) }))
    }

    /// Answers questions of a task by hand (2026-07-28). [`Self::task_result`] does it by itself.
    pub fn update_task(
        &self,
        task_id: impl Into<String>,
        answers: Vec<(String, InputResponse)>,
    ) -> Call<()> {
        let mut params = UpdateTaskParams::new(task_id, answers);
        use trunkline_wire::era::stateful::Fit;
        let profile = self.caller.revision().profile();
        params.input_responses.iter_mut().for_each(|(_, answer)| answer.fit(profile));
        self.done(self.caller.ask("tasks/update", params))
    }

    /// Tells the server that the roots have changed, where there is such a message.
    pub async fn roots_changed(&self) {
        let voice = &self.caller.voice;
        voice.notify("notifications/roots/list_changed", Object::default()).await;
    }

    /// Whether tools can be called as tasks here.
    pub fn has_tasks(&self) -> bool {
        let opened = &self.caller.opened;
        match opened.revision.profile().tasks {
            Tasks::None => false,
            Tasks::Core => opened.capabilities.tasks.is_some_and(|it| it.tools_call),
            Tasks::Extension => {
                opened.capabilities.extensions.contains_key(trunkline_wire::model::TASKS_EXTENSION)
            }
        }
    }

    fn tool(&self, name: String, arguments: &impl Serialize) -> Ask {
        let params = Json::try_of(arguments)
            .map_err(|err| CallError::refused(format!("The arguments cannot be written: {err}.")))
            .and_then(|arguments| match (arguments.is_null(), arguments.is_object()) {
                (true, _) => Ok(CallToolParams::new(name).into_object()),
                (_, true) => Ok(CallToolParams::new(name).arguments(arguments).into_object()),
                _ => Err(CallError::refused("The arguments of a tool must be an object.")),
            });
        self.caller.ask_raw("tools/call", params)
    }

    fn all<P: Page>(&self, method: &'static str) -> Call<Vec<P::Item>> {
        Call::new(self.caller.ask(method, ListParams::new()), follow::<P>)
    }

    fn page<P: Page>(&self, method: &'static str, cursor: Option<&str>) -> Call<P> {
        let mut params = ListParams::new();
        params.cursor = cursor.map(str::to_owned);
        Call::new(self.caller.ask(method, params), one::<P>)
    }

    fn done(&self, ask: Ask) -> Call<()> {
        Call::new(ask, done)
    }

    fn subscriptions(
        &self,
    ) -> std::sync::MutexGuard<'_, std::collections::BTreeMap<String, Listener>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn done(mut ask: Ask) -> Running<()> {
    Box::pin(async move { ask.send_and_read::<EmptyResult>().await.map(drop) })
}

fn structured<T: DeserializeOwned>(result: CallToolResult) -> Result<T, CallError> {
    if result.is_error() {
        return Err(CallError::Tool(Box::new(result)));
    }
    let unreadable = |why: String| CallError::Decode { method: "tools/call", why };
    if let Some(value) = &result.structured_content {
        return value.to().map_err(|err| unreadable(err.to_string()));
    }
    match result.content.as_slice() {
        [block] if block.as_text().is_some() => {
            let text = block.as_text().unwrap_or_default();
            serde_json::from_str(text).or_else(|err| {
                // A plain text, for whoever wants a `String`.
                let text = serde_json::Value::String(text.to_owned());
                serde_json::from_value(text).map_err(|_| unreadable(err.to_string()))
            })
        }
        _ => Err(unreadable("there is neither a structured result nor one text".to_owned())),
    }
}
