//! The model ⇄ JSON for the revisions that begin with `initialize`: drop or reshape what the revision
//! lacks, then write. Reading needs no codec, because the model reads every spelling.
//!
//! ```
//! use trunkline_wire::era::stateful;
//! use trunkline_wire::{json::Json, model::CallToolResult, revision::Revision};
//!
//! let result = CallToolResult::structured(Json::of(&serde_json::json!({ "sum": 3 })));
//! let old = stateful::encode_result(result, Revision::V2024_11_05.profile());
//! assert_eq!(old.get(), r#"{"content":[{"type":"text","text":"{\"sum\":3}"}]}"#);
//! ```

mod fit;
mod schema;

use std::fmt;

use serde::Serialize;

use super::stateless::{self, Extras};
use super::{Profile, Structured};
use crate::json::{Json, Reader, push_string};
use crate::jsonrpc::{Id, Object};
use crate::model::meta::{MetaFault, PROGRESS_TOKEN, RELATED_TASK};
use crate::model::{
    CallToolResult, Content, ElicitParams, FormSchema, InputRequest, ListTasksResult,
    PrimitiveSchema, Progress, Task, TaskStatus, progress_meta,
};
use crate::revision::{Era, Revision};

/// A type that older revisions restrict.
pub trait Fit {
    /// Drops or reshapes what the revision lacks.
    fn fit(&mut self, profile: &Profile);
}

/// Something that can be the result of a request.
pub trait ResultBody: Fit + Serialize {
    /// Whether 2026-07-28 requires a cache hint with it.
    const CACHEABLE: bool = false;

    /// Removes and returns the `_meta`.
    fn take_meta(&mut self) -> Option<Json>;

    /// Appends the value as a JSON object, with `opening` (a comma, say) in place of its opening bracket.
    fn write(&self, opening: char, out: &mut String) {
        let start = out.len();
        let mut bytes = std::mem::take(out).into_bytes();
        serde_json::to_writer(&mut bytes, self)
            .expect("the protocol's own types are always writable");
        *out = String::from_utf8(bytes).expect("JSON is written from UTF-8 pieces");
        if opening != '{' {
            out.replace_range(start..=start, opening.encode_utf8(&mut [0; 4]));
        }
    }
}

/// Writes a result as the revision spells it.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let list = ListPromptsResult::new(vec![Prompt::new("review").title("Review code")]);
/// let json = encode_result(list, Revision::V2024_11_05.profile());
/// assert_eq!(json.get(), r#"{"prompts":[{"name":"review"}]}"#);
/// ```
pub fn encode_result<T: ResultBody>(mut value: T, profile: &Profile) -> Json {
    value.fit(profile);
    Json::write(|out| value.write('{', out))
}

/// Writes parameters as the revision spells them.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let params = encode_params(SetLevelParams::new(LogLevel::Error), Revision::V2025_11_25.profile());
/// assert_eq!(params.to_json().get(), r#"{"level":"error"}"#);
/// ```
pub fn encode_params<T: Fit + Serialize>(mut value: T, profile: &Profile) -> Object {
    value.fit(profile);
    Object::of(&value)
}

/// Makes a structured result match the tool's output schema after [`Fit`] has reshaped that schema:
/// where structured results must be objects, both are wrapped in `result` or neither is. Call it before
/// encoding whenever the schema is at hand; without it only values that are no objects are wrapped.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let schema = Json::parse(r#"{"type":"array"}"#).unwrap();
/// let mut result = CallToolResult::structured(Json::of(&[1, 2]));
/// fit_output(&mut result, Some(&schema), Revision::V2025_11_25.profile());
/// assert_eq!(result.structured_content.unwrap().get(), r#"{"result":[1,2]}"#);
/// ```
pub fn fit_output(result: &mut CallToolResult, schema: Option<&Json>, profile: &Profile) {
    if profile.structured == Structured::Object
        && schema.is_some_and(|schema| !schema::is_object_schema(schema))
        && let Some(value) = &result.structured_content
    {
        result.structured_content = Some(schema::wrap_value(value));
    }
}

