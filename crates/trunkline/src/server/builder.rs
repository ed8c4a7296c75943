//! Builds a server. Its capabilities are derived from what is registered.

mod fault;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use trunkline_auth::seal::Sealer;
use trunkline_auth::setters;
use trunkline_proto::server as core;
use trunkline_proto::task::TaskBounds;
use trunkline_store::Store;
use trunkline_transport::Limits;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    CacheHint, Icon, Implementation, ListChanged, LogLevel, ResourcesCapability, SKILLS_EXTENSION,
    ServerCapabilities, ServerTasks, SkillsSettings, TASKS_EXTENSION,
};
use trunkline_wire::revision::{Revision, Revisions};

use super::lists::Registry;
use super::prompt::IntoPromptEntry;
use super::resource::{IntoResource, ResourceOrTemplate};
use super::skills::{SkillEntry, Skills};
use super::tool::IntoTool;
use super::{Inner, PromptEntry, ResourceEntry, Server, TemplateEntry, ToolEntry, compose, tasks};
use crate::layer::Layers;
use crate::observe::ServerObserver;
use crate::schema::SchemaProfile;
use fault::list;

pub use fault::BuildError;
pub(super) use fault::check_signature;

/// A server under construction.
/// ```
/// let builder = trunkline::Server::builder("empty", "1.0.0").title("Nothing");
/// assert!(builder.try_build().is_ok());
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct ServerBuilder {
    core: core::Config,
    limits: Limits,
    tools: Vec<ToolEntry>,
    prompts: Vec<PromptEntry>,
    resources: Vec<ResourceEntry>,
    templates: Vec<TemplateEntry>,
    skills: Skills,
    states: States,
    /// Kinds of things that are registered only while the server runs.
    later: Later,
    profile: SchemaProfile,
    page: usize,
    cache: CacheHint,
    sealer: Option<Sealer>,
    #[cfg(feature = "replicas")]
    replicas: Option<super::Replicas>,
    pub(crate) observe: ServerObserver,
    tasks: TaskBounds,
    task_store: Option<Arc<dyn Store>>,
    takeover: Duration,
    pub(crate) layers: Layers,
    pub(super) mounts: Vec<compose::Wanted>,
    /// Capabilities declared besides those of what is registered.
    pub(super) also: ServerCapabilities,
}

/// What handlers share, by type.
pub(crate) type States = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// Kinds of things that are registered while the server runs.
#[derive(Clone, Copy, Debug, Default)]
struct Later {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl ServerBuilder {
    pub(super) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let mut core = core::Config::new(Implementation::new(name, version));
        core.capabilities.logging = true;
        Self {
            core,
            limits: Limits::default(),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            skills: Skills::default(),
            states: States::new(),
            later: Later::default(),
            profile: SchemaProfile::Plain,
            page: 50,
            cache: CacheHint::NONE,
            sealer: None,
            #[cfg(feature = "replicas")]
            replicas: None,
            observe: ServerObserver::default(),
            tasks: TaskBounds::default(),
            task_store: None,
            takeover: tasks::LIFE,
            layers: Layers::default(),
            mounts: Vec::new(),
            also: ServerCapabilities::default(),
        }
    }

    /// Adds a tool: made with [`tool`](super::tool) or with `#[tool]`.
    /// ```
    /// let now = trunkline::tool("now", async || "noon");
    /// let server = trunkline::Server::builder("clock", "1.0.0").tool(now).build();
    /// assert!(format!("{server:?}").contains("tools: 1"));
    /// ```
    pub fn tool<M>(mut self, tool: impl IntoTool<M>) -> Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds a resource: made with [`resource`](super::resource), [`template`](super::template) or
    /// with `#[resource]`.
    /// ```
    /// let menu = trunkline::resource("menu://today", "menu", async || "Soup.");
    /// assert!(trunkline::Server::builder("inn", "1.0.0").resource(menu).try_build().is_ok());
    /// ```
    pub fn resource<M>(mut self, resource: impl IntoResource<M>) -> Self {
        match resource.into_resource() {
            ResourceOrTemplate::Resource(resource) => self.resources.push(resource),
            ResourceOrTemplate::Template(template) => self.templates.push(template),
        }
        self
    }

