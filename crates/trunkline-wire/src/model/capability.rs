//! The name, version and capabilities of either side.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::SkillsSettings;
use super::spelling::{is_false, presence};
use crate::json::Json;
use crate::method::Gate;

/// The extension that brings tasks to 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The extension for skills (SEP-2640).
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

model! {
    /// A client or server, by name.
    #[doc = example!(r##"let me: Implementation = Json::parse(r#"{"name":"a","version":"1"}"#).unwrap().to().unwrap();"##,
        r#"assert_eq!(me, Implementation::new("a", "1"));"#)]
    #[derive(Default)]
    pub struct Implementation {
        /// Its name, for programs.
        pub name: String,
        /// Its version.
        pub version: String,
        /// Its display name.
        pub title?: String,
        /// What it does.
        pub description?: String,
        /// Where to read more.
        pub website_url?: String,
        /// Its icons.
        pub icons[]: Icon,
    }

    /// An icon.
    #[doc = example!(r#"let icon = Icon::new("https://example.com/a.png").theme(IconTheme::Dark);"#,
        r##"assert_eq!(Json::of(&icon).get(), r#"{"src":"https://example.com/a.png","theme":"dark"}"#);"##)]
    #[derive(Default)]
    pub struct Icon {
        /// An `https:` or `data:` URI.
        pub src: String,
        /// Its media type, if the source does not tell.
        pub mime_type?: String,
        /// `48x48`, `any` …
        pub sizes[]: String,
        /// The background it is drawn for.
        pub theme?: IconTheme,
    }
}

/// The background an icon is drawn for.
#[doc = example!(r##"assert_eq!(Json::of(&IconTheme::Light).get(), r#""light""#);"##)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum IconTheme {
    Light,
    Dark,
}

model! {
    /// A client's capabilities.
    #[doc = example!(r##"let raw = Json::parse(r#"{"sampling":{"tools":{}},"elicitation":{}}"#).unwrap();"##,
        "let client: ClientCapabilities = raw.to().unwrap();",
        "assert!(client.sampling.is_some_and(|sampling| sampling.tools));",
        "// Read and written again it is the same, down to the empty object.",
        "assert_eq!(Json::of(&client), raw);")]
    #[derive(Default)]
    #[serde(default)]
    pub struct ClientCapabilities {
        /// Capabilities outside the specification.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub experimental: BTreeMap<String, Json>,
        /// It answers `roots/list`.
        pub roots?: RootsCapability,
        /// It answers `sampling/createMessage`.
        pub sampling?: SamplingCapability,
        /// It answers `elicitation/create`.
        pub elicitation?: ElicitationCapability,
        /// It runs tasks of its own (2025-11-25).
        pub tasks?: ClientTasks,
        /// Extensions and their settings, by id.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub extensions: BTreeMap<String, Json>,
    }

    /// A client's roots capability.
    #[doc = example!(r#"assert_eq!(Json::of(&RootsCapability::default()).get(), "{}");"#)]
    #[derive(Copy, Default, Eq)]
    #[serde(default)]
    pub struct RootsCapability {
        /// It notifies the server of changes.
        #[serde(skip_serializing_if = "is_false")]
        pub list_changed: bool,
    }

    /// What a client's model supports.
    #[doc = example!(r##"let sampling: SamplingCapability = Json::parse(r#"{"tools":{}}"#).unwrap().to().unwrap();"##,
        "assert!(sampling.tools && !sampling.context);")]
    #[derive(Copy, Default, Eq)]
    #[serde(default)]
    pub struct SamplingCapability {
        /// Including context of this or all servers.
        #[serde(with = "presence", skip_serializing_if = "is_false")]
        pub context: bool,
        /// Tools.
        #[serde(with = "presence", skip_serializing_if = "is_false")]
        pub tools: bool,
    }
}

/// How a client's user may be asked. `{}` on the wire means forms.
#[doc = example!("let bare: ElicitationCapability = Json::empty_object().to().unwrap();",
    "assert!(bare.form && !bare.url);",
    r##"assert_eq!(Json::of(&ElicitationCapability::FORM).get(), r#"{"form":{}}"#);"##)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Modes")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// By a form.
    pub form: bool,
    /// By sending them to a URL.
    pub url: bool,
    /// Forms only, and spelled `{}`: as received, or as in 2025-06-18.
    pub(crate) bare: bool,
}