/// Appends a tool's result as the revision spells it. Plain text blocks are written in one pass.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let (result, mut out) = (CallToolResult::text("Sunny"), String::new());
/// write_call_tool_result(&result, Revision::LATEST.profile(), &Extras::default(), &mut out);
/// let json = r#"{"resultType":"complete","content":[{"type":"text","text":"Sunny"}]}"#;
/// assert_eq!(out, json);
/// ```
pub fn write_call_tool_result(
    result: &CallToolResult,
    profile: &Profile,
    extras: &Extras<'_>,
    out: &mut String,
) {
    if !is_plain(result) {
        let mut result = result.clone();
        result.fit(profile);
        let meta = result.take_meta();
        return write_in_era(&result, meta, profile, extras, out);
    }
    write_in_era(result, None, profile, extras, out);
}

fn write_in_era(
    result: &CallToolResult,
    meta: Option<Json>,
    profile: &Profile,
    extras: &Extras<'_>,
    out: &mut String,
) {
    match profile.era {
        Era::Stateful => write_body(result, meta.as_ref(), '{', out),
        Era::Stateless => {
            stateless::open("complete", None, extras, meta, out);
            stateless::append(result, out);
        }
    }
}

/// Only text, which every revision spells alike.
fn is_plain(result: &CallToolResult) -> bool {
    result.structured_content.is_none()
        && result.meta.is_none()
        && result.content.iter().all(|block| plain_text(block).is_some())
}

fn plain_text(block: &Content) -> Option<&str> {
    match block {
        Content::Text(text) if text.annotations.is_none() && text.meta.is_none() => {
            Some(&text.text)
        }
        _ => None,
    }
}