    /// Adds a template; [`Self::resource`] does the same.
    /// ```
    /// let wrong = trunkline::template("menu://{day", "day", async || "Soup.");
    /// assert!(trunkline::Server::builder("inn", "1.0.0").template(wrong).try_build().is_err());
    /// ```
    pub fn template(self, template: TemplateEntry) -> Self {
        self.resource(template)
    }

    /// Adds a prompt: made with [`prompt`](super::prompt) or with `#[prompt]`.
    /// ```
    /// let plan = trunkline::prompt("plan", async || "Plan my day.".to_owned());
    /// assert!(trunkline::Server::builder("days", "1.0.0").prompt(plan).try_build().is_ok());
    /// ```
    pub fn prompt<M>(mut self, prompt: impl IntoPromptEntry<M>) -> Self {
        self.prompts.push(prompt.into_prompt_entry());
        self
    }

    /// Adds everything that a value offers: its methods with `#[tool]`, `#[prompt]` and
    /// `#[resource]`.
    /// ```
    /// struct Clock;
    /// #[trunkline::toolbox]
    /// impl Clock {
    ///     /// Tells the time.
    ///     #[tool]
    ///     async fn now(&self) -> &'static str { "noon" }
    /// }
    /// assert!(trunkline::Server::builder("clock", "1.0.0").toolbox(Clock).try_build().is_ok());
    /// ```
    pub fn toolbox(self, toolbox: impl Toolbox) -> Self {
        Arc::new(toolbox).register(self)
    }

    /// Adds a skill: its `SKILL.md` is listed among the resources, and every caller can read its
    /// files. No resource may have the URI of one of them.
    /// ```
    /// let pdf = trunkline::skill("pdf", "---\nname: pdf\ndescription: Reads.\n---\n").unwrap();
    /// assert!(trunkline::Server::builder("skills", "1.0.0").skill(pdf).try_build().is_ok());
    /// ```
    pub fn skill(mut self, skill: SkillEntry) -> Self {
        self.skills.add(skill);
        self
    }

    /// Adds a value that handlers share: they take it as a [`State`](crate::State) of its type.
    ///
    /// ```
    /// # use trunkline::{Server, State, tool};
    /// struct Price(u32);
    /// let price = async |State(price): State<Price>| format!("{} euros", price.0);
    /// let server = Server::builder("inn", "1.0.0").tool(tool("price", price));
    /// assert!(server.state(Price(99)).try_build().is_ok());
    /// ```
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Self {
        self.shared_state(Arc::new(state))
    }

    /// The same for a value that is already shared.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use trunkline::{Server, State, tool};
    /// let names = Arc::new(Mutex::new(vec!["Ada"]));
    /// let first = async |State(names): State<Mutex<Vec<&'static str>>>| names.lock().unwrap()[0];
    /// let server = Server::builder("names", "1.0.0").shared_state(Arc::clone(&names));
    /// assert!(server.tool(tool("first", first)).try_build().is_ok());
    /// ```
    pub fn shared_state<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Self {
        self.states.insert(TypeId::of::<T>(), state);
        self
    }

    setters! {
        /// Declares tools on a server that starts without any and adds them while it runs.
        /// ```
        /// let server = trunkline::Server::builder("clock", "1.0.0").tools_later().build();
        /// assert!(server.put_tool(trunkline::tool("now", async || "noon")).is_ok());
        /// ```
        tools_later() { later.tools = true }

        /// Declares prompts on a server that starts without any and adds them while it runs.
        /// ```
        /// let server = trunkline::Server::builder("days", "1.0.0").prompts_later().build();
        /// assert!(server.put_prompt(trunkline::prompt("plan", async || String::new())).is_ok());
        /// ```
        prompts_later() { later.prompts = true }

        /// Declares resources on a server that starts without any and adds them while it runs.
        /// ```
        /// let server = trunkline::Server::builder("inn", "1.0.0").resources_later().build();
        /// assert!(server.put_resource(trunkline::resource("menu://", "menu", async || "")).is_ok());
        /// ```
        resources_later() { later.resources = true }

        /// How schemas are written; by default in the plain form that all hosts accept.
        /// ```
        /// let builder = trunkline::Server::builder("full", "1.0.0");
        /// assert!(builder.schemas(trunkline::SchemaProfile::Full).try_build().is_ok());
        /// ```
        schemas(profile: SchemaProfile) { profile = profile }

        /// Sets the server's name for people.
        /// ```
        /// let builder = trunkline::Server::builder("clock", "1.0.0").title("The clock");
        /// assert!(builder.try_build().is_ok());
        /// ```
        title(title: impl Into<String>) { core.info.title = Some(title.into()) }

        /// Adds an icon.
        /// ```
        /// let icon = trunkline::model::Icon::new("https://example.com/clock.svg");
        /// assert!(trunkline::Server::builder("clock", "1.0.0").icon(icon).try_build().is_ok());
        /// ```
        icon(icon: Icon) { core.info.icons.push(icon) }

        /// Tells the model how to use the server.
        /// ```
        /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// let server = Server::builder("clock", "1.0.0").instructions("Never twice a day.").build();
        /// assert_eq!(Client::in_memory(&server).await?.instructions(), Some("Never twice a day."));
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        instructions(instructions: impl Into<String>) {
            core.instructions = Some(instructions.into())
        }
    }

