//! Routes a method to the handler registered for it: the last step of the walk.

use std::borrow::Cow;
#[cfg(feature = "replicas")]
use std::pin::Pin;
use std::sync::Arc;

use trunkline_proto::{Attached, Call};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, FirstPoll, Handler, Listening, Repeated};
use trunkline_wire::code;
use trunkline_wire::era::stateful::{self, ResultBody};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    CompleteParams, CompleteResult, Completion, ListParams, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, ReadResourceResult,
    Reference, TaskRequest,
};
use trunkline_wire::revision::{Era, Revision};
use trunkline_wire::text::Value;

use super::context::{Asker, Context, OneRun};
use super::function::Signature;
use super::job::{Job, Target};
use super::lists::{Entry, List};
use super::{Inner, TemplateEntry, ToolEntry, Typed, rounds, suggest};
use crate::caller::{call_by, may_see, principal};
use crate::observe::Transport;
use trunkline_transport::listeners::Listener;

/// A server, as the transports drive it.
pub(super) struct Router(pub(super) Arc<Inner>, pub(super) Option<Transport>);

impl Handler for Router {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        self.begin(call, handle, &mut FirstPoll::default())
    }

    fn begin(
        &self,
        call: Call,
        handle: &ConversationHandle,
        first: &mut FirstPoll<'_, '_>,
    ) -> Answer {
        #[cfg(feature = "testing")]
        let call = self.0.with_test_principal(call);
        match self.0.watch(&call, self.1) {
            None => self.0.answer(call, handle, first),
            // What is watched is polled by the watch.
            Some(watch) => watch.answer(|| self.0.answer(call, handle, &mut FirstPoll::default())),
        }
    }

    fn listen(&self, handle: &ConversationHandle, attached: &Attached) -> Listening {
        let listener = self.0.listeners.add(handle.clone(), call_by(attached, None));
        Some(Box::new(ListenerGuard { server: Arc::clone(&self.0), listener }))
    }

    fn param_headers(&self, tool: &str, meta: Option<&Json>, attached: &Attached) -> Repeated {
        self.0.param_headers(tool, meta, attached)
    }

    fn scopes(&self, method: &str, params: &Params, attached: &Attached) -> Vec<String> {
        self.0.scopes(method, params, attached)
    }

    #[cfg(feature = "replicas")]
    fn held_by(&self, method: &str, params: &Params, _: &Attached) -> Option<String> {
        self.0.runner_of(method, params)
    }

    #[cfg(feature = "replicas")]
    fn goes_on_at<'a>(
        &'a self,
        method: &'a str,
        params: &'a Params,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>> {
        Box::pin(self.0.heir_of(method, params))
    }

    #[cfg(feature = "http")]
    fn takes_headers(&self) -> bool {
        super::function::headers_are_taken()
    }

    fn denied(&self, status: u16, why: &str) {
        match status {
            // An operator must look into it: the server cannot let anybody in.
            500.. => tracing::warn!(status, why, "a request could not be checked"),
            _ => tracing::debug!(status, why, "a request was not let in"),
        }
    }

    fn is_same_caller(&self, one: &Attached, other: &Attached) -> bool {
        let id = |it| principal(it).map(|it| it.id());
        id(one) == id(other)
    }
}

/// Forgets a listener when its conversation ends.
struct ListenerGuard {
    server: Arc<Inner>,
    listener: Arc<Listener<Call>>,
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.server.listeners.remove(&self.listener);
    }
}

impl Inner {
    /// The call, with the principal that a test set for it.
    #[cfg(feature = "testing")]
    fn with_test_principal(&self, call: Call) -> Call {
        match super::context::lock(&self.principal).clone() {
            Some(principal) => {
                let attached = crate::caller::Added::with(principal, call.attached);
                Call { attached, ..call }
            }
            None => call,
        }
    }

    #[inline(always)]
    fn answer(
        self: &Arc<Self>,
        call: Call,
        handle: &ConversationHandle,
        first: &mut FirstPoll<'_, '_>,
    ) -> Answer {
        if self.layers.is_empty() {
            return self.dispatch(call, handle, first);
        }
        let inside = Arc::clone(self);
        let inside = move |call, handle: &ConversationHandle| {
            inside.dispatch(call, handle, &mut FirstPoll::default())
        };
        self.through(&self.layers, call, handle, Arc::new(inside))
    }

    // A call is large: the way of a tool's is one function, so that it stays where it is.
    #[inline(always)]
    fn dispatch(
        self: &Arc<Self>,
        call: Call,
        handle: &ConversationHandle,
        first: &mut FirstPoll<'_, '_>,
    ) -> Answer {
        match call.method.method {
            Method::ToolsCall => self.call_tool(call, handle, first),
            _ => self.dispatch_other(call, handle),
        }
    }

