//! The `mcp/…` dialect ⇄ MCP: five methods, parameters by name or by position, bare arrays and any JSON
//! as results, `null` as an id.
//!
//! A [`Request`] of the dialect becomes an [`Exchange`]: a value that names the next MCP call and turns
//! its results into the dialect's one answer. It makes no call itself. The dialect has nothing
//! interactive, so the calls must declare no client capabilities.
//!
//! ```
//! use trunkline_wire::dialect::{Exchange, Request, Step};
//! use trunkline_wire::json::Json;
//! use trunkline_wire::jsonrpc::Params;
//! use trunkline_wire::method::Method;
//!
//! let params = Params::Array(vec![Json::string("add"), Json::empty_object()]);
//! let request = Request::read("mcp/tool/execute", params).unwrap();
//! let (mut exchange, step) = Exchange::begin(request, Json::null);
//! assert!(matches!(step, Step::Call { method: Method::ToolsCall, .. }));
//! let result = Json::parse(r#"{"content":[],"structuredContent":{"sum":3}}"#).unwrap();
//! let answer = Json::parse(r#"{"sum":3}"#).unwrap();
//! assert_eq!(exchange.answered(Ok(result)), Step::Reply(Ok(answer)));
//! ```

mod shape;

use crate::code;
use crate::era::stateless::{Decoded, decode_result};
use crate::json::Json;
use crate::jsonrpc::{ErrorObject, Object, Outcome, Params};
use crate::method::Method;
use crate::model::{CallToolResult, Implementation, ServerCapabilities};
use crate::revision::Revision;

pub use shape::{read_resources, read_tools};

/// The five methods, in the dialect's own order.
pub const METHODS: [&str; 5] = [
    "mcp/initialize",
    "mcp/listTools",
    "mcp/listResources",
    "mcp/tool/execute",
    "mcp/resource/read",
];

/// The error code for a failed tool; the data is the tool's result. Codes from -32768 to -32000 are
/// reserved.
pub const TOOL_FAILED: i64 = -31001;

/// How many pages of a list are fetched before giving up.
pub const MAX_PAGES: usize = 1000;

/// Whether a method belongs to the dialect.
///
/// ```
/// # use trunkline_wire::{dialect::*, json::Json, jsonrpc::{Object, Params}, model::*};
/// assert!(METHODS.into_iter().all(is_dialect));
/// assert!(!is_dialect("tools/list"));
/// ```
pub fn is_dialect(method: &str) -> bool {
    method.starts_with("mcp/")
}

/// One of the five requests, parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Asks for the server's description. The client's own description is free-form and ignored.
    Initialize,
    /// All tools.
    ListTools,
    /// All resources and templates.
    ListResources,
    /// Calls a tool.
    #[allow(missing_docs)]
    Execute { tool: String, inputs: Option<Json> },
    /// Reads a resource; a template is already expanded.
    #[allow(missing_docs)]
    Read { uri: String },
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make this MCP call, and hand its outcome to [`Exchange::answered`].
    #[allow(missing_docs)]
    Call { method: Method, params: Object },
    /// Answer the dialect's request.
    Reply(Outcome),
}

/// A request of the dialect while it is being answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    stage: Stage,
    items: Vec<Json>,
    pages: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Tools,
    Resources,
    Templates,
    Execute,
    Read,
    Over,
}

impl Request {
    /// Parses a request, whose parameters may be absent, an object or an array.
    pub fn read(method: &str, params: Params) -> Result<Self, ErrorObject> {
        match method {
            "mcp/initialize" => Ok(Self::Initialize),
            "mcp/listTools" => Arguments::new(params, &[]).map(|_| Self::ListTools),
            "mcp/listResources" => Arguments::new(params, &[]).map(|_| Self::ListResources),
            "mcp/tool/execute" => {
                let mut it = Arguments::new(params, &[TOOL, INPUTS])?;
                let tool = it.text(TOOL)?;
                let inputs = it.object(INPUTS)?.map(|inputs| inputs.to_json());
                Ok(Self::Execute { tool, inputs })
            }
            "mcp/resource/read" => {
                let mut it = Arguments::new(params, &[RESOURCE, QUERY])?;
                let (id, query) = (it.text(RESOURCE)?, it.object(QUERY)?);
                let uri = shape::expand(id, query.unwrap_or_default())?;
                Ok(Self::Read { uri })
            }
            _ => Err(ErrorObject::method_not_found(method)),
        }
    }
}

