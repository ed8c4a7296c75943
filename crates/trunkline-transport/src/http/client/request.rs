//! A message → the body and the headers of its POST.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use tokio::time::Instant;
use trunkline_wire::header::{METHOD, NAME, ParamRegistry, encode_value, name_member};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, MethodName, Object, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::meta;
use trunkline_wire::revision::Era;

use super::route::{Route, VERSION};
use crate::http::message_text::MessageText;

/// A header beyond those of the route.
pub(super) type Header = (HeaderName, HeaderValue);

/// A message as it is posted.
#[derive(Clone, Debug)]
pub(super) struct PostRequest {
    /// The id of a request.
    pub(super) id: Option<i64>,
    /// Empty for a response.
    pub(super) method: MethodName,
    pub(super) message: Message,
    /// The message as text, until it is sent: a long one is not kept beside its answer.
    pub(super) text: Option<MessageText>,
    /// The headers in which 2026-07-28 repeats parts of the body.
    pub(super) headers: Arc<[Header]>,
    /// The earliest time to send it.
    pub(super) not_before: Option<Instant>,
    /// Whether this is the retry after a lost session.
    pub(super) is_second_try: bool,
    /// Whether it is [`Self::ping`].
    pub(super) is_ping: bool,
}

impl PostRequest {
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.method.known(), Some(Method::Initialize | Method::ServerDiscover))
    }

    /// The body of its POST.
    pub(super) fn take_body(&mut self) -> MessageText {
        self.text.take().unwrap_or_else(|| MessageText::of(&self.message))
    }

    /// A `ping` of the transport itself that checks for the session.
    pub(super) fn ping(id: i64) -> Self {
        let method = MethodName::from(Method::Ping);
        Self {
            id: Some(id),
            method: method.clone(),
            message: Message::Request { id: Id::Number(id), method, params: Params::Absent },
            text: None,
            headers: Arc::default(),
            not_before: None,
            is_second_try: false,
            is_ping: true,
        }
    }
}

/// Writes messages, with the headers of 2026-07-28 that repeat their parameters.
#[derive(Default)]
pub(super) struct RequestWriter {
    registry: ParamRegistry,
    /// The last method and name that were repeated, and how: many calls of one kind follow each other.
    last: Option<(MethodName, Json, Arc<[Header]>)>,
}

impl RequestWriter {
    /// Learns from a list of tools which arguments are repeated.
    pub(super) fn learn(&mut self, list_tools_result: &Json) {
        self.registry.learn(list_tools_result);
        self.last = None;
    }

    pub(super) fn write(&mut self, message: Message, route: &Route) -> PostRequest {
        let text = MessageText::of(&message);
        let (id, method, params) = match &message {
            Message::Request { id, method, params } => (number(id), method.clone(), Some(params)),
            Message::Notification { method, params } => (None, method.clone(), Some(params)),
            Message::Response { .. } => (None, MethodName::from(""), None),
        };
        let is_probe = method == Method::ServerDiscover && route.revision.is_none();
        let headers = match params {
            Some(params) if is_probe => {
                let version = version(params).map(|version| (VERSION, version));
                version.into_iter().chain(method_header(&method)).collect()
            }
            Some(params) if route.era() == Some(Era::Stateless) => self.repeat(&method, params),
            _ => Arc::default(),
        };
        PostRequest {
            id,
            method,
            message,
            text: Some(text),
            headers,
            not_before: None,
            is_second_try: false,
            is_ping: false,
        }
    }

    fn repeat(&mut self, method: &MethodName, params: &Params) -> Arc<[Header]> {
        let member = method.known().and_then(name_member).and_then(|it| params.get(it));
        let Some((member, name)) = member.and_then(|it| Some((it, it.as_str()?))) else {
            return method_header(method).into_iter().collect();
        };
        if let Some((last, of, headers)) = &self.last
            && (last, of) == (method, member)
        {
            return Arc::clone(headers);
        }
        let value = HeaderValue::from_str(&encode_value(&name)).ok();
        let both = method_header(method).into_iter().chain(value.map(|it| (NAME_HEADER, it)));
        if *method == Method::ToolsCall && self.registry.get(&name).is_some() {
            let more = self.registry.headers(&name, params.get("arguments"));
            // Annotations and encoding produce valid headers, so neither fails.
            let more = more.into_iter().filter_map(|(name, value)| {
                Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
            });
            return both.chain(more).collect();
        }
        let headers: Arc<[Header]> = both.collect();
        self.last = Some((method.clone(), member.clone(), Arc::clone(&headers)));
        headers
    }
}

/// The id of the request that a message cancels, if it does.
pub(super) fn cancels(message: &Message) -> Option<i64> {
    match message {
        Message::Notification { method, params } if *method == Method::Cancelled => {
            number(&Id::from_json(params.get("requestId")?.get())?)
        }
        _ => None,
    }
}

fn method_header(method: &MethodName) -> Option<Header> {
    let value = match method.known() {
        Some(method) => HeaderValue::from_static(method.name()),
        None => HeaderValue::from_str(&encode_value(method)).ok()?,
    };
    Some((METHOD_HEADER, value))
}

/// The revision that the probe names.
fn version(params: &Params) -> Option<HeaderValue> {
    let meta = Object::parse(params.get("_meta")?.get()).ok()?;
    HeaderValue::from_str(&meta.get(meta::PROTOCOL_VERSION)?.as_str()?).ok()
}

fn number(id: &Id) -> Option<i64> {
    match id {
        Id::Number(number) => Some(*number),
        _ => None,
    }
}

const METHOD_HEADER: HeaderName = HeaderName::from_static(METHOD);
const NAME_HEADER: HeaderName = HeaderName::from_static(NAME);