    #[inline(never)]
    fn dispatch_other(self: &Arc<Self>, call: Call, handle: &ConversationHandle) -> Answer {
        match call.method.method {
            Method::PromptsGet => self.get_prompt(call, handle),
            Method::ResourcesRead => self.read_resource(call, handle),
            Method::ToolsList => Answer::Now(self.list_tools(&call)),
            Method::PromptsList => Answer::Now(self.list_prompts(&call)),
            Method::ResourcesList => Answer::Now(self.list_resources(&call)),
            Method::ResourcesTemplatesList => Answer::Now(self.list_templates(&call)),
            Method::CompletionComplete => {
                self.complete(&call).unwrap_or_else(|it| Answer::Now(Err(it)))
            }
            Method::SkillsList => Answer::Now(self.list_skills(&call)),
            Method::SkillsGet => Answer::Now(self.get_skill(&call)),
            Method::ResourcesDirectoryRead => Answer::Now(self.read_directory(&call)),
            Method::TasksGet
            | Method::TasksResult
            | Method::TasksList
            | Method::TasksCancel
            | Method::TasksUpdate => self.on_task_method(call),
            other => Answer::Now(Err(ErrorObject::method_not_found(other.name()))),
        }
    }

    #[inline(always)]
    fn call_tool(
        self: &Arc<Self>,
        call: Call,
        handle: &ConversationHandle,
        first: &mut FirstPoll<'_, '_>,
    ) -> Answer {
        let ToolParams { name, task } = match ToolParams::read(&call.params) {
            Ok(params) => params,
            Err(error) => return Answer::Now(Err(error)),
        };
        let tool = self.tools.find(&name).filter(|it| may_see(&it.visible, &call));
        let Some(tool) = tool else {
            let tools = self.tools.now();
            let names = tools.iter().filter(|it| may_see(&it.visible, &call));
            return unknown("tool", &name, names.map(|it| &*it.tool.name));
        };
        let Some(layers) = tool.all_layers() else {
            return self.run_tool(tool, task, call, handle, first);
        };
        let server = Arc::clone(self);
        // A layer may have changed the call.
        let inside =
            move |call: Call, handle: &ConversationHandle| match ToolParams::read(&call.params)
                .map(|it| it.task)
            {
                Ok(task) => {
                    let first = &mut FirstPoll::default();
                    server.run_tool(Arc::clone(&tool), task, call, handle, first)
                }
                Err(error) => Answer::Now(Err(error)),
            };
        self.through(&layers, call, handle, Arc::new(inside))
    }

    #[inline(always)]
    fn run_tool(
        self: &Arc<Self>,
        tool: Arc<ToolEntry>,
        task: Option<TaskRequest>,
        mut call: Call,
        handle: &ConversationHandle,
        first: &mut FirstPoll<'_, '_>,
    ) -> Answer {
        let task = self.tasks.wanted(&tool, task.as_ref(), &call);
        let (target, arguments) = (Target::Tool(tool), call.params.take("arguments"));
        let job = Job { server: Arc::clone(self), target, arguments };
        if let Some(refusal) = job.refuse(&call) {
            return Answer::Now(refusal);
        }
        match task {
            Err(error) => Answer::Now(Err(error)),
            Ok(Some(task)) => self.start_task(task, call, handle.clone(), job, None),
            Ok(None) => self.answer_in_era(call, handle, job, first),
        }
    }

    fn get_prompt(self: &Arc<Self>, call: Call, handle: &ConversationHandle) -> Answer {
        let name: Option<String> = call.params.get("name").and_then(|it| it.to().ok());
        let Some(name) = name else { return invalid("`name` must be a string.") };
        let prompt = self.prompts.find(&name).filter(|it| may_see(&it.visible, &call));
        let Some(prompt) = prompt else {
            let prompts = self.prompts.now();
            let names = prompts.iter().filter(|it| may_see(&it.visible, &call));
            return unknown("prompt", &name, names.map(|it| &*it.prompt.name));
        };
        let target = Target::Prompt(prompt);
        let Some(layers) = target.layers() else { return self.run_prompt(target, call, handle) };
        let server = Arc::clone(self);
        let inside = move |call, handle: &ConversationHandle| {
            server.run_prompt(target.clone(), call, handle)
        };
        self.through(&layers, call, handle, Arc::new(inside))
    }

    fn run_prompt(
        self: &Arc<Self>,
        target: Target,
        mut call: Call,
        handle: &ConversationHandle,
    ) -> Answer {
        let arguments = call.params.take("arguments");
        let texts = arguments
            .as_ref()
            .is_none_or(|it| it.to::<std::collections::BTreeMap<String, String>>().is_ok());
        if !texts {
            return invalid("The arguments of a prompt are texts.");
        }
        let job = Job { server: Arc::clone(self), target, arguments };
        self.ask_or_answer(call, handle, job)
    }

