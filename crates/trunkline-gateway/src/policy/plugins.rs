//! Runs calls and their results through the plugins.
//!
//! Plugins are the operator's programs that run beside the gateway; `docs/gateway-plugins.md` describes their
//! protocol. They run in the order of their categories, and within one in the order of the file. Plugins for
//! observability are told and not awaited.

mod message;
mod process;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::InputRequest;

use super::audit::Called;
use super::{What, canonical, plain};
use crate::catalog::plan::{Category, PluginPlan};
use crate::failure::{Failure, Reason, Stage};
pub(crate) use message::Kind;
use message::{Answer, Phase};
use process::Plugin;

pub use process::State;

/// All running plugins. Dropping it tells them to end.
#[derive(Default)]
pub struct Pipeline {
    plugins: Vec<Plugin>,
    watch: Option<Watch>,
}

/// Called with a plugin's name and the duration of each answer.
type Watch = Box<dyn Fn(&str, Duration) + Send + Sync>;

/// What plugins are told of a call beside its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallView {
    trace: Option<String>,
    server: String,
    what: Called,
    principal: Option<String>,
}

/// A plugin refused, or a required one failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The plugin.
    pub plugin: String,
    /// A word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

/// The status of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// Its name.
    pub name: String,
    /// Whether calls fail without it.
    pub required: bool,
    /// Whether it runs.
    #[serde(flatten)]
    pub state: State,
    /// How often it was started.
    pub starts: u64,
    /// How many messages it missed because it did not keep up.
    pub missed: u64,
}

impl CallView {
    /// A call of a server's tool, by the server's own name; `principal` is `None` for anonymous callers.
    pub fn new(server: &str, tool: &str, principal: Option<&str>) -> Self {
        Self::about(server, What::Tool(tool), principal)
    }

    /// A call of any target.
    pub fn about(server: &str, what: What<'_>, principal: Option<&str>) -> Self {
        let (server, principal) = (server.to_owned(), principal.map(str::to_owned));
        Self { trace: None, server, what: what.into(), principal }
    }

    /// Adds the id of the call in logs and errors.
    #[must_use]
    pub fn trace(mut self, trace: impl Into<String>) -> Self {
        self.trace = Some(trace.into());
        self
    }
}

impl Pipeline {
    /// Starts all plugins, each owned by a task, and waits for the required ones: if one of these does not
    /// start, all are stopped. The others may start later.
    pub async fn start(plans: &[PluginPlan]) -> Result<Self, Failure> {
        let pipeline = Self::begin(plans);
        for plugin in pipeline.plugins.iter().filter(|it| it.plan().required) {
            if let State::Down { last_error } = plugin.settled().await {
                let name = &plugin.plan().name;
                let message = format!("The plugin `{name}` did not start: {last_error}.");
                let advice = "Try its command in a terminal, or say `required: false`.";
                return Err(
                    Failure::new(Reason::PluginFailed, Stage::Policy, message).advice(advice)
                );
            }
        }
        Ok(pipeline)
    }

