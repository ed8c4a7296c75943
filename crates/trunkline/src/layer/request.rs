//! What layers see of a call and of its answer.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use trunkline_auth::Principal;
use trunkline_proto::{Attached, Call};
use trunkline_transport::voice::Voice;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::model::{ClientCapabilities, Implementation};
use trunkline_wire::revision::Revision;

use super::{Around, Inside};
use crate::extract::{Caller, extension, principal};

/// A call on its way through the layers of a server.
///
/// A clone is the same call made once more: what its handler did the first time is not undone.
///
/// ```
/// use trunkline::layer::ServerRequest;
///
/// fn line(request: &ServerRequest) -> String {
///     let who = request.principal().map_or("somebody", |it| &*it.subject);
///     format!("{} {} for {who}", request.method(), request.name().unwrap_or_default())
/// }
/// ```
#[derive(Clone)]
pub struct ServerRequest {
    pub(super) call: Call,
    pub(super) voice: Voice,
    pub(super) added: Added,
    /// The layers still to come, from the inside out.
    pub(super) route: Vec<Arc<dyn Around>>,
    pub(super) inside: Inside,
}

impl ServerRequest {
    /// The method, such as `tools/call`.
    pub fn method(&self) -> &'static str {
        self.call.method.name
    }

    /// The name of the tool or prompt, or the URI of the resource.
    pub fn name(&self) -> Option<String> {
        let member = match self.method() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return None,
        };
        self.call.params.get(member)?.to().ok()
    }

    /// The parameters, without `_meta`. They may hold secrets.
    pub fn params(&self) -> Json {
        self.call.params.to_json()
    }

    /// One parameter, such as `arguments`.
    pub fn param(&self, name: &str) -> Option<&Json> {
        self.call.params.get(name)
    }

    /// Sets a parameter. In every round of a call alike: the answers to its questions are bound to
    /// its name and arguments. Around one tool, its name has no effect any more.
    pub fn set_param(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        self.call.params.set(name.into(), value.into());
    }

    /// The `_meta` of the request, trace context included.
    pub fn meta(&self) -> Option<&Json> {
        self.call.meta.as_ref()
    }

    /// The revision the caller speaks.
    pub fn revision(&self) -> Revision {
        self.call.revision
    }

    /// How the client names itself. Self-reported: never decide on it.
    pub fn client(&self) -> Option<&Implementation> {
        self.call.peer.info.as_ref()
    }

    /// What the client can be asked.
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.call.peer.client
    }

    /// Who was let in, by the transport or by a layer further out.
    pub fn principal(&self) -> Option<&Principal> {
        self.added.get().or_else(|| principal(&self.call.attached))
    }

    /// The caller, as [`visible`](crate::server::ToolEntry::visible) sees it, but for what layers
    /// have added.
    pub fn caller(&self) -> Caller<'_> {
        Caller(&self.call)
    }

    /// What a layer further out added, or what is in the extensions of the HTTP request.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.added.get().or_else(|| extension(&self.call.attached))
    }

    /// Adds something that handlers can take as an [`Extension`](crate::Extension) of its type. A
    /// [`Principal`] is from then on whoever calls.
    pub fn insert<T: Send + Sync + 'static>(&mut self, it: T) {
        self.added.put(it);
    }
}

impl fmt::Debug for ServerRequest {
    /// Without its parameters, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequest")
            .field("method", &self.method())
            .field("name", &self.name())
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// The answer to a call: a result as the caller's revision writes it, or a JSON-RPC error.
///
/// ```
/// use trunkline::{ErrorObject, RawJson, layer::ServerResponse};
///
/// let result: ServerResponse = Ok(RawJson::parse(r#"{"content":[],"isError":true}"#)?).into();
/// assert!(result.is_error());
/// let error: ServerResponse = Err(ErrorObject::new(-32602, "There is no such tool.")).into();
/// assert!(error.is_error() && error.result().is_none());
/// # Ok::<(), trunkline::serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ServerResponse(Outcome);

impl ServerResponse {
    /// The result, if there is one. A tool that failed has one too.
    pub fn result(&self) -> Option<&Json> {
        self.0.as_ref().ok()
    }

    /// The JSON-RPC error, if that is the answer.
    pub fn error(&self) -> Option<&ErrorObject> {
        self.0.as_ref().err()
    }

    /// Whether it is an error, or the result of a tool that failed.
    pub fn is_error(&self) -> bool {
        match &self.0 {
            Ok(result) => self.has(result, "isError", "true"),
            Err(_) => true,
        }
    }

    /// Whether the caller is asked something first, and makes the call again with its answers.
    pub fn is_question(&self) -> bool {
        let of = |result| self.has(result, "resultType", "\"input_required\"");
        self.result().is_some_and(of)
    }

    /// The answer itself.
    pub fn into_outcome(self) -> Result<Json, ErrorObject> {
        self.0
    }

    fn has(&self, result: &Json, member: &str, value: &str) -> bool {
        let members: Result<HashMap<String, Json>, _> = result.to();
        members.is_ok_and(|it| it.get(member).is_some_and(|it| it.get() == value))
    }
}

impl From<Result<Json, ErrorObject>> for ServerResponse {
    fn from(outcome: Result<Json, ErrorObject>) -> Self {
        Self(outcome)
    }
}

/// What layers added to a call, by type, and what was attached to it before.
#[derive(Clone, Default)]
pub(crate) struct Added {
    things: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    before: Attached,
}

impl Added {
    /// What was added, by this layer or one further out.
    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.things.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// What was attached when the layers began.
    pub(crate) fn before(&self) -> &Attached {
        &self.before
    }

    /// What handlers find attached.
    pub(super) fn attach(self, before: Attached) -> Attached {
        match self.things.is_empty() {
            true => before,
            false => Attached::new(Self { before, ..self }),
        }
    }

    fn put<T: Send + Sync + 'static>(&mut self, it: T) {
        self.things.insert(TypeId::of::<T>(), Arc::new(it));
    }
}
