//! Method → handler: the last step of the walk.

use std::sync::Arc;

use trunkline_proto::Call;
use trunkline_transport::handler::{Answer, Handler, Listening};
use trunkline_transport::voice::Voice;
use trunkline_wire::code;
use trunkline_wire::era::stateful::{self, ResultBody};
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::model::{
    CallToolParams, CompleteParams, CompleteResult, Completion, ListParams, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, ReadResourceResult,
    Reference,
};
use trunkline_wire::revision::{Era, Revision};
use trunkline_wire::text::Value;

use super::context::{Asker, Context};
use super::job::{Job, Target};
use super::listeners::Listener;
use super::lists::{Entry, List};
use super::{Inner, TemplateEntry, rounds};
use crate::extract::may_see;

/// A server as the transports see it.
pub(super) struct Router(pub(super) Arc<Inner>);

impl Handler for Router {
    fn call(&self, call: Call, voice: &Voice) -> Answer {
        let server = &self.0;
        match call.method.name {
            "tools/call" => server.call_tool(call, voice),
            "prompts/get" => server.get_prompt(call, voice),
            "resources/read" => server.read_resource(call, voice),
            "tools/list" => Answer::Now(server.list_tools(&call)),
            "prompts/list" => Answer::Now(server.list_prompts(&call)),
            "resources/list" => Answer::Now(server.list_resources(&call)),
            "resources/templates/list" => Answer::Now(server.list_templates(&call)),
            "completion/complete" => Answer::Now(server.complete(&call)),
            "skills/list" => Answer::Now(server.list_skills(&call)),
            "skills/get" => Answer::Now(server.get_skill(&call)),
            "resources/directory/read" => Answer::Now(server.read_directory(&call)),
            name if name.starts_with("tasks/") => server.on_task_method(call),
            name => Answer::Now(Err(ErrorObject::method_not_found(name))),
        }
    }

    fn listen(&self, voice: &Voice) -> Listening {
        let listener = self.0.listeners.add(voice.clone());
        Some(Box::new(Heeded { server: Arc::clone(&self.0), listener }))
    }

    fn param_headers(&self, tool: &str) -> Option<Arc<ParamHeaders>> {
        self.0.param_headers(tool)
    }
}

/// Forgets a listener when its conversation ends.
struct Heeded {
    server: Arc<Inner>,
    listener: Arc<Listener>,
}

impl Drop for Heeded {
    fn drop(&mut self) {
        self.server.listeners.remove(&self.listener);
    }
}

impl Inner {
    fn call_tool(self: &Arc<Self>, mut call: Call, voice: &Voice) -> Answer {
        // The state of earlier rounds, if any, stays with the call.
        let mut own = Object::default();
        for member in ["name", "arguments", "task"] {
            if let Some(value) = call.params.take(member) {
                own.set(member, value);
            }
        }
        if let Some(name) = own.not_an_object(&["arguments", "task"]) {
            return invalid(format!("`{name}` must be an object."));
        }
        let params = match CallToolParams::from_object(own) {
            Ok(params) => params,
            Err(error) => return invalid(format!("`tools/call` cannot be read: {error}.")),
        };
        let tool = self.tools.find(&params.name).filter(|it| may_see(&it.visible, &call));
        let Some(tool) = tool else {
            return invalid(format!("There is no tool `{}`.", params.name));
        };
        let task = self.tasks.wanted(&tool, params.task.as_ref(), &call);
        let target = Target::Tool(tool);
        let job = Job { server: Arc::clone(self), target, arguments: params.arguments };
        match task {
            Err(error) => Answer::Now(Err(error)),
            Ok(Some(task)) => self.start_task(task, call, voice.clone(), job, None),
            Ok(None) => self.ask_or_answer(call, voice, job),
        }
    }

    fn get_prompt(self: &Arc<Self>, mut call: Call, voice: &Voice) -> Answer {
        let name: Option<String> = call.params.get("name").and_then(|it| it.to().ok());
        let Some(name) = name else { return invalid("`name` must be a string.") };
        let prompt = self.prompts.find(&name).filter(|it| may_see(&it.visible, &call));
        let Some(prompt) = prompt else {
            return invalid(format!("There is no prompt `{name}`."));
        };
        let arguments = call.params.take("arguments");
        let texts = arguments
            .as_ref()
            .is_none_or(|it| it.to::<std::collections::BTreeMap<String, String>>().is_ok());
        if !texts {
            return invalid("The arguments of a prompt are texts.");
        }
        let job = Job { server: Arc::clone(self), target: Target::Prompt(prompt), arguments };
        self.ask_or_answer(call, voice, job)
    }

    fn read_resource(self: &Arc<Self>, call: Call, voice: &Voice) -> Answer {
        let uri: Option<String> = call.params.get("uri").and_then(|it| it.to().ok());
        let Some(uri) = uri else { return invalid("`uri` must be a string.") };
        if let Some(contents) = self.skills.file(&uri) {
            let result = ReadResourceResult::new(vec![contents]);
            return Answer::Now(Ok(self.encode(result, call.revision)));
        }
        let resource = self.resources.find(&uri).filter(|it| may_see(&it.visible, &call));
        let (target, arguments) = if let Some(resource) = resource {
            (Target::Resource(resource), None)
        } else if let Some((template, variables)) = self.match_template(&uri, &call) {
            (Target::Template(template, uri), Some(variables))
        } else {
            return Answer::Now(Err(ErrorObject::resource_not_found(&uri, call.revision)));
        };
        let job = Job { server: Arc::clone(self), target, arguments };
        self.ask_or_answer(call, voice, job)
    }

