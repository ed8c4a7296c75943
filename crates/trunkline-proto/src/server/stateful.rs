//! Revisions up to 2025-11-25: `initialize` opens a session, which keeps state.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::era::Profile;
use trunkline_wire::era::stateful::{self, RequestMeta};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Message, MethodName, Object, Params};
use trunkline_wire::method::{Gate, Kind, Method, Sender};
use trunkline_wire::model::{InitializeParams, InitializeResult, LogLevel};
use trunkline_wire::revision::{Era, Revision};

use super::Config;
use super::shared::{Asking, Facts, Shared};
use crate::{Change, Peer};

/// What `initialize` negotiated, and the state since.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) peer: Arc<Peer>,
    /// Whether the client has sent `notifications/initialized`.
    pub(super) ready: bool,
    /// The level that the client has set.
    pub(super) log_level: Option<LogLevel>,
    subscribed: BTreeSet<String>,
    /// The tasks that this client began; it hears of no others.
    tasks: VecDeque<String>,
}

impl Session {
    /// Negotiates the revision: the client's if we speak it, otherwise our newest.
    pub(super) fn open(shared: &Shared, params: Object) -> Result<(Self, Json), ErrorObject> {
        let config = &shared.config;
        // The session keeps all of it, so its size is bounded.
        if params.iter().map(|(name, value)| name.len() + value.get().len()).sum::<usize>()
            > MAX_INITIALIZE
        {
            let message = format!("`initialize` may have at most {MAX_INITIALIZE} bytes.");
            return Err(ErrorObject::invalid_params(message));
        }
        if let Some(name) = params.not_an_object(&["capabilities", "clientInfo"]) {
            return Err(ErrorObject::invalid_params(format!("`{name}` must be an object.")));
        }
        let params: InitializeParams = params.to().map_err(|err| {
            ErrorObject::invalid_params(format!("`initialize` cannot be read: {err}."))
        })?;
        let ours = config.revisions.of_era(Era::Stateful);
        let revision = Revision::parse(&params.protocol_version)
            .filter(|it| ours.contains(*it))
            .or(ours.newest())
            .expect("a session is opened only by a server with a stateful revision");
        let peer =
            Peer { info: Some(params.client_info), client: params.capabilities, ..Peer::default() };
        let mut result = InitializeResult::new(
            revision.as_str(),
            config.capabilities.clone(),
            config.info.clone(),
        );
        result.instructions = shared.instructions();
        let session = Self {
            revision,
            peer: Arc::new(peer),
            ready: false,
            log_level: None,
            subscribed: BTreeSet::new(),
            tasks: VecDeque::new(),
        };
        Ok((session, stateful::encode_result(result, revision.profile())))
    }

    /// A session of which only the revision is known.
    pub(super) fn for_known_revision(revision: Revision) -> Self {
        Self {
            revision,
            peer: Arc::default(),
            ready: true,
            log_level: None,
            subscribed: BTreeSet::new(),
            tasks: VecDeque::new(),
        }
    }

    /// What the client has chosen since.
    pub(super) fn choices(&self) -> (Option<LogLevel>, Vec<String>) {
        (self.log_level, self.subscribed.iter().cloned().collect())
    }