impl Exchange {
    /// Starts to answer; `describe` writes the answer to `mcp/initialize`, usually with [`describe`].
    pub fn begin(request: Request, describe: impl FnOnce() -> Json) -> (Self, Step) {
        let mut params = Object::default();
        let (stage, step) = match request {
            Request::Initialize => (Stage::Over, Step::Reply(Ok(describe()))),
            Request::ListTools => (Stage::Tools, list(Stage::Tools, None)),
            Request::ListResources => (Stage::Resources, list(Stage::Resources, None)),
            Request::Execute { tool, inputs } => {
                params.set("name", Json::string(&tool));
                params.set("arguments", inputs.unwrap_or_else(Json::empty_object));
                (Stage::Execute, Step::Call { method: Method::ToolsCall, params })
            }
            Request::Read { uri } => {
                params.set("uri", Json::string(&uri));
                (Stage::Read, Step::Call { method: Method::ResourcesRead, params })
            }
        };
        (Self { stage, items: Vec::new(), pages: 0 }, step)
    }

    /// Continues with the outcome of the call.
    pub fn answered(&mut self, outcome: Outcome) -> Step {
        let step = match self.stage {
            Stage::Tools | Stage::Resources | Stage::Templates => self.page(outcome),
            Stage::Execute => Ok(Step::Reply(complete(outcome).and_then(tool_reply))),
            Stage::Read => Ok(Step::Reply(complete(outcome).and_then(read_reply))),
            Stage::Over => Err(unusable("it came after the end")),
        };
        let step = step.unwrap_or_else(|error| Step::Reply(Err(error)));
        if matches!(step, Step::Reply(_)) {
            self.stage = Stage::Over;
        }
        step
    }

    /// Adds one page, and asks for the next page or the next list.
    fn page(&mut self, outcome: Outcome) -> Result<Step, ErrorObject> {
        let mut page = match complete(outcome) {
            Ok(raw) => Object::parse(raw.get()).map_err(|_| unusable("a list is no object"))?,
            // A server without that method has an empty list; the dialect always answers.
            Err(error) if error.code == code::METHOD_NOT_FOUND => Object::default(),
            Err(error) => return Err(error),
        };
        let items = page.take(self.stage.member()).map(|items| items.to::<Vec<Json>>());
        let items = items.transpose().map_err(|_| unusable("a list holds no array"))?;
        for item in items.unwrap_or_default() {
            let shaped = match self.stage {
                Stage::Tools => shape::tool(&item),
                Stage::Resources => shape::resource(&item),
                _ => shape::template(&item),
            };
            self.items.push(shaped.map_err(|_| unusable("a list holds something unreadable"))?);
        }
        self.pages += 1;
        let cursor = page.take("nextCursor").filter(|cursor| !cursor.is_null());
        if cursor.is_some() && self.pages >= MAX_PAGES {
            return Err(unusable("a list does not end"));
        }
        if cursor.is_none() && self.stage == Stage::Resources {
            self.stage = Stage::Templates;
            return Ok(list(Stage::Templates, None));
        }
        match cursor {
            Some(cursor) => Ok(list(self.stage, Some(cursor))),
            None => Ok(Step::Reply(Ok(Json::of(&self.items)))),
        }
    }
}

/// The answer to `mcp/initialize`.
///
/// ```
/// # use trunkline_wire::{dialect::*, json::Json, jsonrpc::{Object, Params}, model::*};
/// let server = Implementation::new("travel", "1.0");
/// let json = describe(&server, &ServerCapabilities::new(), None);
/// assert!(json.get().starts_with(r#"{"name":"travel","version":"1.0","methods":["mcp/initialize""#));
/// ```
pub fn describe(
    server: &Implementation,
    capabilities: &ServerCapabilities,
    revision: Option<Revision>,
) -> Json {
    let mut reply = Object::default();
    reply.set("name", Json::string(&server.name));
    reply.set("version", Json::string(&server.version));
    reply.set("methods", Json::of(&METHODS));
    if let Some(revision) = revision {
        reply.set("protocolVersion", Json::string(revision.as_str()));
    }
    reply.set("capabilities", Json::of(capabilities));
    reply.set("serverInfo", Json::of(server));
    reply.to_json()
}

