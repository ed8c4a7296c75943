//! The remote server's lists → entries of the local one.

use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;

use trunkline_proto::Change;
use trunkline_wire::code;
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    Prompt, Reference, Resource, ResourceContents, ResourceTemplate, TaskSupport, Tool,
};

use super::{Completer, Remote, local_error};
use crate::ToolError;
use crate::client::CallError;
use crate::server::compose::Offered;
use crate::server::function::{FromCall, Input, Rejection};
use crate::server::{
    Context, Inner, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry, prompt, resource,
    template, tool,
};

impl Remote {
    /// Fetches a list again and applies the differences to the local one.
    pub(super) async fn refresh(
        self: &Arc<Self>,
        server: &Inner,
        change: &Change,
    ) -> Result<(), CallError> {
        let caps = self.client.server_capabilities();
        let changed = match change {
            Change::Tools if caps.tools.is_some() => {
                let list = self.client.list_tools().fresh().await?;
                let entries = list.into_iter().filter_map(|it| self.tool(it)).collect();
                replace(server, entries, |one: &ToolEntry, other| one.tool == other.tool)
            }
            Change::Prompts if caps.prompts.is_some() => {
                let list = self.client.list_prompts().fresh().await?;
                let entries = list.into_iter().map(|it| self.prompt(it)).collect();
                replace(server, entries, |one: &PromptEntry, other| one.prompt == other.prompt)
            }
            Change::Resources if caps.resources.is_some() => {
                let list = self.client.list_resources().fresh().await?;
                let entries = list.into_iter().map(|it| self.resource(it)).collect();
                let is_same =
                    |one: &ResourceEntry, other: &ResourceEntry| one.resource == other.resource;
                let changed = replace(server, entries, is_same);
                let list = self.client.list_resource_templates().fresh().await;
                // Not every server with resources has templates.
                let list = match list {
                    Err(CallError::Peer(error)) if error.code == code::METHOD_NOT_FOUND => {
                        Vec::new()
                    }
                    list => list?,
                };
                let entries = list.into_iter().filter_map(|it| self.template(it)).collect();
                let is_same =
                    |one: &TemplateEntry, other: &TemplateEntry| one.template == other.template;
                replace(server, entries, is_same) || changed
            }
            _ => false,
        };
        if changed {
            server.tell(change);
        }
        Ok(())
    }

    fn tool(self: &Arc<Self>, mut it: Tool) -> Option<ToolEntry> {
        let params = ParamHeaders::read(&it.input_schema).ok();
        let Some(params) = params.filter(|_| ToolEntry::is_legal(&it.name)) else {
            tracing::warn!(tool = it.name, "a remote tool cannot be offered");
            return None;
        };
        // For a client without tasks, this server waits for the result.
        it.task_support = match it.task_support {
            TaskSupport::Forbidden => TaskSupport::Forbidden,
            _ if !self.client.has_tasks() => TaskSupport::Forbidden,
            _ => TaskSupport::Optional,
        };
        let (remote, name) = (Arc::clone(self), it.name.clone());
        let call = move |Forwarded { context, arguments, .. }: Forwarded| {
            let (remote, name) = (Arc::clone(&remote), name.clone());
            async move {
                let call = remote.client.call_tool(name, arguments);
                remote.forward(&context, call).await
            }
        };
        // Unchanged: the remote server validates by its own schemas.
        let mut entry = tool(&*it.name, call);
        entry.tool = it;
        entry.params = Arc::new(params);
        Some(entry)
    }

    fn prompt(self: &Arc<Self>, it: Prompt) -> PromptEntry {
        let (remote, name) = (Arc::clone(self), it.name.clone());
        let get = move |Forwarded { context, arguments, .. }: Forwarded| {
            let (remote, name) = (Arc::clone(&remote), name.clone());
            async move {
                let arguments = arguments.and_then(|it| it.to::<BTreeMap<String, String>>().ok());
                let call = remote.client.get_prompt(name, arguments.unwrap_or_default());
                remote.forward(&context, call).await
            }
        };
        let mut entry = prompt(&*it.name, get);
        let reference = Reference::Prompt { name: it.name.clone(), title: None };
        entry.completer = self.completer(reference);
        entry.prompt = it;
        entry
    }

    fn resource(self: &Arc<Self>, it: Resource) -> ResourceEntry {
        let mut entry = resource(&*it.uri, &*it.name, self.reader());
        entry.resource = it;
        entry
    }

    fn template(self: &Arc<Self>, it: ResourceTemplate) -> Option<TemplateEntry> {
        let mut entry = template(&*it.uri_template, &*it.name, self.reader());
        if let Err(error) = &entry.parsed {
            tracing::warn!(template = it.uri_template, %error, "a remote template is no template");
            return None;
        }
        entry.completer = self.completer(Reference::Resource { uri: it.uri_template.clone() });
        entry.template = it;
        Some(entry)
    }

    fn reader(self: &Arc<Self>) -> impl Fn(Forwarded) -> Reading + Send + Sync + use<> {
        let remote = Arc::clone(self);
        move |Forwarded { context, uri, .. }| {
            let remote = Arc::clone(&remote);
            Box::pin(async move {
                let call = remote.client.read_resource(uri.unwrap_or_default());
                Ok(remote.forward(&context, call).await?.contents)
            })
        }
    }

    fn completer(self: &Arc<Self>, reference: Reference) -> Option<Completer> {
        if !self.client.server_capabilities().completions {
            return None;
        }
        let remote = Arc::clone(self);
        Some(Arc::new(move |mut params| {
            // Under its remote name.
            params.reference = reference.clone();
            let call = remote.client.complete(params);
            Box::pin(async move { call.await.map_err(|error| local_error(error).into_rpc()) })
        }))
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<Vec<ResourceContents>, ToolError>> + Send>>;

/// A call that is forwarded as it is.
struct Forwarded {
    context: Context,
    arguments: Option<Json>,
    uri: Option<String>,
}

impl FromCall for Forwarded {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(Self {
            context: input.context().clone(),
            arguments: input.arguments().cloned(),
            uri: input.uri().map(str::to_owned),
        })
    }
}

/// Replaces the local list with these entries. Returns whether that changed anything.
fn replace<T: Offered>(server: &Inner, entries: Vec<T>, is_same: impl Fn(&T, &T) -> bool) -> bool {
    let registry = T::registry(server);
    let before = registry.now();
    let names: HashSet<_> = entries.iter().map(|it| it.key().to_owned()).collect();
    let gone = before.iter().map(|it| it.key()).filter(|it| !names.contains(*it));
    let mut changed: Vec<String> = gone.map(str::to_owned).collect();
    registry.edit(|list| {
        for name in &changed {
            list.remove(name);
        }
        for entry in entries {
            if !before.find(entry.key()).is_some_and(|it| is_same(it, &entry)) {
                changed.push(entry.key().to_owned());
                list.put(entry);
            }
        }
    });
    changed.iter().for_each(|name| server.follow::<T>(name));
    !changed.is_empty()
}