pub(super) fn write_body(
    result: &CallToolResult,
    meta: Option<&Json>,
    opening: char,
    out: &mut String,
) {
    let texts = result.content.iter().filter_map(plain_text);
    out.reserve(texts.map(|text| text.len() + 32).sum::<usize>() + 64);
    out.push(opening);
    out.push_str(r#""content":["#);
    for (at, block) in result.content.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match plain_text(block) {
            Some(text) => {
                out.push_str(r#"{"type":"text","text":"#);
                push_string(text, out);
                out.push('}');
            }
            None => out.push_str(Json::of(block).get()),
        }
    }
    out.push(']');
    let mut member = |name: &str, value: &str| {
        out.push_str(name);
        out.push_str(value);
    };
    if let Some(value) = &result.structured_content {
        member(r#","structuredContent":"#, value.get());
    }
    if let Some(is_error) = result.is_error {
        member(r#","isError":"#, if is_error { "true" } else { "false" });
    }
    if let Some(meta) = meta {
        member(r#","_meta":"#, meta.get());
    }
    out.push('}');
}

/// A task as 2025-11-25 spells it: the answer to `tasks/get` and `tasks/cancel`, and the
/// parameters of `notifications/tasks/status`.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let json = encode_task(&Task::new("t-1", "2025-11-25T12:00:00Z").ttl_ms(9_u64));
/// assert!(json.get().ends_with(r#""ttl":9}"#), "2025-11-25 does not say `ttlMs`");
/// ```
pub fn encode_task(task: &Task) -> Json {
    Json::of(&TaskOnWire::of(task))
}

/// The answer to `tasks/get`, with the progress of the task.
///
/// ```
/// # use trunkline_wire::{era::stateful::*, model::*};
/// let task = Task::new("t-1", "2025-11-25T12:00:00Z");
/// let json = encode_task_state(&task, Some(&Progress::new(1.0)));
/// assert!(json.get().ends_with(r#""_meta":{"trunkline/progress":{"progress":1}}}"#));
/// assert_eq!(encode_task_state(&task, None), encode_task(&task));
/// ```
pub fn encode_task_state(task: &Task, progress: Option<&Progress>) -> Json {
    let mut state = Object::of(&TaskOnWire::of(task));
    if let Some(progress) = progress {
        state.set("_meta", progress_meta(progress));
    }
    state.to_json()
}

/// The answer to a request that became a task.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let json = encode_task_created(&Task::new("t-1", "2025-11-25T12:00:00Z"));
/// assert!(json.get().starts_with(r#"{"task":{"taskId":"t-1""#));
/// ```
pub fn encode_task_created(task: &Task) -> Json {
    #[derive(Serialize)]
    struct Created<'a> {
        task: TaskOnWire<'a>,
    }
    Json::of(&Created { task: TaskOnWire::of(task) })
}

/// The answer to `tasks/list`.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let json = encode_task_list(&ListTasksResult::new(Vec::new()).next_cursor("page-2"));
/// assert_eq!(json.get(), r#"{"tasks":[],"nextCursor":"page-2"}"#);
/// ```
pub fn encode_task_list(list: &ListTasksResult) -> Json {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct List<'a> {
        tasks: Vec<TaskOnWire<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_cursor: Option<&'a str>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a Json>,
    }
    let tasks = list.tasks.iter().map(TaskOnWire::of).collect();
    let next_cursor = list.next_cursor.as_deref();
    Json::of(&List { tasks, next_cursor, meta: list.meta.as_ref() })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskOnWire<'a> {
    task_id: &'a str,
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: &'a str,
    last_updated_at: &'a str,
    ttl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval: Option<u64>,
}

impl<'a> TaskOnWire<'a> {
    fn of(task: &'a Task) -> Self {
        Self {
            task_id: &task.task_id,
            status: task.status,
            status_message: task.status_message.as_deref(),
            created_at: &task.created_at,
            last_updated_at: &task.last_updated_at,
            ttl: task.ttl_ms,
            poll_interval: task.poll_interval_ms,
        }
    }
}

/// The `_meta` of a request or notification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestMeta {
    /// Asks for progress notifications.
    pub progress_token: Option<Id>,
    /// The task that the message belongs to (2025-11-25).
    pub related_task: Option<String>,
    /// Everything else.
    pub rest: Object,
}

impl RequestMeta {
    /// Reads `params._meta`.
    pub fn read(meta: Option<&Json>) -> Result<Self, MetaFault> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Related {
            task_id: String,
        }
        let Some(meta) = meta.filter(|meta| !meta.is_null()) else { return Ok(Self::default()) };
        let mut rest = Object::parse(meta.get()).map_err(|_| MetaFault::of(meta))?;
        let progress_token = take_token(&mut rest)?;
        let related_task = match rest.take(RELATED_TASK) {
            Some(raw) => {
                let related: Related = raw.to().map_err(|_| MetaFault::Wrong(RELATED_TASK))?;
                Some(related.task_id)
            }
            None => None,
        };
        Ok(Self { progress_token, related_task, rest })
    }

    /// The progress token alone, as JSON. It fails where [`Self::read`] does.
    ///
    /// ```
    /// # use trunkline_wire::{era::stateful::RequestMeta, json::Json};
    /// let meta = Json::parse(r#"{"progressToken": "a"}"#).unwrap();
    /// assert_eq!(RequestMeta::read_token(Some(&meta)), Ok(Some(Json::string("a"))));
    /// assert_eq!(RequestMeta::read_token(None), Ok(None));
    /// ```
    #[inline]
    pub fn read_token(meta: Option<&Json>) -> Result<Option<Json>, MetaFault> {
        meta.map_or(Ok(None), Self::token_of)
    }

    fn token_of(meta: &Json) -> Result<Option<Json>, MetaFault> {
        match only_token(meta) {
            Some(token) => Ok(Some(token)),
            None => Ok(Self::read(Some(meta))?.progress_token.map(|it| it.to_json())),
        }
    }

    /// The `_meta` to send, unless it would be empty.
    pub fn to_json(&self) -> Option<Json> {
        let mut meta = self.rest.clone();
        if let Some(token) = &self.progress_token {
            meta.set(PROGRESS_TOKEN, token.to_json());
        }
        if let Some(task) = &self.related_task {
            meta.set(RELATED_TASK, Json::of(&serde_json::json!({ "taskId": task })));
        }
        (!meta.is_empty()).then(|| meta.to_json())
    }
}

