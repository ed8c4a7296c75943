//! The model ⇄ JSON for 2026-07-28: every request carries its [`Envelope`] in `_meta`, every result its
//! `resultType`, and a cacheable result its TTL.
//!
//! ```
//! use trunkline_wire::era::stateless::{Decoded, Extras, decode_result, encode_result};
//! use trunkline_wire::model::{CacheHint, ListToolsResult};
//!
//! let extras = Extras { cache: Some(CacheHint::public(5_000)), ..Extras::default() };
//! let json = encode_result(ListToolsResult::new(Vec::new()), &extras);
//! let text = r#"{"resultType":"complete","ttlMs":5000,"cacheScope":"public","tools":[]}"#;
//! assert_eq!(json.get(), text);
//! assert!(matches!(decode_result(json), Ok(Decoded::Complete(_))));
//! ```

mod envelope;

use serde::Deserialize;
use serde::de::Error as _;

use super::stateful::{Fit, ResultBody};
use crate::json::Json;
use crate::json::glance::{Glance, ResultType};
use crate::jsonrpc::{Id, Object};
use crate::model::meta::{SERVER_INFO, SUBSCRIPTION_ID};
use crate::model::{
    CacheHint, CacheScope, DetailedTask, Implementation, InputRequired, Task, progress_meta,
};
use crate::revision::Revision;

pub use envelope::Envelope;

/// The members of a result besides its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// The cache hint; [`CacheHint::NONE`] where one is required and absent.
    pub cache: Option<CacheHint>,
    /// The server's name and version.
    pub server_info: Option<&'a Json>,
}

/// A decoded result.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// The answer, unchanged.
    Complete(Json),
    /// Questions for the client.
    InputRequired(InputRequired),
    /// A task.
    Task(Task),
    /// An unknown `resultType`: the result must not be used.
    Unknown(String),
}

/// Writes a result.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// // Without a cache hint, a list is stale at once.
/// let json = encode_result(ListPromptsResult::new(Vec::new()), &Extras::default());
/// assert_eq!(decode_cache(&json), CacheHint::NONE);
/// assert!(json.get().contains(r#""ttlMs":0"#));
/// ```
pub fn encode_result<T: ResultBody>(mut value: T, extras: &Extras<'_>) -> Json {
    value.fit(Revision::LATEST.profile());
    let meta = value.take_meta();
    let cache = T::CACHEABLE.then(|| extras.cache.unwrap_or_default());
    Json::write(|out| {
        open("complete", cache, extras, meta, out);
        append(&value, out);
    })
}

/// Builds a result from members that are already spelled for this revision.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let body = Object::parse(r#"{"resultType":"task","prompts":[]}"#).unwrap();
/// let json = add_envelope(body, false, &Extras::default());
/// assert_eq!(json.get(), r#"{"resultType":"complete","prompts":[]}"#);
/// ```
pub fn add_envelope(mut body: Object, is_cacheable: bool, extras: &Extras<'_>) -> Json {
    body.take("resultType");
    if is_cacheable {
        body.take("ttlMs");
        body.take("cacheScope");
    }
    let cache = is_cacheable.then(|| extras.cache.unwrap_or_default());
    let meta = body.take("_meta");
    let mut out = String::new();
    open("complete", cache, extras, meta, &mut out);
    splice(body.to_json().get(), &mut out);
    Json::written(out)
}

/// Writes an `input_required` result. It is never cacheable.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let input = InputRequired::new(vec![("where".to_owned(), InputRequest::Roots)]);
/// let json = encode_input_required(&input, &Extras::default());
/// assert_eq!(decode_result(json).unwrap(), Decoded::InputRequired(input));
/// ```
pub fn encode_input_required(input: &InputRequired, extras: &Extras<'_>) -> Json {
    let mut input = input.clone();
    input.fit(Revision::LATEST.profile());
    encode_as("input_required", &Json::of(&input), extras)
}

/// Writes the answer to a request that became a task.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let task = Task::new("t-1", "2026-07-28T12:00:00Z");
/// let json = encode_task_created(&task, &Extras::default());
/// assert_eq!(decode_result(json).unwrap(), Decoded::Task(task));
/// ```
pub fn encode_task_created(task: &Task, extras: &Extras<'_>) -> Json {
    encode_as("task", &Json::of(task), extras)
}

