//! One method for each call of the specification.

use std::sync::PoisonError;

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_wire::era::{Structured, Tasks};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    CallToolParams, CallToolResult, CompleteParams, CompleteResult, Completion, DetailedTask,
    EmptyResult, GetPromptParams, GetPromptResult, InputResponse, ListParams, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult, LogLevel,
    Prompt, ReadResourceParams, ReadResourceResult, Resource, ResourceTemplate, SetLevelParams,
    SubscriptionFilter, Task, TaskParams, Tool, UpdateTaskParams,
};
use trunkline_wire::revision::{Era, Revision};

use super::Client;
use super::call::{Ask, Call, Running};
use super::error::CallError;
use super::listen::Listener;
use super::pages::{Page, follow, one};
use super::rejected::RejectedTool;
use super::tasks::{self, ToolCall};
use super::texts::IntoTexts;

impl Client {
    /// Checks that the server answers. 2026-07-28 has no `ping`, so it sends `server/discover`.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::in_memory(&Server::builder("empty", "1.0.0").build()).await?;
    /// assert!(client.ping().await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn ping(&self) -> Call<()> {
        let method = match self.caller.revision().era() {
            Era::Stateful => Method::Ping,
            Era::Stateless => Method::ServerDiscover,
        };
        self.done(self.caller.ask_raw(method, Ok(Object::default())))
    }

    /// All usable tools; [`Self::rejected_tools`] has the others.
    pub fn list_tools(&self) -> Call<Vec<Tool>> {
        self.all::<ListToolsResult>(Method::ToolsList)
    }

    /// One page of tools.
    pub fn list_tools_page(&self, cursor: Option<&str>) -> Call<ListToolsResult> {
        self.page(Method::ToolsList, cursor)
    }

    /// The tools that the last lists left out, because the protocol forbids their use. Worth a
    /// warning to the author of the server.
    /// ```
    /// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// let client = Client::in_memory(&server).await?;
    /// client.list_tools().await?;
    /// assert!(client.rejected_tools().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn rejected_tools(&self) -> Vec<RejectedTool> {
        self.caller.shared.rejected.list()
    }

    /// Clears the cache, so that the next calls ask the server. Call this when the client continues
    /// as another user.
    /// ```
    /// # use trunkline::{Client, Server, model::CacheHint, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("empty", "1").cache(CacheHint::public(60_000)).tools_later().build();
    /// # let client = Client::in_memory(&server).await?;
    /// assert!(client.list_tools().await?.is_empty());
    /// server.put_tool(tool("new", async || "I am new."))?;
    /// client.clear_cache();
    /// assert_eq!(client.list_tools().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn clear_cache(&self) {
        self.caller.shared.cache.clear();
    }

    /// All resources.
    pub fn list_resources(&self) -> Call<Vec<Resource>> {
        self.all::<ListResourcesResult>(Method::ResourcesList)
    }

    /// One page of resources.
    pub fn list_resources_page(&self, cursor: Option<&str>) -> Call<ListResourcesResult> {
        self.page(Method::ResourcesList, cursor)
    }

    /// All resource templates.
    pub fn list_resource_templates(&self) -> Call<Vec<ResourceTemplate>> {
        self.all::<ListResourceTemplatesResult>(Method::ResourcesTemplatesList)
    }

    /// One page of resource templates.
    pub fn list_resource_templates_page(
        &self,
        cursor: Option<&str>,
    ) -> Call<ListResourceTemplatesResult> {
        self.page(Method::ResourcesTemplatesList, cursor)
    }

    /// All prompts.
    pub fn list_prompts(&self) -> Call<Vec<Prompt>> {
        self.all::<ListPromptsResult>(Method::PromptsList)
    }

    /// One page of prompts.
    pub fn list_prompts_page(&self, cursor: Option<&str>) -> Call<ListPromptsResult> {
        self.page(Method::PromptsList, cursor)
    }

    /// Calls a tool. `arguments` serialize to an object, or to `null` for none. A call that becomes
    /// a task is followed to its end.
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<CallToolResult> {
        Call::new(self.tool(name.into(), &arguments), tasks::call_tool)
    }

    /// Calls a tool for its structured result; or for its text, if that is JSON or `T` is `String`.
    /// A tool that reports an error is [`CallError::Tool`]. Once the tool has been listed, a result
    /// that violates its `outputSchema` is [`CallError::Schema`].
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
                structured(result, caller.revision())
            })
        })
    }

    /// Calls a tool as a task, if tool and server support it; the caller follows the task.
    pub fn call_tool_task(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<ToolCall> {
        Call::new(self.tool(name.into(), &arguments), tasks::call_tool_task)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        Call::plain(self.caller.ask(Method::ResourcesRead, ReadResourceParams::new(uri)))
    }

    /// Gets a prompt, filled in. The arguments are strings: pairs of them, or an object of `json!`,
    /// whose numbers become strings.
    pub fn get_prompt<M>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoTexts<M>,
    ) -> Call<GetPromptResult> {
        match arguments.into_texts() {
            Ok(texts) => {
                let params = GetPromptParams::new(name).arguments(texts);
                Call::plain(self.caller.ask(Method::PromptsGet, params))
            }
            Err(why) => Call::failed(CallError::refused(why)),
        }
    }

    /// Completes an argument that is being typed.
    pub fn complete(&self, params: CompleteParams) -> Call<Completion> {
        Call::new(self.caller.ask(Method::CompletionComplete, params), |mut ask| {
            Box::pin(async move { Ok(ask.send_and_read::<CompleteResult>().await?.completion) })
        })
    }

    /// Sets the lowest level of log messages to receive. In 2026-07-28 every later request carries
    /// it; older servers remember it.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), CallError> {
        *self.caller.log_level() = Some(level);
        match self.caller.revision().era() {
            Era::Stateful => {
                self.done(self.caller.ask(Method::LoggingSetLevel, SetLevelParams::new(level)))
                    .await
            }
            Era::Stateless => Ok(()),
        }
    }

    /// Receives the notifications that `filter` names until the listener is dropped.
    ///
    /// ```
    /// # use trunkline::{Change, Client, Server, model::SubscriptionFilter, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tools_later().build();
    /// let client = Client::in_memory(&server).await?;
    /// let mut listener = client.listen(SubscriptionFilter::new().tools_list_changed(true)).await?;
    /// server.put_tool(tool("now", async || "noon"))?;
    /// assert_eq!(listener.next().await, Some(Change::Tools));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listener, CallError> {
        Listener::open(&self.caller, filter).await
    }

    /// Receives changes of one resource, through
    /// [`Responder::on_change`](super::Responder::on_change).
    /// ```
    /// # use trunkline::{Change, Client, Server, resource}; use std::sync::mpsc::channel;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let menu = resource("menu://today", "menu", async || "Soup.");
    /// # let server = Server::builder("inn", "1.0.0").resource(menu).build();
    /// let (heard, changes) = channel();
    /// let builder = Client::builder("example", "1.0.0");
    /// let builder = builder.on_change(move |change| heard.send(change.clone()).unwrap());
    /// let client = builder.connect_memory(&server).await?;
    /// client.subscribe("menu://today").await?;
    /// server.changed(Change::Resource("menu://today".to_owned())).await;
    /// assert!(matches!(changes.recv()?, Change::Resource(uri) if uri == "menu://today"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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

    /// Ends the subscription to a resource.
    pub async fn unsubscribe(&self, uri: &str) {
        let listener = self.subscriptions().remove(uri);
        if let Some(listener) = listener {
            listener.close().await;
        }
    }

    /// All tasks; only 2025-11-25 has such a list.
    pub fn list_tasks(&self) -> Call<Vec<Task>> {
        self.all::<ListTasksResult>(Method::TasksList)
    }

    /// One page of tasks.
    pub fn list_tasks_page(&self, cursor: Option<&str>) -> Call<ListTasksResult> {
        self.page(Method::TasksList, cursor)
    }

    /// The state of a task.
    pub fn get_task(&self, task_id: impl Into<String>) -> Call<DetailedTask> {
        Call::plain(self.caller.ask(Method::TasksGet, TaskParams::new(task_id)))
    }

    /// Waits for the result of a task, and answers its questions meanwhile.
    pub fn task_result(&self, task_id: impl Into<String>) -> Call<CallToolResult> {
        Call::new(self.caller.ask(Method::TasksResult, TaskParams::new(task_id)), tasks::result)
    }

    /// Asks the server to stop a task.
    pub fn cancel_task(&self, task_id: impl Into<String>) -> Call<()> {
        let ask = self.caller.ask(Method::TasksCancel, TaskParams::new(task_id));
        Call::new(ask, |mut ask| Box::pin(async move { ask.send().await.map(drop) }))
    }

    /// Answers questions of a task by hand (2026-07-28). [`Self::task_result`] does so by itself.
    /// ```
    /// # use trunkline::{Client, Server, client::ToolCall, model::*, server::Task, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async { let ask = async || {
    /// #     Task::new(async |cx| Ok(cx.ask::<bool>("Go on?").await?.accepted()?.to_string())) };
    /// # let asking = tool("ask", ask); let server = Server::builder("films", "1").tool(asking).build();
    /// # let builder = Client::builder("example", "1").on_ask(|it| async move { it.decline() });
    /// # let client = builder.connect_memory(&server).await?;
    /// let ToolCall::Task(task) = client.call_tool_task("ask", ()).await? else { panic!() };
    /// let (key, _) = loop {
    ///     let mut task = client.get_task(&*task.task_id).await?;
    ///     if let Some(question) = task.input_requests.pop() { break question }
    /// };
    /// let yes = ElicitResult::accept(trunkline::RawJson::parse(r#"{"value":true}"#)?);
    /// client.update_task(&*task.task_id, vec![(key, InputResponse::Elicit(yes))]).await?;
    /// assert_eq!(client.task_result(task.task_id).await?.content[0].as_text(), Some("true"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn update_task(
        &self,
        task_id: impl Into<String>,
        answers: Vec<(String, InputResponse)>,
    ) -> Call<()> {
        let mut params = UpdateTaskParams::new(task_id, answers);
        use trunkline_wire::era::stateful::Fit;
        let profile = self.caller.revision().profile();
        params.input_responses.iter_mut().for_each(|(_, answer)| answer.fit(profile));
        self.done(self.caller.ask(Method::TasksUpdate, params))
    }

    /// Whether this server runs tools as tasks.
    ///
    /// ```
    /// # use trunkline::{Client, Server, server::Task, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let render = tool("render", async || Task::new(async |_| Ok("A film.")));
    /// let client = Client::in_memory(&Server::builder("films", "1").tool(render).build()).await?;
    /// assert!(client.has_tasks());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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
        self.caller.ask_raw(Method::ToolsCall, params)
    }

    fn all<P: Page>(&self, method: Method) -> Call<Vec<P::Item>> {
        Call::new(self.caller.ask(method, ListParams::new()), follow::<P>)
    }

    fn page<P: Page>(&self, method: Method, cursor: Option<&str>) -> Call<P> {
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

/// A structured result as the tool returned it. Where only objects are allowed, servers wrap other
/// values in an object, as `result`; some always do. So the wrapped value comes first where
/// wrapping is required, and last where it is not.
fn unwrapped<T: DeserializeOwned>(
    value: &Json,
    revision: Revision,
) -> Result<T, serde_json::Error> {
    let within = || {
        let mut object = Object::parse(value.get()).ok()?;
        let inner = object.take("result").filter(|_| object.is_empty())?;
        inner.to().ok()
    };
    match revision.profile().structured == Structured::Object {
        true => within().map_or_else(|| value.to(), Ok),
        false => value.to().or_else(|error| within().ok_or(error)),
    }
}

fn structured<T: DeserializeOwned>(
    result: CallToolResult,
    revision: Revision,
) -> Result<T, CallError> {
    if result.is_error() {
        return Err(CallError::Tool(Box::new(result)));
    }
    let unreadable = |why: String| CallError::Decode { method: Method::ToolsCall.name(), why };
    if let Some(value) = &result.structured_content {
        return unwrapped(value, revision).map_err(|err| unreadable(err.to_string()));
    }
    match result.content.as_slice() {
        [block] if block.as_text().is_some() => {
            let text = block.as_text().unwrap_or_default();
            serde_json::from_str(text).or_else(|err| {
                // A plain text, if `T` is a `String`.
                let text = serde_json::Value::String(text.to_owned());
                serde_json::from_value(text).map_err(|_| unreadable(err.to_string()))
            })
        }
        _ => Err(unreadable("there is neither a structured result nor one text".to_owned())),
    }
}