    /// Speaks only this revision.
    pub fn protocol(self, revision: Revision) -> Self {
        self.protocols(Revisions::only(revision))
    }

    setters! {
        /// Speaks only these revisions; by default all five.
        /// ```
        /// let old = trunkline::Revisions::ALL.of_era(trunkline::Era::Stateful);
        /// assert!(trunkline::Server::builder("old", "1.0.0").protocols(old).try_build().is_ok());
        /// ```
        protocols(revisions: Revisions) { core.revisions = revisions }

        /// Whether to answer the `mcp/…` dialect too; on by default.
        /// ```
        /// assert!(trunkline::Server::builder("strict", "1.0.0").dialect(false).try_build().is_ok());
        /// ```
        dialect(answer: bool) { core.dialect = answer }

        /// The log level until a client of an older revision chooses one; by default `info`.
        /// ```
        /// let builder = trunkline::Server::builder("quiet", "1.0.0");
        /// assert!(builder.log_level(trunkline::model::LogLevel::Error).try_build().is_ok());
        /// ```
        log_level(level: LogLevel) { core.log_level = level }
    }

    /// How long clients may cache lists and resources; by default not at all.
    /// ```
    /// let hint = trunkline::model::CacheHint::public(60_000);
    /// assert!(trunkline::Server::builder("slow", "1.0.0").cache(hint).try_build().is_ok());
    /// ```
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self.core.cache = hint;
        self
    }

    setters! {
        /// How many items a page of a list has; by default 50.
        /// ```
        /// assert!(trunkline::Server::builder("pages", "1.0.0").page_size(10).try_build().is_ok());
        /// ```
        page_size(items: usize) { page = items.max(1) }

        /// Replaces the default limits.
        /// ```
        /// let limits = trunkline::Limits::default().in_flight(8);
        /// assert!(trunkline::Server::builder("small", "1.0.0").limits(limits).try_build().is_ok());
        /// ```
        limits(limits: Limits) { limits = limits }

        /// How many tasks are kept, and how long.
        /// ```
        /// let bounds = trunkline::server::TaskBounds { tasks: 16, ..Default::default() };
        /// assert!(trunkline::Server::builder("films", "1.0.0").tasks(bounds).try_build().is_ok());
        /// ```
        tasks(bounds: TaskBounds) { tasks = bounds }

        /// Keeps tasks in a store, so that they outlive the process: their results, their questions,
        /// and what their handlers did [once](super::Context::once). All processes that share the store
        /// see them, and take over those of a process that died; see [`ToolEntry::resume`].
        ///
        /// ```
        /// let store = std::sync::Arc::new(trunkline::store::Memory::default());
        /// assert!(trunkline::Server::builder("films", "1.0.0").task_store(store).try_build().is_ok());
        /// ```
        task_store(store: Arc<dyn Store>) { task_store = Some(store) }

        /// How long after its last heartbeat the tasks of a process are taken over; by default 15
        /// seconds.
        /// ```
        /// let silence = std::time::Duration::from_secs(60);
        /// assert!(trunkline::Server::builder("a", "1").take_over_after(silence).try_build().is_ok());
        /// ```
        take_over_after(silence: Duration) { takeover = silence.max(Duration::from_millis(30)) }

        /// Keys that seal the state carried by clients, newest first. The default is a random key that
        /// lives as long as this process; several replicas need the same keys.
        /// ```
        /// let (new, old) = ([2; 32], [1; 32]);
        /// assert!(trunkline::Server::builder("a", "1").state_keys(&[new, old]).try_build().is_ok());
        /// ```
        state_keys(keys: &[[u8; 32]]) { sealer = Some(Sealer::new(keys)) }
    }

    /// Serves as one of several replicas over HTTP: any of them takes any request. Their key seals the state
    /// carried by clients and their store keeps tasks, unless [`Self::state_keys`] and
    /// [`Self::task_store`] say otherwise.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trunkline::{Server, server::Replicas, store::Memory};
    /// let replicas = Replicas::new(Arc::new(Memory::default()), [7; 32], "127.0.0.1:7474");
    /// assert!(Server::builder("hotel", "1.0.0").replicas(replicas).try_build().is_ok());
    /// ```
    #[cfg(feature = "replicas")]
    pub fn replicas(mut self, replicas: super::Replicas) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// Builds the server.
    /// ```
    /// let server = trunkline::Server::builder("empty", "1.0.0").build();
    /// assert!(format!("{server:?}").contains("empty"));
    /// ```
    ///
    /// # Panics
    /// If a registration is invalid; [`Self::try_build`] returns the faults instead.
    pub fn build(self) -> Server {
        match self.try_build() {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the server, or returns every fault of the registrations.
    /// ```
    /// let nameless = trunkline::tool("", async || "?");
    /// assert!(trunkline::Server::builder("a", "1").tool(nameless).try_build().is_err());
    /// ```
    pub fn try_build(mut self) -> Result<Server, BuildError> {
        let mut faults = Vec::new();
        let mounted = self.mounts.iter().filter_map(|(_, it)| it.as_ref().ok().cloned());
        let mounted: Vec<Server> = mounted.collect();
        let mounts = compose::mounts(std::mem::take(&mut self.mounts), &mut faults);
        self.derive_capabilities();
        for caps in mounts.iter().map(compose::Mount::capabilities).chain([&self.also]) {
            compose::declare(&mut self.core.capabilities, caps);
        }
        for tool in &mut self.tools {
            tool.prepare(self.profile, &mut faults);
        }
        self.prompts.iter_mut().for_each(|it| it.prepare(&mut faults));
        self.resources.iter_mut().for_each(|it| it.prepare(&mut faults));
        self.templates.iter_mut().for_each(|it| it.prepare(&mut faults));
        self.check_states(&mut faults);
        let tools = list("tool", self.tools, &mut faults);
        let prompts = list("prompt", self.prompts, &mut faults);
        let mut resources = list("resource", self.resources, &mut faults);
        self.skills.offer(&mut resources, &mut faults);
        let templates = list("template", self.templates, &mut faults);
        compose::check(&tools, &mounts, &mut faults);
        compose::check(&prompts, &mounts, &mut faults);
        compose::check(&resources, &mounts, &mut faults);
        compose::check(&templates, &mounts, &mut faults);
        compose::add_skills(&mut self.skills, &mounts, &mut faults);
        self.skills.check(&resources, &mut faults);
        for server in &mounted {
            self.skills.check(&server.inner().resources.now(), &mut faults);
        }
        if !faults.is_empty() {
            return Err(BuildError::new(faults));
        }
        self.core.bounds = self.limits.bounds();
        let life = self.takeover;
        #[cfg(feature = "replicas")]
        if let Some(replicas) = &self.replicas {
            self.sealer.get_or_insert_with(|| Sealer::new(&replicas.keys));
            self.task_store.get_or_insert_with(|| Arc::clone(&replicas.store));
        }
        let keeper = self.task_store.map(|store| tasks::Keeper::new(store, life));
        // Every result of 2026-07-28 repeats the server's identity, so it is the short form.
        let mut short = Implementation::new(&*self.core.info.name, &*self.core.info.version);
        short.title = self.core.info.title.clone();
        let inner = Inner {
            owner: OnceLock::new(),
            info: Json::of(&short),
            core: Arc::new(self.core),
            limits: self.limits,
            tools: Registry::new(tools),
            prompts: Registry::new(prompts),
            resources: Registry::new(resources),
            templates: Registry::new(templates),
            skills: self.skills,
            states: self.states,
            profile: self.profile,
            page: self.page,
            cache: self.cache,
            sealer: self.sealer.unwrap_or_else(Sealer::random),
            #[cfg(feature = "replicas")]
            replicas: self.replicas.map(|it| Arc::new(it.of_a_server())),
            tasks: tasks::Runtime::new(self.tasks, keeper),
            listeners: Default::default(),
            observe: self.observe,
            layers: self.layers,
            mounts,
            outers: compose::Outers::default(),
            #[cfg(feature = "testing")]
            principal: std::sync::Mutex::default(),
            #[cfg(feature = "testing")]
            warnings: std::sync::Mutex::default(),
        };
        let server = Server::new(inner);
        server.inner().fill();
        Ok(server)
    }

    fn check_states(&self, faults: &mut Vec<String>) {
        let tools = self.tools.iter().map(|it| (&*it.tool.name, &it.signature));
        let prompts = self.prompts.iter().map(|it| (&*it.prompt.name, &it.signature));
        let resources = self.resources.iter().map(|it| (&*it.resource.uri, &it.signature));
        let templates = self.templates.iter().map(|it| (&*it.template.uri_template, &it.signature));
        for (name, signature) in tools.chain(prompts).chain(resources).chain(templates) {
            check_signature(name, signature, &self.states, faults);
        }
    }

    fn derive_capabilities(&mut self) {
        let caps = &mut self.core.capabilities;
        if !self.tools.is_empty() || self.later.tools {
            caps.tools = Some(ListChanged::new(true));
        }
        if !self.prompts.is_empty() || self.later.prompts {
            caps.prompts = Some(ListChanged::new(true));
        }
        let has_resources = !self.resources.is_empty() || !self.templates.is_empty();
        if has_resources || !self.skills.is_empty() || self.later.resources {
            let mut resources = ResourcesCapability::new();
            resources.subscribe = true;
            resources.list_changed = true;
            caps.resources = Some(resources);
        }
        caps.completions = self.prompts.iter().any(|it| !it.completions.is_empty())
            || self.templates.iter().any(|it| !it.completions.is_empty());
        if !self.skills.is_empty() {
            let settings = Json::of(&SkillsSettings::new(true));
            caps.extensions.insert(SKILLS_EXTENSION.to_owned(), settings);
        }
        let as_tasks = self.tools.iter().any(|it| !it.tool.task_support.is_forbidden());
        if as_tasks {
            caps.tasks = Some(ServerTasks::ALL);
            caps.extensions.insert(TASKS_EXTENSION.to_owned(), Json::empty_object());
        }
    }
}

/// A type whose methods with `#[tool]`, `#[prompt]` and `#[resource]` can be registered.
/// `#[toolbox]` on the `impl` block implements it.
/// ```
/// use trunkline::{Server, server::{ServerBuilder, Toolbox}, tool};
/// struct Clock;
/// impl Toolbox for Clock {
///     fn register(self: std::sync::Arc<Self>, it: ServerBuilder) -> ServerBuilder {
///         it.tool(tool("now", async || "noon"))
///     }
/// }
/// assert!(Server::builder("clock", "1.0.0").toolbox(Clock).try_build().is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools",
    note = "put `#[trunkline::toolbox]` on the `impl` block with the `#[tool]` methods"
)]
pub trait Toolbox: Send + Sync + 'static {
    /// Registers everything.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use trunkline::server::{ServerBuilder, Toolbox};
    /// use trunkline::{Server, tool};
    ///
    /// struct Clock;
    ///
    /// impl Toolbox for Clock {
    ///     fn register(self: Arc<Self>, builder: ServerBuilder) -> ServerBuilder {
    ///         builder.tool(tool("time", async || "Noon."))
    ///     }
    /// }
    ///
    /// assert!(Server::builder("clock", "1.0.0").toolbox(Clock).try_build().is_ok());
    /// ```
    fn register(self: Arc<Self>, builder: ServerBuilder) -> ServerBuilder;
}

/// A toolbox that is shared.
impl<T: Toolbox> Toolbox for Arc<T> {
    fn register(self: Arc<Self>, builder: ServerBuilder) -> ServerBuilder {
        T::register(Arc::clone(&self), builder)
    }
}