/// Writes the answer to `tasks/get`.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let task = DetailedTask::new(Task::new("t-1", "2026-07-28T12:00:00Z"));
/// let json = encode_task_detail(&task, &Extras::default());
/// assert!(json.get().starts_with(r#"{"resultType":"complete","taskId":"t-1""#));
/// ```
pub fn encode_task_detail(task: &DetailedTask, extras: &Extras<'_>) -> Json {
    let meta = task.progress.as_ref().map(progress_meta);
    let bare = DetailedTask { progress: None, ..task.clone() };
    let mut out = String::new();
    open("complete", None, extras, meta, &mut out);
    splice(encode_task_params(&bare).get(), &mut out);
    Json::written(out)
}

/// The parameters of `notifications/tasks`.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let task = DetailedTask::new(Task::new("t-1", "2026-07-28T12:00:00Z"));
/// assert_eq!(encode_task_params(&task).to::<DetailedTask>().unwrap(), task);
/// ```
pub fn encode_task_params(task: &DetailedTask) -> Json {
    let mut task = task.clone();
    for (_, request) in &mut task.input_requests {
        request.fit(Revision::LATEST.profile());
    }
    Json::of(&task)
}

/// The result that ends `subscriptions/listen`.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let json = encode_listen_result(&Id::Number(7), &Extras::default());
/// let text = r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#;
/// assert_eq!(json.get(), text);
/// ```
pub fn encode_listen_result(subscription: &Id, extras: &Extras<'_>) -> Json {
    let mut meta = Object::default();
    meta.set(SUBSCRIPTION_ID, subscription.to_json());
    let mut out = String::new();
    open("complete", None, extras, Some(meta.to_json()), &mut out);
    out.push('}');
    Json::written(out)
}

/// Tags a notification's parameters with their subscription.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let mut params = Object::default();
/// tag_subscription(&mut params, &Id::Text("s".into()));
/// assert_eq!(subscription_id(params.get("_meta").unwrap()), Some(Id::Text("s".into())));
/// ```
pub fn tag_subscription(params: &mut Object, subscription: &Id) {
    let meta = params.take("_meta");
    params.set("_meta", with_meta(meta, SUBSCRIPTION_ID, &subscription.to_json()));
}

/// The subscription that the `_meta` of a notification or listen result names.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let meta = Json::parse(r#"{"io.modelcontextprotocol/subscriptionId":7}"#).unwrap();
/// assert_eq!(subscription_id(&meta), Some(Id::Number(7)));
/// assert_eq!(subscription_id(&Json::empty_object()), None);
/// ```
pub fn subscription_id(meta: &Json) -> Option<Id> {
    Id::from_json(Object::parse(meta.get()).ok()?.get(SUBSCRIPTION_ID)?.get())
}

/// Tells a complete result from questions and tasks. Without `resultType` it is complete.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let plain = Json::parse(r#"{"tools":[]}"#).unwrap();
/// assert_eq!(decode_result(plain.clone()).unwrap(), Decoded::Complete(plain));
/// let empty = Json::parse(r#"{"resultType":"input_required"}"#).unwrap();
/// assert!(decode_result(empty).is_err(), "it asks nothing");
/// ```
pub fn decode_result(raw: Json) -> Result<Decoded, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        #[serde(default)]
        result_type: Option<String>,
    }
    // Derived deserialisers accept arrays for structs; a result must be an object.
    if !raw.is_object() {
        return Err(serde_json::Error::custom("a result must be an object"));
    }
    // Nearly every result is an answer, and a glance is enough to know.
    let glance = Glance::of(&raw);
    if matches!(glance.result_type, ResultType::None | ResultType::Complete) && !glance.repeats_type
    {
        return Ok(Decoded::Complete(raw));
    }
    let head: Head = raw.read()?;
    match head.result_type.as_deref() {
        None | Some("complete") => Ok(Decoded::Complete(raw)),
        Some("input_required") => {
            let input: InputRequired = raw.to()?;
            if input.requests.is_empty() && input.state.is_none() {
                let message = "neither `inputRequests` nor `requestState` is there";
                return Err(serde_json::Error::custom(message));
            }
            Ok(Decoded::InputRequired(input))
        }
        Some("task") => Ok(Decoded::Task(raw.to()?)),
        Some(_) => Ok(Decoded::Unknown(head.result_type.unwrap_or_default())),
    }
}