/// Which requests a client turns into tasks.
#[doc = example!("let tasks: ClientTasks = Json::of(&ClientTasks::ALL).to().unwrap();",
    "assert!(tasks.sampling && tasks.elicitation);")]
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

model! {
    /// A server's capabilities.
    #[doc = example!("let server = ServerCapabilities::new().tools(ListChanged::new(true)).logging(true);",
        r##"assert_eq!(Json::of(&server).get(), r#"{"logging":{},"tools":{"listChanged":true}}"#);"##)]
    #[derive(Default)]
    #[serde(default)]
    pub struct ServerCapabilities {
        /// Capabilities outside the specification.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub experimental: BTreeMap<String, Json>,
        /// It sends log messages.
        #[serde(with = "presence", skip_serializing_if = "is_false")]
        pub logging: bool,
        /// It completes arguments.
        #[serde(with = "presence", skip_serializing_if = "is_false")]
        pub completions: bool,
        /// It has prompts.
        pub prompts?: ListChanged,
        /// It has resources.
        pub resources?: ResourcesCapability,
        /// It has tools.
        pub tools?: ListChanged,
        /// It runs tasks (2025-11-25).
        pub tasks?: ServerTasks,
        /// Extensions and their settings, by id.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub extensions: BTreeMap<String, Json>,
    }

    /// A list that may change.
    #[doc = example!("let quiet: ListChanged = Json::empty_object().to().unwrap();",
        "assert!(!quiet.list_changed);")]
    #[derive(Copy, Default, Eq)]
    #[serde(default)]
    pub struct ListChanged {
        /// The server notifies clients of changes.
        #[serde(skip_serializing_if = "is_false")]
        pub list_changed: bool,
    }

    /// A server's resources capability.
    #[doc = example!("let told = ResourcesCapability::new().subscribe(true).list_changed(true);",
        r##"assert_eq!(Json::of(&told).get(), r#"{"subscribe":true,"listChanged":true}"#);"##)]
    #[derive(Copy, Default, Eq)]
    #[serde(default)]
    pub struct ResourcesCapability {
        /// It notifies subscribers of changes.
        #[serde(skip_serializing_if = "is_false")]
        pub subscribe: bool,
        /// It notifies clients of changes of the list.
        #[serde(skip_serializing_if = "is_false")]
        pub list_changed: bool,
    }
}

/// Which requests a server turns into tasks.
#[doc = example!(r##"let json = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;"##,
    "assert_eq!(Json::of(&ServerTasks::ALL).get(), json);")]
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
    #[doc = example!(r#"let json = Json::of(&Implementation::new("travel", "1.2.0"));"#,
        r##"assert_eq!(json.get(), r#"{"name":"travel","version":"1.2.0"}"#);"##)]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

setters! { Implementation = Implementation::new("travel", "1.2.0");
    /// Sets its display name.
    title(String) = "Travel desk" => r#""title":"Travel desk""#;
    /// Sets its description.
    description(String) = "Books trips" => r#""description":"Books trips""#;
    /// Sets its website.
    website_url(String) = "https://example.com" => r#""websiteUrl":"https://example.com""#;
    /// Sets its icons.
    icons(Vec<Icon>) = [Icon::new("data:image/png;base64,AA==")] => r#""icons":[{"src":"data:"#;
}

impl Icon {
    /// A picture at a URI.
    #[doc = example!(r#"assert_eq!(Icon::new("https://example.com/a.png").sizes, [""; 0]);"#)]
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }
}

setters! { Icon = Icon::new("https://example.com/logo.svg");
    /// Sets its media type.
    mime_type(String) = "image/svg+xml" => r#""mimeType":"image/svg+xml""#;
    /// Sets its sizes.
    sizes(Vec<String>) = ["48x48".to_owned(), "any".to_owned()] => r#""sizes":["48x48","any"]"#;
    /// Sets the background it is for.
    theme(IconTheme) = IconTheme::Dark => r#""theme":"dark""#;
}