    /// Runs a function that may ask, in the way the call's era has.
    fn ask_or_answer(self: &Arc<Self>, call: Call, voice: &Voice, job: Job) -> Answer {
        match call.revision.era() {
            Era::Stateful => {
                let context = Context::new(self, &call, voice, Asker::Wire);
                Answer::Later(Box::pin(job.start(&context)))
            }
            Era::Stateless => {
                Answer::later(rounds::answer(Arc::clone(self), call, voice.clone(), job))
            }
        }
    }

    fn match_template(&self, uri: &str, call: &Call) -> Option<(Arc<TemplateEntry>, Json)> {
        let templates = self.templates.now();
        templates.iter().filter(|it| may_see(&it.visible, call)).find_map(|it| {
            let mut variables = Object::default();
            for (name, value) in it.parsed.as_ref().ok()?.matches(uri)? {
                let value = match value {
                    Value::Text(text) => Json::string(&text),
                    Value::List(items) => Json::of(&items),
                    Value::Pairs(pairs) => {
                        Json::of(&pairs.into_iter().collect::<std::collections::BTreeMap<_, _>>())
                    }
                };
                variables.set(name, value);
            }
            Some((Arc::clone(it), variables.to_json()))
        })
    }

    fn list_tools(&self, call: &Call) -> Outcome {
        let list = self.tools.now();
        let (tools, next) = self.page(&list, call, |it| may_see(&it.visible, call))?;
        let mut result = ListToolsResult::new(tools.iter().map(|it| it.tool.clone()).collect());
        result.next_cursor = next;
        Ok(self.encode(result, call.revision))
    }

    fn list_prompts(&self, call: &Call) -> Outcome {
        let list = self.prompts.now();
        let (prompts, next) = self.page(&list, call, |it| may_see(&it.visible, call))?;
        let mut result =
            ListPromptsResult::new(prompts.iter().map(|it| it.prompt.clone()).collect());
        result.next_cursor = next;
        Ok(self.encode(result, call.revision))
    }

    fn list_resources(&self, call: &Call) -> Outcome {
        let list = self.resources.now();
        let (found, next) = self.page(&list, call, |it| may_see(&it.visible, call))?;
        let mut result =
            ListResourcesResult::new(found.iter().map(|it| it.resource.clone()).collect());
        result.next_cursor = next;
        Ok(self.encode(result, call.revision))
    }

    fn list_templates(&self, call: &Call) -> Outcome {
        let list = self.templates.now();
        let (found, next) = self.page(&list, call, |it| may_see(&it.visible, call))?;
        let mut result =
            ListResourceTemplatesResult::new(found.iter().map(|it| it.template.clone()).collect());
        result.next_cursor = next;
        Ok(self.encode(result, call.revision))
    }

    fn complete(&self, call: &Call) -> Outcome {
        if let Some(name) = call.params.not_an_object(&["ref", "argument", "context"]) {
            return Err(ErrorObject::invalid_params(format!("`{name}` must be an object.")));
        }
        let params: CompleteParams = call.params.to().map_err(|error| {
            ErrorObject::invalid_params(format!("`completion/complete` cannot be read: {error}."))
        })?;
        let (prompt, template);
        let completions = match &params.reference {
            Reference::Prompt { name, .. } => {
                prompt = self.prompts.find(name).filter(|it| may_see(&it.visible, call));
                prompt.as_ref().map(|it| &it.completions)
            }
            Reference::Resource { uri } => {
                template = self.templates.find(uri).filter(|it| may_see(&it.visible, call));
                template.as_ref().map(|it| &it.completions)
            }
        };
        let Some(completions) = completions else {
            return Err(ErrorObject::invalid_params("There is nothing here to complete."));
        };
        let complete = completions.get(&params.argument.name);
        let values =
            complete.map(|it| it(&params.argument.value, &params.context)).unwrap_or_default();
        Ok(self.encode(CompleteResult::new(Completion::new(values)), call.revision))
    }

    pub(super) fn page<'a, T: Entry>(
        &self,
        list: &'a List<T>,
        call: &Call,
        may_see: impl Fn(&T) -> bool,
    ) -> Result<(Vec<&'a Arc<T>>, Option<String>), ErrorObject> {
        let params: ListParams = call
            .params
            .to()
            .map_err(|_| ErrorObject::invalid_params("`cursor` must be a string."))?;
        list.page(params.cursor.as_deref(), self.page, may_see)
    }

    pub(super) fn encode<T: ResultBody>(&self, result: T, revision: Revision) -> Json {
        stateful::encode(result, revision, &self.extras(Some(self.cache)))
    }
}

fn invalid(message: impl Into<String>) -> Answer {
    Answer::Now(Err(ErrorObject::new(code::INVALID_PARAMS, message)))
}