    pub(super) fn profile(&self) -> &'static Profile {
        self.revision.profile()
    }

    pub(super) fn on_request(
        &mut self,
        shared: &mut Shared,
        from: Asking,
        method: &MethodName,
        mut params: Object,
        now: Instant,
    ) {
        let row = method
            .row(Sender::Client, self.revision)
            .filter(|row| row.kind == Kind::Request)
            .filter(|row| shared.config.capabilities.supports(row.gate));
        let Some(row) = row else {
            return shared.reply(from, Err(ErrorObject::method_not_found(method)));
        };
        let outcome = match row.method {
            Method::Ping => Ok(Json::empty_object()),
            Method::LoggingSetLevel => self.set_level(&params),
            Method::ResourcesSubscribe => {
                self.subscribe(&params, shared.config.bounds.subscriptions)
            }
            Method::ResourcesUnsubscribe => self.unsubscribe(&params),
            _ => {
                let meta = params.take("_meta");
                let token = match RequestMeta::read_token(meta.as_ref()) {
                    Ok(token) => token,
                    Err(fault) => return shared.reply(from, Err(fault.into())),
                };
                let facts = Facts {
                    row,
                    params,
                    meta,
                    revision: self.revision,
                    peer: Arc::clone(&self.peer),
                    token,
                    log_level: self.log_level,
                    dialect: None,
                };
                return shared.call(from, facts, now);
            }
        };
        let is_subscription =
            matches!(row.method, Method::ResourcesSubscribe | Method::ResourcesUnsubscribe);
        let uri = params.take("uri").filter(|_| is_subscription && outcome.is_ok());
        shared.reply(from, outcome);
        if let Some(uri) = uri {
            let mut params = Object::default();
            params.set("uri", uri);
            shared.tell_subscribed(row.method, params, &self.peer);
        }
    }

    /// The notification of a change for this session's client, if it wants one.
    pub(super) fn on_changed(&self, change: &Change, config: &Config) -> Option<Message> {
        let caps = &config.capabilities;
        let has = |gate| caps.supports(gate);
        let (method, params) = match change {
            _ if !self.ready => return None,
            Change::Tools if caps.tools.as_ref().is_some_and(|it| it.list_changed) => {
                (Method::ToolsListChanged, Params::Absent)
            }
            Change::Prompts if caps.prompts.as_ref().is_some_and(|it| it.list_changed) => {
                (Method::PromptsListChanged, Params::Absent)
            }
            Change::Resources if caps.resources.as_ref().is_some_and(|it| it.list_changed) => {
                (Method::ResourcesListChanged, Params::Absent)
            }
            Change::Resource(uri) if has(Gate::Subscribe) && self.is_subscribed(uri) => {
                let params = serde_json::json!({ "uri": uri });
                (Method::ResourcesUpdated, Params::of(&params))
            }
            Change::Task(task, _) if has(Gate::Tasks) && self.tasks.contains(&task.task_id) => (
                Method::TasksStatus,
                Params::Object(Object::parse(stateful::encode_task(task).get()).ok()?),
            ),
            Change::ElicitationComplete(id) => {
                let params = serde_json::json!({ "elicitationId": id });
                (Method::ElicitationComplete, Params::of(&params))
            }
            _ => return None,
        };
        method
            .row(Sender::Server, self.revision)
            .map(|row| Message::notification(row.method, params))
    }

    /// Remembers the task that a call of this client became.
    pub(super) fn note_task(&mut self, result: &Json, limit: usize) {
        #[derive(serde::Deserialize)]
        struct Created {
            task: Named,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            task_id: String,
        }
        if let Ok(created) = result.to::<Created>() {
            if self.tasks.len() >= limit {
                self.tasks.pop_front();
            }
            self.tasks.push_back(created.task.task_id);
        }
    }

    fn set_level(&mut self, params: &Object) -> Result<Json, ErrorObject> {
        let level = params.get("level").and_then(|it| it.to().ok()).ok_or_else(|| {
            ErrorObject::invalid_params("`level` is not one of the eight levels.")
        })?;
        self.log_level = Some(level);
        Ok(Json::empty_object())
    }

    fn subscribe(&mut self, params: &Object, limit: usize) -> Result<Json, ErrorObject> {
        let uri = uri_of(params)?;
        let bytes = self.subscribed.iter().map(String::len).sum::<usize>() + uri.len();
        let is_too_much = self.subscribed.len() >= limit || bytes > crate::subscribe::SUBSCRIBED;
        if is_too_much && !self.subscribed.contains(&uri) {
            return Err(ErrorObject::internal("overloaded", "Too many subscriptions are open."));
        }
        self.subscribed.insert(uri);
        Ok(Json::empty_object())
    }

    fn unsubscribe(&mut self, params: &Object) -> Result<Json, ErrorObject> {
        self.subscribed.remove(&uri_of(params)?);
        Ok(Json::empty_object())
    }

    fn is_subscribed(&self, uri: &str) -> bool {
        self.subscribed.iter().any(|it| crate::subscribe::covers(it, uri))
    }
}

/// The longest `initialize` parameters in bytes, because a session keeps them.
const MAX_INITIALIZE: usize = 64 << 10;

/// The revision that `initialize` requests.
pub(super) fn requested(params: &Object) -> Option<String> {
    params.get("protocolVersion")?.to().ok()
}

fn uri_of(params: &Object) -> Result<String, ErrorObject> {
    params
        .get("uri")
        .and_then(|it| it.to().ok())
        .filter(|it: &String| it.len() <= crate::subscribe::MAX_URI)
        .ok_or_else(|| ErrorObject::invalid_params("`uri` must be a string of at most 64 KiB."))
}
