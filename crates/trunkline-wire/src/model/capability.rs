//! Who the two sides are and what they can do.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::SkillsSettings;
use super::spelling::{is_false, null_is_default, presence};
use crate::json::Json;
use crate::method::Gate;

/// The extension that brings tasks to 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The extension for skills (SEP-2640).
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// A client or server, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// Its name, for programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// How to draw it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
}

/// A picture of something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Its type, if the source does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// `48x48`, `any` …
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub sizes: Vec<String>,
    /// The background it is drawn for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

/// The background an icon is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum IconTheme {
    Light,
    Dark,
}

/// What a client can do for a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Things outside the specification.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, Json>,
    /// It answers `roots/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// It lets its model be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// It lets its user be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// It runs tasks of its own (2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ClientTasks>,
    /// Extensions and their settings, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Json>,
}

/// How a client tells its roots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RootsCapability {
    /// It says when they change.
    #[serde(skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// What a client's model may be asked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SamplingCapability {
    /// Context of this or all servers.
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    pub context: bool,
    /// Tools.
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    pub tools: bool,
}

/// How a client's user may be asked. An empty object on the wire means forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Modes")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// By a form.
    pub form: bool,
    /// By sending them to a URL.
    pub url: bool,
    /// Forms only, and spelled `{}`: as it came, or as 2025-06-18 has it.
    pub(crate) bare: bool,
}

/// Which requests a client turns into tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TasksOnWire", into = "TasksOnWire")]
#[non_exhaustive]
pub struct ClientTasks {
    /// It answers `tasks/list`.
    pub list: bool,
    /// It answers `tasks/cancel`.
    pub cancel: bool,
    /// `sampling/createMessage` may become a task.
    pub sampling: bool,
    /// `elicitation/create` may become a task.
    pub elicitation: bool,
}

/// What a server can do for a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Things outside the specification.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, Json>,
    /// It sends log messages.
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    pub logging: bool,
    /// It completes arguments.
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    pub completions: bool,
    /// It has prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListChanged>,
    /// It has resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// It has tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListChanged>,
    /// It runs tasks (2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ServerTasks>,
    /// Extensions and their settings, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Json>,
}

/// A list that may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ListChanged {
    /// The server says when it does.
    #[serde(skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// What a server tells about its resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// When one changes, to who asked.
    #[serde(skip_serializing_if = "is_false")]
    pub subscribe: bool,
    /// When the list changes.
    #[serde(skip_serializing_if = "is_false")]
    pub list_changed: bool,
}

/// Which requests a server turns into tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TasksOnWire", into = "TasksOnWire")]
#[non_exhaustive]
pub struct ServerTasks {
    /// It answers `tasks/list`.
    pub list: bool,
    /// It answers `tasks/cancel`.
    pub cancel: bool,
    /// `tools/call` may become a task.
    pub tools_call: bool,
}

