//! Subscriptions: the open `subscriptions/listen` requests of 2026-07-28, and the matching rules of
//! both eras.

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, Object, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::{ServerCapabilities, SubscriptionFilter, meta};

use crate::Change;

/// The longest URI that can be subscribed to.
pub(crate) const MAX_URI: usize = trunkline_wire::text::MAX_URI;

/// The bytes that the URIs of one session may have in all.
pub const SUBSCRIBED: usize = 1 << 20;

/// The open subscriptions of one connection.
#[derive(Debug, Default)]
pub(crate) struct Listens(Vec<(Id, SubscriptionFilter)>);

impl Listens {
    pub(crate) fn add(&mut self, id: Id, filter: SubscriptionFilter) {
        self.0.push((id, filter));
    }

    pub(crate) fn remove(&mut self, id: &Id) -> bool {
        let before = self.0.len();
        self.0.retain(|(it, _)| it != id);
        self.0.len() < before
    }

    pub(crate) fn drain(&mut self) -> Vec<Id> {
        self.0.drain(..).map(|(id, _)| id).collect()
    }

    /// The size of all filters together.
    pub(crate) fn size(&self) -> usize {
        self.0.iter().map(|(_, filter)| size(filter)).sum()
    }

    /// The notifications of a change, one per matching subscription and tagged with it.
    pub(crate) fn on_changed(&self, change: &Change) -> Vec<Message> {
        let listeners = self.0.iter().filter(|(_, filter)| wants(filter, change));
        listeners.filter_map(|(id, _)| notification(id, change)).collect()
    }
}

/// The size of a filter: one, plus each resource and task it names.
pub(crate) fn size(filter: &SubscriptionFilter) -> usize {
    1 + filter.resource_subscriptions.len() + filter.task_ids.len()
}

/// The part of a filter that the server's capabilities support.
pub fn honoured(mut filter: SubscriptionFilter, caps: &ServerCapabilities) -> SubscriptionFilter {
    filter.tools_list_changed &= caps.tools.as_ref().is_some_and(|it| it.list_changed);
    filter.prompts_list_changed &= caps.prompts.as_ref().is_some_and(|it| it.list_changed);
    filter.resources_list_changed &= caps.resources.as_ref().is_some_and(|it| it.list_changed);
    if !caps.resources.as_ref().is_some_and(|it| it.subscribe) {
        filter.resource_subscriptions.clear();
    }
    if !caps.extensions.contains_key(trunkline_wire::model::TASKS_EXTENSION) {
        filter.task_ids.clear();
    }
    filter
}

/// The parameters of a subscription's first message.
pub(crate) fn acknowledgement(id: &Id, honoured: &SubscriptionFilter) -> Object {
    let mut params = Object::default();
    params.set("notifications", Json::of(honoured));
    params.set("_meta", tag(id));
    params
}

/// The last messages of a subscription that the server ends. The cancellation comes first: after the
/// result the client may reuse the id.
pub(crate) fn closing_messages(id: &Id) -> [Message; 2] {
    let mut params = Object::default();
    params.set("requestId", id.to_json());
    params.set("reason", Json::string("The server ends this subscription."));
    let mut result = Object::default();
    result.set("resultType", Json::string("complete"));
    result.set("_meta", tag(id));
    [
        Message::notification(Method::Cancelled, Params::Object(params)),
        Message::result(id.clone(), result.to_json()),
    ]
}

/// Whether a subscription to `subscribed` covers `uri`: the same resource, or one below it.
///
/// ```
/// # use trunkline_proto::subscribe::covers;
/// assert!(covers("file:///a", "file:///a") && covers("file:///a", "file:///a/b"));
/// assert!(!covers("file:///a", "file:///ab"));
/// ```
pub fn covers(subscribed: &str, uri: &str) -> bool {
    uri.strip_prefix(subscribed)
        .is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with('/'))
}

/// Whether a filter matches a change.
pub fn wants(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed,
        Change::Prompts => filter.prompts_list_changed,
        Change::Resources => filter.resources_list_changed,
        Change::Resource(uri) => filter.resource_subscriptions.iter().any(|it| covers(it, uri)),
        Change::Task(task, _) => filter.task_ids.contains(&task.task_id),
        Change::ElicitationComplete(_) => false,
    }
}

fn notification(id: &Id, change: &Change) -> Option<Message> {
    let mut params = Object::default();
    let method = match change {
        Change::Tools => Method::ToolsListChanged,
        Change::Prompts => Method::PromptsListChanged,
        Change::Resources => Method::ResourcesListChanged,
        Change::Resource(uri) => {
            params.set("uri", Json::string(uri));
            Method::ResourcesUpdated
        }
        Change::Task(_, detailed) => {
            params = Object::parse(detailed.get()).ok()?;
            params.take("resultType");
            Method::Tasks
        }
        Change::ElicitationComplete(_) => return None,
    };
    Some(tagged(method, params, id))
}

fn tagged(method: Method, mut params: Object, id: &Id) -> Message {
    params.set("_meta", tag(id));
    Message::notification(method, Params::Object(params))
}

fn tag(id: &Id) -> Json {
    let mut meta = Object::default();
    meta.set(meta::SUBSCRIPTION_ID, id.to_json());
    meta.to_json()
}