    fn read_resource(self: &Arc<Self>, call: Call, handle: &ConversationHandle) -> Answer {
        let uri: Option<String> = call.params.get("uri").and_then(|it| it.to().ok());
        let Some(uri) = uri else { return invalid("`uri` must be a string.") };
        let resource = self.resources.find(&uri);
        // A file added since may be hidden from this caller or require scopes.
        if resource.is_none()
            && let Some(contents) = self.skills.file(&uri)
        {
            let result = ReadResourceResult::new(vec![contents]);
            return Answer::Now(Ok(self.encode(result, call.revision)));
        }
        let resource = resource.filter(|it| may_see(&it.visible, &call));
        let (target, arguments) = if let Some(resource) = resource {
            (Target::Resource(resource), None)
        } else if let Some((template, variables)) = self.match_template(&uri, &call) {
            (Target::Template(template, uri), Some(variables))
        } else {
            return Answer::Now(Err(ErrorObject::resource_not_found(&uri, call.revision)));
        };
        let job = Job { server: Arc::clone(self), target, arguments };
        let Some(layers) = job.target.layers() else {
            return self.ask_or_answer(call, handle, job);
        };
        let server = Arc::clone(self);
        let inside = move |call, handle: &ConversationHandle| {
            server.ask_or_answer(call, handle, job.clone())
        };
        self.through(&layers, call, handle, Arc::new(inside))
    }

    /// Runs a function that may ask questions, in the way of the call's era.
    fn ask_or_answer(
        self: &Arc<Self>,
        call: Call,
        handle: &ConversationHandle,
        job: Job,
    ) -> Answer {
        match job.refuse(&call) {
            Some(refusal) => Answer::Now(refusal),
            None => self.answer_in_era(call, handle, job, &mut FirstPoll::default()),
        }
    }