/// The progress token of a `_meta` that has nothing else, as most have, if there is no doubt about it.
fn only_token(meta: &Json) -> Option<Json> {
    let mut reader = Reader::new(meta.get());
    reader.open(b'{').ok()?;
    reader.member(true).ok()??.plain().filter(|it| *it == PROGRESS_TOKEN)?;
    let token = reader.value().ok()?;
    let place = reader.position() - token.len()..reader.position();
    if reader.member(false).ok()?.is_some() || reader.end().is_err() {
        return None;
    }
    let is_plain = match token.starts_with('"') {
        true => token.len() <= Id::LONGEST && !token.contains('\\'),
        false => Id::from_json(token).is_some(),
    };
    is_plain.then(|| meta.inner(place))
}

pub(super) fn take_token(meta: &mut Object) -> Result<Option<Id>, MetaFault> {
    match meta.take(PROGRESS_TOKEN) {
        Some(raw) if !raw.is_null() => {
            Id::from_json(raw.get()).map(Some).ok_or(MetaFault::Wrong(PROGRESS_TOKEN))
        }
        _ => Ok(None),
    }
}

/// Why a revision cannot ask a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The revision has no elicitation.
    Elicitation,
    /// The revision has no URL elicitation.
    Url,
    /// The revision's forms have no multi-select fields.
    Many(String),
    /// The revision cannot give tools to the model.
    Tools,
}

/// Whether the revision can ask this. [`Fit`] reshapes what passes.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let ask = InputRequest::Elicit(ElicitParams::url("Please pay.", "https://example.com/pay"));
/// assert_eq!(can_ask(&ask, Revision::V2025_03_26.profile()), Err(Unfit::Elicitation));
/// assert_eq!(can_ask(&ask, Revision::V2025_06_18.profile()), Err(Unfit::Url));
/// assert_eq!(can_ask(&ask, Revision::V2025_11_25.profile()), Ok(()));
/// ```
pub fn can_ask(request: &InputRequest, profile: &Profile) -> Result<(), Unfit> {
    match request {
        InputRequest::Elicit(_) if !profile.titles => Err(Unfit::Elicitation),
        InputRequest::Elicit(ElicitParams::Url(_)) if !profile.icons => Err(Unfit::Url),
        InputRequest::Elicit(ElicitParams::Form(form)) if !profile.icons => {
            let schema: FormSchema = form.requested_schema.to().unwrap_or_default();
            let many = schema.properties.into_iter().find(|(_, field)| {
                matches!(field, PrimitiveSchema::Enum(choice) if choice.many.is_some())
            });
            many.map_or(Ok(()), |(name, _)| Err(Unfit::Many(name)))
        }
        InputRequest::Sample(params) if !profile.icons && !params.tools.is_empty() => {
            Err(Unfit::Tools)
        }
        _ => Ok(()),
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elicitation => f.write_str("This revision cannot ask the user."),
            Self::Url => f.write_str("This revision cannot send the user to a URL."),
            Self::Many(name) => {
                write!(f, "In this revision the field `{name}` cannot hold several choices.")
            }
            Self::Tools => f.write_str("This revision cannot give tools to the model."),
        }
    }
}

impl std::error::Error for Unfit {}

/// Writes a result as `revision` spells it.
///
/// ```
/// # use trunkline_wire::{era::{stateful::*, stateless::Extras}, json::Json, model::*, revision::Revision};
/// let told = |revision| encode(EmptyResult::new(), revision, &Extras::default());
/// assert_eq!(told(Revision::V2025_11_25).get(), "{}");
/// assert_eq!(told(Revision::V2026_07_28).get(), r#"{"resultType":"complete"}"#);
/// ```
pub fn encode<T: ResultBody>(value: T, revision: Revision, extras: &Extras<'_>) -> Json {
    match revision.era() {
        Era::Stateful => encode_result(value, revision.profile()),
        Era::Stateless => stateless::encode_result(value, extras),
    }
}
