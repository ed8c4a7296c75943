//! Changes to the lists of a running server. Every listening client is notified in its revision's
//! way. Calls in flight keep the entries they began with.

use trunkline_proto::Change;

use super::builder::{BuildError, check_signature};
use super::complete::Completions;
use super::compose::Offered;
use super::lists::Registry;
use super::prompt::IntoPromptEntry;
use super::resource::{IntoResource, ResourceOrTemplate};
use super::tool::IntoTool;
use super::{Inner, Server};

impl Server {
    /// Adds a tool or replaces the one of its name, unless that one belongs to a mounted server:
    /// change it there.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use trunkline::{Server, tool};
    ///
    /// let server = Server::builder("example", "1.0.0").tools_later().build();
    /// server.put_tool(tool("now", async || "Soon.")).unwrap();
    /// assert!(server.remove_tool("now"));
    /// assert!(!server.remove_tool("now"), "it is gone already");
    /// # });
    /// ```
    pub fn put_tool<M>(&self, tool: impl IntoTool<M>) -> Result<(), BuildError> {
        let inner = self.inner();
        let mut tool = tool.into_tool();
        let mut faults = Vec::new();
        tool.prepare(inner.profile, &mut faults);
        check_signature(&tool.tool.name, &tool.signature, &inner.states, &mut faults);
        let caps = &inner.core.capabilities;
        declared(caps.tools.is_some(), "tools", &mut faults);
        if !tool.tool.task_support.is_forbidden() && caps.tasks.is_none() {
            faults.push(
                "No tool ran as a task when the server was built, so clients do not expect one. \
                 Begin with a tool that does."
                    .to_owned(),
            );
        }
        inner.put(&inner.tools, tool, Change::Tools, faults)
    }

    /// Removes a tool and returns whether there was one. Tools of mounted servers stay.
    ///
    /// ```
    /// use trunkline::{Server, tool};
    ///
    /// let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// assert!(server.remove_tool("now") && !server.remove_tool("now"));
    /// ```
    pub fn remove_tool(&self, name: &str) -> bool {
        let inner = self.inner();
        inner.remove(&inner.tools, name, Change::Tools)
    }

    /// Adds a prompt or replaces the one of its name, unless that one belongs to a mounted server.
    ///
    /// ```
    /// use trunkline::{Server, prompt};
    ///
    /// let plan = || prompt("plan", async || "Plan my day.".to_owned());
    /// let server = Server::builder("days", "1.0.0").prompts_later().build();
    /// assert!(server.put_prompt(plan()).is_ok());
    /// let without = Server::builder("nights", "1.0.0").build().put_prompt(plan());
    /// assert!(without.unwrap_err().to_string().contains("`prompts_later()`"));
    /// ```
    pub fn put_prompt<M>(&self, prompt: impl IntoPromptEntry<M>) -> Result<(), BuildError> {
        let inner = self.inner();
        let mut prompt = prompt.into_prompt_entry();
        let mut faults = Vec::new();
        prompt.prepare(&mut faults);
        check_signature(&prompt.prompt.name, &prompt.signature, &inner.states, &mut faults);
        declared(inner.core.capabilities.prompts.is_some(), "prompts", &mut faults);
        inner.expects_completions(&prompt.completions, &mut faults);
        inner.put(&inner.prompts, prompt, Change::Prompts, faults)
    }

    /// Removes a prompt and returns whether there was one. Prompts of mounted servers stay.
    ///
    /// ```
    /// use trunkline::{Server, prompt};
    ///
    /// let plan = prompt("plan", async || "Plan my day.".to_owned());
    /// let server = Server::builder("days", "1.0.0").prompt(plan).build();
    /// assert!(server.remove_prompt("plan"));
    /// ```
    pub fn remove_prompt(&self, name: &str) -> bool {
        let inner = self.inner();
        inner.remove(&inner.prompts, name, Change::Prompts)
    }

    /// Adds a resource or template or replaces the one of its URI, unless that one belongs to a
    /// mounted server.
    ///
    /// ```
    /// # use trunkline::{Client, Server, resource};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("inn", "1.0.0").resources_later().build();
    /// server.put_resource(resource("menu://today", "menu", async || "Soup."))?;
    /// assert_eq!(Client::in_memory(&server).await?.list_resources().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn put_resource<M>(&self, resource: impl IntoResource<M>) -> Result<(), BuildError> {
        let inner = self.inner();
        let mut faults = Vec::new();
        declared(inner.core.capabilities.resources.is_some(), "resources", &mut faults);
        match resource.into_resource() {
            ResourceOrTemplate::Resource(mut it) => {
                it.prepare(&mut faults);
                check_signature(&it.resource.uri, &it.signature, &inner.states, &mut faults);
                inner.put(&inner.resources, it, Change::Resources, faults)
            }
            ResourceOrTemplate::Template(mut it) => {
                it.prepare(&mut faults);
                inner.expects_completions(&it.completions, &mut faults);
                let uri = &it.template.uri_template;
                check_signature(uri, &it.signature, &inner.states, &mut faults);
                inner.put(&inner.templates, it, Change::Resources, faults)
            }
        }
    }

    /// Removes a resource or template by its URI and returns whether there was one. Those of
    /// mounted servers stay.
    ///
    /// ```
    /// use trunkline::{Server, resource};
    ///
    /// let menu = resource("menu://today", "menu", async || "Soup.");
    /// let server = Server::builder("inn", "1.0.0").resource(menu).build();
    /// assert!(server.remove_resource("menu://today"));
    /// ```
    pub fn remove_resource(&self, uri: &str) -> bool {
        let inner = self.inner();
        inner.remove(&inner.resources, uri, Change::Resources)
            || inner.remove(&inner.templates, uri, Change::Resources)
    }
}

impl Inner {
    fn expects_completions(&self, completions: &Completions, faults: &mut Vec<String>) {
        if !completions.is_empty() && !self.core.capabilities.completions {
            faults.push(
                "Nothing completed its arguments when the server was built, so clients do not ask \
                 for it. Begin with something that does."
                    .to_owned(),
            );
        }
    }

    fn put<T: Offered>(
        &self,
        registry: &Registry<T>,
        entry: T,
        change: Change,
        faults: Vec<String>,
    ) -> Result<(), BuildError> {
        BuildError::check(faults)?;
        let name = entry.key().to_owned();
        let owner = registry.edit(|list| {
            let owner = list.find(&name).and_then(|it| self.owner::<T>(it));
            if owner.is_none() {
                list.put(entry);
            }
            owner
        });
        let taken = |owner| {
            let kind = T::KIND;
            format!("The {kind} `{name}` is that of {owner}; change it there, or use another name.")
        };
        BuildError::check(owner.map(taken).into_iter().collect())?;
        self.follow::<T>(&name);
        // After the edit, so that a notified client reads the new list.
        self.tell(&change);
        Ok(())
    }

    fn remove<T: Offered>(&self, registry: &Registry<T>, name: &str, change: Change) -> bool {
        let was_there = registry.edit(|list| {
            let is_own = list.find(name).is_some_and(|it| it.origin().is_none());
            is_own && list.remove(name).is_some()
        });
        if was_there {
            self.offer_again::<T>(name);
            self.follow::<T>(name);
            self.tell(&change);
        }
        was_there
    }
}

/// Clients learn a server's capabilities only once, at the start.
fn declared(is_declared: bool, kind: &str, faults: &mut Vec<String>) {
    if !is_declared {
        faults.push(format!(
            "The server began without {kind}, and its clients were told so. Say `{kind}_later()` \
             when it is built."
        ));
    }
}