    /// The same for a call that is not refused.
    fn answer_in_era(
        self: &Arc<Self>,
        call: Call,
        handle: &ConversationHandle,
        job: Job,
        first: &mut FirstPoll<'_, '_>,
    ) -> Answer {
        match call.revision.era() {
            Era::Stateful => first.answer(|| {
                job.start(call.revision, &|job| {
                    Context::new(&job.server, &call, handle, Asker::Wire(OneRun::default()))
                })
            }),
            Era::Stateless => rounds::answer(call, handle, job, first),
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

    fn complete(self: &Arc<Self>, call: &Call) -> Result<Answer, ErrorObject> {
        if let Some(name) = call.params.not_an_object(&["ref", "argument", "context"]) {
            return Err(ErrorObject::invalid_params(format!("`{name}` must be an object.")));
        }
        let params: CompleteParams = call.params.to().map_err(|error| {
            ErrorObject::invalid_params(format!("`completion/complete` cannot be read: {error}."))
        })?;
        let (prompt, template);
        let (name, found) = match &params.reference {
            Reference::Prompt { name, .. } => {
                prompt = self.prompts.find(name).filter(|it| may_see(&it.visible, call));
                (name, prompt.as_ref().map(|it| (&it.signature, &it.completions, &it.completer)))
            }
            Reference::Resource { uri } => {
                template = self.templates.find(uri).filter(|it| may_see(&it.visible, call));
                (uri, template.as_ref().map(|it| (&it.signature, &it.completions, &it.completer)))
            }
        };
        if let Some(error) = found.and_then(|(it, ..)| it.lacks_scopes(name, call)) {
            return Err(error);
        }
        let Some((_, completions, completer)) = found else {
            return Err(ErrorObject::invalid_params("There is nothing here to complete."));
        };
        let completing = match (completer, completions.get(&params.argument.name)) {
            (Some(elsewhere), _) => elsewhere(params),
            (None, Some(complete)) => complete(Typed::new(params)),
            (None, None) => {
                let result = CompleteResult::new(Completion::default());
                return Ok(Answer::Now(Ok(self.encode(result, call.revision))));
            }
        };
        let (server, revision) = (Arc::clone(self), call.revision);
        Ok(Answer::later(async move {
            Ok(server.encode(CompleteResult::new(completing.await?), revision))
        }))
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
        let cursor = self.open_cursor(params.cursor, call, "")?;
        let (page, next) = list.page(cursor.as_deref(), self.page, may_see)?;
        Ok((page, self.seal_cursor(next, call, "")))
    }

    /// Encodes a list. A list that depends on the caller is not cacheable for others.
    fn encode_list<T: ResultBody, E: Entry>(
        &self,
        result: T,
        list: &List<E>,
        has_more: bool,
        call: &Call,
    ) -> Json {
        let is_for_all = !list.iter().any(|it| it.is_hidden_from_some());
        self.encode_page(result, is_for_all, has_more, call)
    }

    /// Encodes a page of a list. A principal's cursor is valid for that principal alone.
    pub(super) fn encode_page<T: ResultBody>(
        &self,
        result: T,
        is_for_all: bool,
        has_more: bool,
        call: &Call,
    ) -> Json {
        let is_personal = has_more && principal(&call.attached).is_some();
        let hint = self.hint(is_for_all && !is_personal);
        stateful::encode(result, call.revision, &self.extras(Some(hint)))
    }

    /// Whether a listener may hear that a resource changed, which is whether it could read the
    /// resource. An unregistered URI is hidden from nobody.
    pub(super) fn may_hear_of(&self, uri: &str, who: &Call) -> bool {
        let has_scopes = |it: &Signature| it.lacks_scopes(uri, who).is_none();
        let resource = self.resources.find(uri);
        // A registered resource takes precedence over every template that its URI matches.
        if let Some(it) = resource.as_ref().filter(|it| may_see(&it.visible, who)) {
            return has_scopes(&it.signature);
        }
        let templates = self.templates.now();
        let fits =
            |it: &&Arc<TemplateEntry>| it.parsed.as_ref().is_ok_and(|it| it.matches(uri).is_some());
        let mut fitting = templates.iter().filter(fits).peekable();
        if resource.is_none() && fitting.peek().is_none() {
            return true;
        }
        let read = fitting.find(|it| may_see(&it.visible, who));
        read.is_some_and(|it| has_scopes(&it.signature))
    }

    pub(super) fn encode<T: ResultBody>(&self, result: T, revision: Revision) -> Json {
        stateful::encode(result, revision, &self.extras(Some(self.cache)))
    }
}

/// What `tools/call` names. The arguments stay in the call.
struct ToolParams<'a> {
    /// The name of the tool.
    name: Cow<'a, str>,
    task: Option<TaskRequest>,
}

impl<'a> ToolParams<'a> {
    fn read(params: &'a Object) -> Result<Self, ErrorObject> {
        let wrong = |why: String| Err(ErrorObject::invalid_params(why));
        let (mut name, mut arguments, mut task) = (None, None, None);
        for (member, value) in params.iter() {
            match member {
                "name" => name = Some(value),
                "arguments" => arguments = Some(value),
                "task" => task = Some(value),
                _ => {}
            }
        }
        for (name, member) in [("arguments", arguments), ("task", task)] {
            if member.is_some_and(|it| !it.is_object()) {
                return wrong(format!("`{name}` must be an object."));
            }
        }
        let name = name.filter(|it| it.is_string());
        let Some(name) = name else { return wrong("`name` must be a string.".to_owned()) };
        let task = task.map(Json::to).transpose();
        let read = task.and_then(|task| {
            let name = name.as_text().map_or_else(|| name.to().map(Cow::Owned), Ok)?;
            Ok(Self { name, task })
        });
        read.or_else(|error| wrong(unreadable(&error)))
    }
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("`tools/call` cannot be read: {error}.")
}

/// The answer about a name that does not exist, or not for this caller.
fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Answer {
    let hint = suggest::closest(name, known);
    let hint = hint.map(|it| format!(" Did you mean `{it}`?")).unwrap_or_default();
    // No longer name than this is compared with others.
    let shown: String = name.chars().take(suggest::LONGEST).collect();
    let rest = if shown.len() < name.len() { "…" } else { "" };
    invalid(format!("There is no {kind} `{shown}{rest}`.{hint}"))
}

fn invalid(message: impl Into<String>) -> Answer {
    Answer::Now(Err(ErrorObject::new(code::INVALID_PARAMS, message)))
}

/// A page of a list, as the caller sees it.
macro_rules! lists {
    ($($name:ident: $list:ident.$item:ident in $Result:ident;)*) => {
        impl Inner { $(
            fn $name(&self, call: &Call) -> Outcome {
                let list = self.$list.now();
                let (found, next) = self.page(&list, call, |it| may_see(&it.visible, call))?;
                let mut result = $Result::new(found.iter().map(|it| it.$item.clone()).collect());
                let has_more = next.is_some();
                result.next_cursor = next;
                Ok(self.encode_list(result, &list, has_more, call))
            }
        )* }
    };
}

lists! {
    list_tools: tools.tool in ListToolsResult;
    list_prompts: prompts.prompt in ListPromptsResult;
    list_resources: resources.resource in ListResourcesResult;
    list_templates: templates.template in ListResourceTemplatesResult;
}

#[cfg(test)]
mod tests;