    /// Adds a callback for the duration of each answer.
    #[must_use]
    pub fn watched(mut self, watch: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    fn begin(plans: &[PluginPlan]) -> Self {
        let mut plans: Vec<_> = plans.iter().cloned().map(Arc::new).collect();
        // A stable sort: within a category the order of the file counts.
        plans.sort_by_key(|it| it.category);
        Self { plugins: plans.into_iter().map(Plugin::start).collect(), watch: None }
    }

    /// Whether there are no plugins.
    pub fn is_empty(&self) -> bool {
        self.plugins.is_empty()
    }

    /// The status of each.
    pub fn status(&self) -> Vec<PluginStatus> {
        self.plugins.iter().map(Plugin::status).collect()
    }

    /// Asks about a call before it is made. Returns the arguments to use.
    pub async fn request(&self, call: &CallView, arguments: Json) -> Result<Json, Rejected> {
        if !self.is_empty() && canonical::is_ambiguous(&arguments) {
            return Err(Rejected {
                plugin: String::new(),
                code: "ambiguous_arguments".to_owned(),
                message: "An object in the arguments has two members of one name.".to_owned(),
            });
        }
        self.pass(Phase::Request, Kind::Result, call, arguments).await
    }

    /// Asks about the result of a call. Returns the result to use.
    pub async fn response(&self, call: &CallView, result: Json) -> Result<Json, Rejected> {
        self.pass(Phase::Response, Kind::Result, call, result).await
    }

    /// Asks about anything else that a server sends. Returns what to pass on.
    pub(crate) async fn said(
        &self,
        kind: Kind,
        call: &CallView,
        value: Json,
    ) -> Result<Json, Rejected> {
        self.pass(Phase::Response, kind, call, value).await
    }

    /// Asks about a server's question: its method and parameters.
    pub(crate) async fn question(
        &self,
        call: &CallView,
        request: InputRequest,
    ) -> Result<InputRequest, Rejected> {
        let (method, params) = (request.method(), request.params());
        let asked = serde_json::json!({ "method": method.name(), "params": params });
        let asked = self.said(Kind::Question, call, Json::of(&asked)).await?;
        let changed = Object::parse(asked.get()).ok();
        let params = changed.as_ref().and_then(|it| it.get("params"));
        InputRequest::read(method.name(), params).map_err(|error| Rejected {
            plugin: String::new(),
            code: "bad_question".to_owned(),
            message: format!("A plugin changed the question so that it cannot be asked: {error}."),
        })
    }

    /// Asks about the caller's answers to a server's questions. Returns the answers to pass on.
    pub(crate) async fn answers(&self, call: &CallView, answers: Json) -> Result<Json, Rejected> {
        self.pass(Phase::Answer, Kind::Result, call, answers).await
    }

    /// Tells all plugins to end, and kills those that do not. Calls that need one fail from now on.
    pub async fn close(&self) {
        // All are told before any is awaited.
        self.plugins.iter().for_each(Plugin::tell_to_end);
        for plugin in &self.plugins {
            plugin.ended().await;
        }
    }

    async fn pass(
        &self,
        phase: Phase,
        kind: Kind,
        call: &CallView,
        mut value: Json,
    ) -> Result<Json, Rejected> {
        for plugin in self.plugins.iter().filter(|it| it.wants(phase)) {
            let plan = plugin.plan();
            let line = |id| message::ask(phase, kind, id, call, &value);
            if plan.category == Category::Observability {
                plugin.tell(line);
                continue;
            }
            let began = Instant::now();
            let answer = plugin.ask(line).await;
            if let Some(watch) = &self.watch {
                watch(&plan.name, began.elapsed());
            }
            match answer.and_then(|answer| judge(plan, phase, answer)) {
                Ok(Verdict::Continue) => {}
                Ok(Verdict::Change(changed)) => value = changed,
                Ok(Verdict::Reject(rejected)) => return Err(rejected),
                Err(fault) if plan.required => return Err(failed(plan, phase, &fault)),
                Err(fault) => {
                    tracing::warn!(target: "trunkline::plugin", plugin = plan.name, trace = call.trace.as_deref(),
                        "`{}` was skipped for a call: {fault}", plan.name);
                }
            }
        }
        Ok(value)
    }
}

impl Rejected {
    /// The refusal of a tool call: a result with `isError`, for the model to read.
    pub fn to_result(&self) -> Json {
        let text = self.to_string();
        Json::of(&serde_json::json!({
            "content": [{ "type": "text", "text": text }],
            "isError": true,
        }))
    }

    /// The refusal of any other call.
    pub fn to_failure(&self, server: &str) -> Failure {
        Failure::new(Reason::Rejected, Stage::Policy, self.to_string()).of(server)
    }
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Rejected {}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.plugins.iter().map(|it| &it.plan().name)).finish()
    }
}

/// What happens to a call after an answer.
#[derive(Debug, PartialEq)]
enum Verdict {
    Continue,
    Change(Json),
    Reject(Rejected),
}

/// Only `content` plugins change anything; changes by others are ignored.
fn judge(plan: &PluginPlan, phase: Phase, answer: Answer) -> Result<Verdict, String> {
    let changed = match answer {
        Answer::Reject { code, message } => {
            let say = |text: Option<String>, usual: &str, limit| {
                let text = text.map(|it| plain(&it, limit)).filter(|it| !it.is_empty());
                text.unwrap_or_else(|| usual.to_owned())
            };
            let usual = format!("The plugin `{}` does not allow this.", plan.name);
            return Ok(Verdict::Reject(Rejected {
                plugin: plan.name.clone(),
                code: say(code, "rejected", LONGEST_CODE),
                message: say(message, &usual, LONGEST_MESSAGE),
            }));
        }
        Answer::Continue { arguments, result } => match phase {
            Phase::Request | Phase::Answer => arguments,
            Phase::Response => result,
        },
    };
    match changed.filter(|_| plan.category == Category::Content) {
        None => Ok(Verdict::Continue),
        Some(changed) if changed.is_object() => Ok(Verdict::Change(changed)),
        Some(_) => Err(format!("it sent `{}` that are no object", phase.subject())),
    }
}

fn failed(plan: &PluginPlan, phase: Phase, fault: &str) -> Rejected {
    let name = &plan.name;
    // Its stderr may be about another caller's call.
    let fault = fault.split(process::LAST_WORDS).next().unwrap_or_default();
    let message = match phase {
        Phase::Request | Phase::Answer => {
            format!("The call was not made, for the plugin `{name}` is needed: {fault}.")
        }
        Phase::Response => format!(
            "The call was made, but its result is withheld, for the plugin `{name}` is needed: {fault}."
        ),
    };
    Rejected { plugin: name.clone(), code: "plugin_failed".to_owned(), message }
}

/// The bytes of a plugin's rejection that are passed on.
const LONGEST_CODE: usize = 64;
const LONGEST_MESSAGE: usize = 2_000;

#[cfg(test)]
mod tests;
