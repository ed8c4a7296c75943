//! Putting a server together. What it can do is derived from what is registered.

use std::sync::Arc;

use trunkline_auth::seal::Sealer;
use trunkline_proto::server as core;
use trunkline_proto::task::TaskBounds;
use trunkline_transport::Limits;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    CacheHint, Icon, Implementation, ListChanged, LogLevel, ResourcesCapability, SKILLS_EXTENSION,
    ServerTasks, SkillsSettings, TASKS_EXTENSION,
};
use trunkline_wire::revision::{Revision, Revisions};
use trunkline_wire::text::is_tool_name;

use super::lists::Named;
use super::skills::{SkillEntry, Skills};
use super::{Inner, PromptEntry, ResourceEntry, Server, TemplateEntry, ToolEntry, tasks};

/// A server under construction.
#[must_use = "a builder does nothing until `build`"]
pub struct ServerBuilder {
    core: core::Config,
    limits: Limits,
    tools: Named<ToolEntry>,
    prompts: Named<PromptEntry>,
    resources: Named<ResourceEntry>,
    templates: Vec<TemplateEntry>,
    skills: Skills,
    page: usize,
    cache: CacheHint,
    sealer: Option<Sealer>,
    tasks: TaskBounds,
}

impl ServerBuilder {
    pub(super) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let mut core = core::Config::new(Implementation::new(name, version));
        core.capabilities.logging = true;
        Self {
            core,
            limits: Limits::default(),
            tools: Named::default(),
            prompts: Named::default(),
            resources: Named::default(),
            templates: Vec::new(),
            skills: Skills::default(),
            page: 50,
            cache: CacheHint::NONE,
            sealer: None,
            tasks: TaskBounds::default(),
        }
    }

    /// Adds a tool.
    ///
    /// # Panics
    /// If its name is not 1 to 128 of letters, digits, `_`, `.` and `-`: real hosts refuse others.
    pub fn tool(mut self, tool: ToolEntry) -> Self {
        assert!(
            is_tool_name(&tool.tool.name),
            "`{}` is not a tool name: use 1 to 128 letters, digits, `_`, `.` or `-`",
            tool.tool.name
        );
        self.tools.add(tool);
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: ResourceEntry) -> Self {
        self.resources.add(resource);
        self
    }

    /// Adds a template.
    pub fn template(mut self, template: TemplateEntry) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, prompt: PromptEntry) -> Self {
        self.prompts.add(prompt);
        self
    }

    /// Adds a skill: its `SKILL.md` is listed among the resources, its files can be read.
    pub fn skill(mut self, skill: SkillEntry) -> Self {
        self.resources.add(skill.resource());
        self.skills.add(skill);
        self
    }

    /// Names the server for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.core.info.title = Some(title.into());
        self
    }

    /// Gives the server a picture.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.core.info.icons.push(icon);
        self
    }

    /// Tells the model how to use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.core.instructions = Some(instructions.into());
        self
    }

    /// Speaks this revision only.
    pub fn protocol(self, revision: Revision) -> Self {
        self.protocols(Revisions::only(revision))
    }

    /// Speaks these revisions only; by default all five.
    pub fn protocols(mut self, revisions: Revisions) -> Self {
        self.core.revisions = revisions;
        self
    }

    /// Whether to answer the `mcp/…` dialect too; by default it does.
    pub fn dialect(mut self, answer: bool) -> Self {
        self.core.dialect = answer;
        self
    }

    /// What is logged before a client of an older revision chooses a level; by default `info`.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.core.log_level = level;
        self
    }

    /// How long clients may keep lists and resources; by default not at all.
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self.core.cache = hint;
        self
    }

    /// How many items a page of a list has; by default 50.
    pub fn page_size(mut self, items: usize) -> Self {
        self.page = items.max(1);
        self
    }

    /// Other limits than the default ones.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How many tasks are kept, and how long.
    pub fn tasks(mut self, bounds: TaskBounds) -> Self {
        self.tasks = bounds;
        self
    }

    /// Keys for the state that travels with clients, newest first. By default one that lives as
    /// long as this process; several replicas need the same ones.
    pub fn state_keys(mut self, keys: &[[u8; 32]]) -> Self {
        self.sealer = Some(Sealer::new(keys));
        self
    }

    /// The server.
    pub fn build(mut self) -> Server {
        self.derive_capabilities();
        self.core.bounds = self.limits.bounds();
        // Every result of the newest revision repeats who the server is: the short form will do.
        let mut short = Implementation::new(&*self.core.info.name, &*self.core.info.version);
        short.title = self.core.info.title.clone();
        let inner = Inner {
            info: Json::of(&short),
            core: Arc::new(self.core),
            limits: self.limits,
            tools: self.tools,
            prompts: self.prompts,
            resources: self.resources,
            templates: self.templates,
            skills: self.skills,
            page: self.page,
            cache: self.cache,
            sealer: self.sealer.unwrap_or_else(Sealer::random),
            tasks: tasks::Runtime::new(self.tasks),
            listeners: super::listeners::Listeners::default(),
        };
        Server::new(inner)
    }

    fn derive_capabilities(&mut self) {
        let caps = &mut self.core.capabilities;
        if self.tools.len() > 0 {
            caps.tools = Some(ListChanged::new(true));
        }
        if self.prompts.len() > 0 {
            caps.prompts = Some(ListChanged::new(true));
        }
        if self.resources.len() > 0 || !self.templates.is_empty() {
            let mut resources = ResourcesCapability::new();
            resources.subscribe = true;
            resources.list_changed = true;
            caps.resources = Some(resources);
        }
        caps.completions = self.prompts.as_slice().iter().any(|it| !it.completions.is_empty())
            || self.templates.iter().any(|it| !it.completions.is_empty());
        if !self.skills.is_empty() {
            let settings = Json::of(&SkillsSettings::new(true));
            caps.extensions.insert(SKILLS_EXTENSION.to_owned(), settings);
        }
        let as_tasks = self.tools.as_slice().iter().any(|it| !it.tool.task_support.is_forbidden());
        if as_tasks {
            caps.tasks = Some(ServerTasks::ALL);
            caps.extensions.insert(TASKS_EXTENSION.to_owned(), Json::empty_object());
        }
    }
}