impl Implementation {
    /// A name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

setters! { Implementation:
    /// Names it for people.
    title(String);
    /// Says what it does.
    description(String);
    /// Says where to read more.
    website_url(String);
    /// Says how to draw it.
    icons(Vec<Icon>);
}

impl Icon {
    /// A picture at a URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }
}

setters! { Icon:
    /// Says its type.
    mime_type(String);
    /// Says its sizes.
    sizes(Vec<String>);
    /// Says its background.
    theme(IconTheme);
}

impl ClientCapabilities {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the client serves methods behind `gate`.
    pub fn supports(&self, gate: Gate) -> bool {
        match gate {
            Gate::None => true,
            Gate::Sampling => self.sampling.is_some(),
            Gate::Roots => self.roots.is_some(),
            Gate::Elicitation => self.elicitation.is_some(),
            Gate::Tasks => self.tasks.is_some(),
            Gate::TaskList => self.tasks.is_some_and(|tasks| tasks.list),
            Gate::TaskCancel => self.tasks.is_some_and(|tasks| tasks.cancel),
            Gate::TasksExtension => self.extensions.contains_key(TASKS_EXTENSION),
            Gate::Tools
            | Gate::Prompts
            | Gate::Resources
            | Gate::Subscribe
            | Gate::Logging
            | Gate::Completions
            | Gate::Skills
            | Gate::Directories => false,
        }
    }
}

setters! { ClientCapabilities:
    /// Answers `roots/list`.
    roots(RootsCapability);
    /// Lets the model be asked.
    sampling(SamplingCapability);
    /// Lets the user be asked.
    elicitation(ElicitationCapability);
    /// Runs tasks of its own.
    tasks(ClientTasks);
    /// Speaks these extensions.
    extensions(BTreeMap<String, Json>);
    /// Things outside the specification.
    experimental(BTreeMap<String, Json>);
}

impl RootsCapability {
    /// Roots that may change, or not.
    pub fn new(list_changed: bool) -> Self {
        Self { list_changed }
    }
}

impl SamplingCapability {
    /// Plain sampling.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { SamplingCapability:
    /// Takes context of servers.
    context(bool);
    /// Takes tools.
    tools(bool);
}

impl ElicitationCapability {
    /// Forms only.
    pub const FORM: Self = Self { form: true, url: false, bare: false };
    /// URLs only.
    pub const URL: Self = Self { form: false, url: true, bare: false };
    /// Both.
    pub const BOTH: Self = Self { form: true, url: true, bare: false };
}

impl ServerCapabilities {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the server serves methods behind `gate`.
    pub fn supports(&self, gate: Gate) -> bool {
        match gate {
            Gate::None => true,
            Gate::Tools => self.tools.is_some(),
            Gate::Prompts => self.prompts.is_some(),
            Gate::Resources => self.resources.is_some(),
            Gate::Subscribe => self.resources.is_some_and(|resources| resources.subscribe),
            Gate::Logging => self.logging,
            Gate::Completions => self.completions,
            Gate::Tasks => self.tasks.is_some(),
            Gate::TaskList => self.tasks.is_some_and(|tasks| tasks.list),
            Gate::TaskCancel => self.tasks.is_some_and(|tasks| tasks.cancel),
            Gate::TasksExtension => self.extensions.contains_key(TASKS_EXTENSION),
            Gate::Skills => self.extensions.contains_key(SKILLS_EXTENSION),
            Gate::Directories => {
                self.extensions.get(SKILLS_EXTENSION).is_some_and(SkillsSettings::reads_directories)
            }
            Gate::Sampling | Gate::Roots | Gate::Elicitation => false,
        }
    }
}

setters! { ServerCapabilities:
    /// Sends log messages.
    logging(bool);
    /// Completes arguments.
    completions(bool);
    /// Has prompts.
    prompts(ListChanged);
    /// Has resources.
    resources(ResourcesCapability);
    /// Has tools.
    tools(ListChanged);
    /// Runs tasks.
    tasks(ServerTasks);
    /// Speaks these extensions.
    extensions(BTreeMap<String, Json>);
    /// Things outside the specification.
    experimental(BTreeMap<String, Json>);
}

impl ListChanged {
    /// A list whose changes are told, or not.
    pub fn new(list_changed: bool) -> Self {
        Self { list_changed }
    }
}

impl ResourcesCapability {
    /// Resources whose changes are not told.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ResourcesCapability:
    /// Tells when one changes.
    subscribe(bool);
    /// Tells when the list changes.
    list_changed(bool);
}

impl ServerTasks {
    /// `tools/call` as tasks, which can be listed and cancelled.
    pub const ALL: Self = Self { list: true, cancel: true, tools_call: true };
}

impl ClientTasks {
    /// Everything as tasks, which can be listed and cancelled.
    pub const ALL: Self = Self { list: true, cancel: true, sampling: true, elicitation: true };
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Modes {
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    form: bool,
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    url: bool,
}

impl From<Modes> for ElicitationCapability {
    fn from(Modes { form, url }: Modes) -> Self {
        let bare = !form && !url;
        Self { form: form || bare, url, bare }
    }
}

impl Serialize for ElicitationCapability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.bare && !self.url {
            return serializer.serialize_map(Some(0))?.end();
        }
        Modes { form: self.form, url: self.url }.serialize(serializer)
    }
}

/// Both sides' `tasks` capability as 2025-11-25 nests it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct TasksOnWire {
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    list: bool,
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    cancel: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<TaskRequests>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct TaskRequests {
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<TaskMethods>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling: Option<TaskMethods>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elicitation: Option<TaskMethods>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TaskMethods {
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    call: bool,
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    create_message: bool,
    #[serde(with = "presence", skip_serializing_if = "is_false")]
    create: bool,
}

impl From<TasksOnWire> for ServerTasks {
    fn from(wire: TasksOnWire) -> Self {
        let requests = wire.requests.unwrap_or_default();
        let tools_call = requests.tools.is_some_and(|tools| tools.call);
        Self { list: wire.list, cancel: wire.cancel, tools_call }
    }
}

impl From<ServerTasks> for TasksOnWire {
    fn from(tasks: ServerTasks) -> Self {
        let tools = tasks.tools_call.then_some(TaskMethods { call: true, ..Default::default() });
        let requests = tools.map(|tools| TaskRequests { tools: Some(tools), ..Default::default() });
        Self { list: tasks.list, cancel: tasks.cancel, requests }
    }
}

impl From<TasksOnWire> for ClientTasks {
    fn from(wire: TasksOnWire) -> Self {
        let requests = wire.requests.unwrap_or_default();
        Self {
            list: wire.list,
            cancel: wire.cancel,
            sampling: requests.sampling.is_some_and(|sampling| sampling.create_message),
            elicitation: requests.elicitation.is_some_and(|elicitation| elicitation.create),
        }
    }
}

impl From<ClientTasks> for TasksOnWire {
    fn from(tasks: ClientTasks) -> Self {
        let sampling = TaskMethods { create_message: true, ..Default::default() };
        let elicitation = TaskMethods { create: true, ..Default::default() };
        let requests = TaskRequests {
            tools: None,
            sampling: tasks.sampling.then_some(sampling),
            elicitation: tasks.elicitation.then_some(elicitation),
        };
        let requests = (tasks.sampling || tasks.elicitation).then_some(requests);
        Self { list: tasks.list, cancel: tasks.cancel, requests }
    }
}