impl Stage {
    fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourcesTemplatesList,
            Self::Execute => Method::ToolsCall,
            Self::Read | Self::Over => Method::ResourcesRead,
        }
    }

    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Templates => "resourceTemplates",
            _ => "resources",
        }
    }
}

fn list(stage: Stage, cursor: Option<Json>) -> Step {
    let mut params = Object::default();
    if let Some(cursor) = cursor {
        params.set("cursor", cursor);
    }
    Step::Call { method: stage.method(), params }
}

/// Accepts a complete result only: the dialect has neither questions nor tasks.
fn complete(outcome: Outcome) -> Outcome {
    match decode_result(outcome?) {
        Ok(Decoded::Complete(raw)) => Ok(raw),
        Ok(Decoded::InputRequired(_)) => Err(unusable("the server asks something first")),
        Ok(Decoded::Task(_)) => Err(unusable("the server made it a task")),
        Ok(Decoded::Unknown(_)) | Err(_) => Err(unusable("it is no MCP result")),
    }
}

/// The structured value if there is one, else the tool's content.
fn tool_reply(raw: Json) -> Outcome {
    let result: CallToolResult = raw.to().map_err(|_| unusable("it is no tool result"))?;
    if result.is_error() {
        let said = result.content.iter().find_map(|block| block.as_text());
        let message = said.unwrap_or("The tool failed.").to_owned();
        return Err(ErrorObject::new(TOOL_FAILED, message).with_data(bare(raw)));
    }
    Ok(result.structured_content.unwrap_or_else(|| bare(raw)))
}

fn read_reply(raw: Json) -> Outcome {
    let mut result = Object::parse(raw.get()).map_err(|_| unusable("it is no resource"))?;
    let contents = result.take("contents").ok_or_else(|| unusable("it has no contents"))?;
    let mut reply = Object::default();
    reply.set("contents", contents);
    Ok(reply.to_json())
}

/// A result without the members that only MCP needs.
fn bare(raw: Json) -> Json {
    match Object::parse(raw.get()) {
        Ok(mut object) => {
            object.take("resultType");
            object.take("_meta");
            object.to_json()
        }
        Err(_) => raw,
    }
}

fn unusable(why: &str) -> ErrorObject {
    let message = format!("The server's answer cannot be passed on: {why}.");
    ErrorObject::internal("unusable_answer", message)
}

/// A parameter's name in the dialect, and its name in MCP.
type Name = (&'static str, &'static str);

const TOOL: Name = ("toolId", "name");
const INPUTS: Name = ("inputs", "arguments");
const RESOURCE: Name = ("resourceId", "uri");
const QUERY: Name = ("query", "query");

/// Parameters by name.
struct Arguments(Object);

impl Arguments {
    fn new(params: Params, names: &[Name]) -> Result<Self, ErrorObject> {
        let items = match params {
            Params::Absent => Vec::new(),
            Params::Object(object) => return Ok(Self(object)),
            Params::Array(items) => items,
        };
        if items.len() > names.len() {
            let message = format!("There are {} parameters too many.", items.len() - names.len());
            return Err(ErrorObject::invalid_params(message));
        }
        let mut object = Object::default();
        for ((name, _), item) in names.iter().zip(items) {
            object.set(*name, item);
        }
        Ok(Self(object))
    }

    fn take(&mut self, (name, alias): Name) -> Option<Json> {
        self.0.take(name).or_else(|| self.0.take(alias)).filter(|raw| !raw.is_null())
    }

    fn text(&mut self, name: Name) -> Result<String, ErrorObject> {
        let text = self.take(name).and_then(|raw| raw.to().ok());
        text.ok_or_else(|| {
            ErrorObject::invalid_params(format!("`{}` must be given, as a string.", name.0))
        })
    }

    fn object(&mut self, name: Name) -> Result<Option<Object>, ErrorObject> {
        let Some(raw) = self.take(name) else { return Ok(None) };
        let object = Object::parse(raw.get()).map_err(|_| {
            let message = format!("`{}` must be an object without repeated names.", name.0);
            ErrorObject::invalid_params(message)
        })?;
        Ok(Some(object))
    }
}