/// Reads the cache hint of a result. A missing or negative TTL means zero, a missing or unknown scope
/// means private.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let raw = Json::parse(r#"{"ttlMs":5000,"cacheScope":"public"}"#).unwrap();
/// assert_eq!(decode_cache(&raw), CacheHint::public(5000));
/// let odd = Json::parse(r#"{"ttlMs":-1,"cacheScope":"family"}"#).unwrap();
/// assert_eq!(decode_cache(&odd), CacheHint::NONE);
/// ```
pub fn decode_cache(raw: &Json) -> CacheHint {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Hint {
        ttl_ms: Option<serde_json::Number>,
        cache_scope: Option<Json>,
    }
    let hint: Hint = raw.to().unwrap_or_default();
    let ttl_ms = hint.ttl_ms.and_then(|ttl| ttl.as_u64()).unwrap_or(0);
    let scope = hint.cache_scope.and_then(|scope| scope.to::<CacheScope>().ok());
    CacheHint { ttl_ms, scope: scope.unwrap_or_default() }
}

/// The same result with a TTL of zero: one that depends on answers must not be cached.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let raw = Json::parse(r#"{"ttlMs":5000,"cacheScope":"public","contents":[]}"#).unwrap();
/// assert_eq!(decode_cache(&never_kept(raw)).ttl_ms, 0);
/// ```
pub fn never_kept(raw: Json) -> Json {
    let Ok(mut object) = Object::parse(raw.get()) else { return raw };
    match object.take("ttlMs") {
        Some(_) => object.to_json(),
        None => raw,
    }
}

/// Reads the server's name and version from a result's `_meta`.
///
/// ```
/// # use trunkline_wire::{era::stateless::*, json::Json, jsonrpc::{Id, Object}, model::*};
/// let info = r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"a","version":"1"}}}"#;
/// let raw = Json::parse(info).unwrap();
/// assert_eq!(decode_server_info(&raw), Some(Implementation::new("a", "1")));
/// assert_eq!(decode_server_info(&Json::empty_object()), None);
/// ```
pub fn decode_server_info(raw: &Json) -> Option<Implementation> {
    let meta = Object::parse(raw.get()).ok()?.take("_meta")?;
    Object::parse(meta.get()).ok()?.get(SERVER_INFO)?.to().ok()
}

fn encode_as(kind: &str, body: &Json, extras: &Extras<'_>) -> Json {
    let mut out = String::new();
    open(kind, None, extras, None, &mut out);
    splice(body.get(), &mut out);
    Json::written(out)
}

/// Writes the start of a result: everything but its body.
pub(super) fn open(
    kind: &str,
    cache: Option<CacheHint>,
    extras: &Extras<'_>,
    meta: Option<Json>,
    out: &mut String,
) {
    use std::fmt::Write;
    // Room for a short result. Neither name needs escaping.
    out.reserve(512);
    out.push_str(r#"{"resultType":""#);
    out.push_str(kind);
    out.push('"');
    if let Some(CacheHint { ttl_ms, scope }) = cache {
        write!(out, r#","ttlMs":{ttl_ms},"cacheScope":"{}""#, scope.as_str())
            .expect("writing to memory cannot fail");
    }
    match (extras.server_info, meta) {
        (None, None) => {}
        // The common case: nothing to merge, so nothing to parse.
        (Some(server_info), None) => {
            out.push_str(r#","_meta":{""#);
            out.push_str(SERVER_INFO);
            out.push_str(r#"":"#);
            out.push_str(server_info.get());
            out.push('}');
        }
        (server_info, Some(meta)) => {
            let meta = match server_info {
                Some(server_info) => with_meta(Some(meta), SERVER_INFO, server_info),
                None => meta,
            };
            out.push_str(r#","_meta":"#);
            out.push_str(meta.get());
        }
    }
}

/// Writes the body's members and the end of the result.
pub(super) fn append(body: &impl ResultBody, out: &mut String) {
    let start = out.len();
    // A comma before its first member takes the place of the body's opening bracket.
    body.write(',', out);
    if out.len() == start + 2 {
        out.truncate(start);
        out.push('}');
    }
}

fn splice(object: &str, out: &mut String) {
    if object.len() > 2 {
        out.push(',');
    }
    out.push_str(&object[1..]);
}

/// `meta` with one more member, unless it exists.
fn with_meta(meta: Option<Json>, name: &'static str, value: &Json) -> Json {
    let mut object = meta.and_then(|meta| Object::parse(meta.get()).ok()).unwrap_or_default();
    if object.get(name).is_none() {
        object.set(name, value.clone());
    }
    object.to_json()
}
