//! A message → the body and the headers of its POST.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use tokio::time::Instant;
use trunkline_wire::header::{METHOD, NAME, ParamRegistry, encode_value, name_member};
use trunkline_wire::jsonrpc::{Id, Message, MethodName, Object, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::meta;
use trunkline_wire::revision::Era;

use super::route::{Route, VERSION};

/// A message as it is posted.
#[derive(Debug)]
pub(super) struct PostRequest {
    /// The id of a request.
    pub(super) id: Option<i64>,
    /// Empty for a response.
    pub(super) method: MethodName,
    pub(super) body: Bytes,
    /// The headers in which 2026-07-28 repeats parts of the body.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
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

    /// A `ping` of the transport itself that checks for the session.
    pub(super) fn ping(id: i64) -> Self {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        Self {
            id: Some(id),
            method: Method::Ping.into(),
            body: body.into(),
            headers: Vec::new(),
            not_before: None,
            is_second_try: false,
            is_ping: true,
        }
    }
}

/// Serialises a message, and derives the headers of 2026-07-28 from its parameters.
pub(super) fn write(message: &Message, route: &Route, registry: &ParamRegistry) -> PostRequest {
    let mut body = Vec::with_capacity(512);
    message.write(&mut body);
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (number(id), method.clone(), Some(params)),
        Message::Notification { method, params } => (None, method.clone(), Some(params)),
        Message::Response { .. } => (None, MethodName::from(""), None),
    };
    let is_probe = method == Method::ServerDiscover && route.revision.is_none();
    let mut headers = Vec::new();
    if let Some(params) = params
        && (is_probe || route.era() == Some(Era::Stateless))
    {
        headers.reserve(2);
        if let Some(version) = is_probe.then(|| version(params)).flatten() {
            headers.push((VERSION, version));
        }
        repeat(&method, params, registry, &mut headers);
    }
    PostRequest {
        id,
        method,
        body: body.into(),
        headers,
        not_before: None,
        is_second_try: false,
        is_ping: false,
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

fn repeat(
    method: &MethodName,
    params: &Params,
    registry: &ParamRegistry,
    headers: &mut Vec<(HeaderName, HeaderValue)>,
) {
    let value = match method.known() {
        Some(method) => Ok(HeaderValue::from_static(method.name())),
        None => HeaderValue::from_str(&encode_value(method)),
    };
    headers.extend(value.ok().map(|value| (METHOD_HEADER, value)));
    let member = method.known().and_then(name_member);
    let Some(name) = member.and_then(|it| params.get(it)?.as_str()) else { return };
    let value = HeaderValue::from_str(&encode_value(&name));
    headers.extend(value.ok().map(|value| (NAME_HEADER, value)));
    if *method == Method::ToolsCall && !registry.is_empty() {
        for (name, value) in registry.headers(&name, params.get("arguments")) {
            // Annotations and encoding produce valid headers, so neither fails.
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.push((name, value));
            }
        }
    }
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