impl ClientCapabilities {
    /// None.
    #[doc = example!(r#"assert_eq!(Json::of(&ClientCapabilities::new()).get(), "{}");"#)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the client serves methods behind `gate`.
    #[doc = example!("use trunkline_wire::method::Gate;",
        "let client = ClientCapabilities::new().roots(RootsCapability::new(false));",
        "assert!(client.supports(Gate::Roots) && client.supports(Gate::None));",
        r#"assert!(!client.supports(Gate::Tools), "tools are what servers have");"#)]
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

setters! { ClientCapabilities = ClientCapabilities::new();
    /// Answers `roots/list`.
    roots(RootsCapability) = RootsCapability::new(true) => r#"{"roots":{"listChanged":true}}"#;
    /// Supports sampling.
    sampling(SamplingCapability) = SamplingCapability::new() => r#"{"sampling":{}}"#;
    /// Supports elicitation.
    elicitation(ElicitationCapability) = ElicitationCapability::BOTH
        => r#"{"elicitation":{"form":{},"url":{}}}"#;
    /// Runs tasks of its own.
    tasks(ClientTasks) = ClientTasks::ALL => r#"{"tasks":{"list":{},"cancel":{},"requests":"#;
    /// Supports these extensions.
    extensions(BTreeMap<String, Json>) = BTreeMap::from([(TASKS_EXTENSION.to_owned(), Json::empty_object())])
        => r#""io.modelcontextprotocol/tasks":{}"#;
    /// Adds capabilities outside the specification.
    experimental(BTreeMap<String, Json>) = BTreeMap::from([("echo".to_owned(), Json::empty_object())])
        => r#"{"experimental":{"echo":{}}}"#;
}

impl RootsCapability {
    /// Roots that may change, or not.
    #[doc = example!(r##"assert_eq!(Json::of(&RootsCapability::new(true)).get(), r#"{"listChanged":true}"#);"##)]
    pub fn new(list_changed: bool) -> Self {
        Self { list_changed }
    }
}

impl SamplingCapability {
    /// Plain sampling.
    #[doc = example!("assert_eq!(SamplingCapability::new(), SamplingCapability::default());")]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { SamplingCapability = SamplingCapability::new();
    /// Supports context of servers.
    context(bool) = true => r#"{"context":{}}"#;
    /// Supports tools.
    tools(bool) = true => r#"{"tools":{}}"#;
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
    #[doc = example!(r#"assert_eq!(Json::of(&ServerCapabilities::new()).get(), "{}");"#)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the server serves methods behind `gate`.
    #[doc = example!("use trunkline_wire::method::Gate;",
        "let server = ServerCapabilities::new().resources(ResourcesCapability::new());",
        "assert!(server.supports(Gate::Resources) && !server.supports(Gate::Subscribe));")]
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

setters! { ServerCapabilities = ServerCapabilities::new();
    /// Sends log messages.
    logging(bool) = true => r#"{"logging":{}}"#;
    /// Completes arguments.
    completions(bool) = true => r#"{"completions":{}}"#;
    /// Has prompts.
    prompts(ListChanged) = ListChanged::new(false) => r#"{"prompts":{}}"#;
    /// Has resources.
    resources(ResourcesCapability) = ResourcesCapability::new().subscribe(true)
        => r#"{"resources":{"subscribe":true}}"#;
    /// Has tools.
    tools(ListChanged) = ListChanged::new(true) => r#"{"tools":{"listChanged":true}}"#;
    /// Runs tasks.
    tasks(ServerTasks) = ServerTasks::ALL => r#""requests":{"tools":{"call":{}}}"#;
    /// Supports these extensions.
    extensions(BTreeMap<String, Json>) = BTreeMap::from([(SKILLS_EXTENSION.to_owned(), Json::empty_object())])
        => r#""io.modelcontextprotocol/skills":{}"#;
    /// Adds capabilities outside the specification.
    experimental(BTreeMap<String, Json>) = BTreeMap::from([("echo".to_owned(), Json::empty_object())])
        => r#"{"experimental":{"echo":{}}}"#;
}

impl ListChanged {
    /// A list with or without change notifications.
    #[doc = example!(r##"assert_eq!(Json::of(&ListChanged::new(true)).get(), r#"{"listChanged":true}"#);"##)]
    pub fn new(list_changed: bool) -> Self {
        Self { list_changed }
    }
}

impl ResourcesCapability {
    /// Resources without change notifications.
    #[doc = example!(r#"assert_eq!(Json::of(&ResourcesCapability::new()).get(), "{}");"#)]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ResourcesCapability = ResourcesCapability::new();
    /// Notifies subscribers of changes.
    subscribe(bool) = true => r#"{"subscribe":true}"#;
    /// Notifies clients of changes of the list.
    list_changed(bool) = true => r#"{"listChanged":true}"#;
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
