//! A POST → the conversation it belongs to, or a refusal with its status. One decision per message, top
//! to bottom; the only state is the last envelope. The [`Route`] carries the decision: no later step
//! reads the envelope or chooses the era again.

use http::{HeaderMap, StatusCode};
use trunkline_wire::code;
use trunkline_wire::dialect::is_dialect;
use trunkline_wire::header::{self, decode_value};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{
    ErrorObject, Id, Incoming, Malformed, MalformedKind, Message, MethodName, Params,
};
use trunkline_wire::method::Method;
use trunkline_wire::model::meta;
use trunkline_wire::revision::{Era, Revision};

use super::Refusal;
use super::fields::{Field, Fields, McpFields};
use crate::server::{Config, EnvelopeCache, ReadEnvelope, StatelessRequest, unsupported_revision};

/// Where a POST goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Route<'a> {
    /// Stateless: a request of 2026-07-28, with its envelope.
    Stateless(StatelessRequest),
    /// Stateless: a request of the dialect.
    Dialect,
    /// It wants to open a session.
    Open,
    /// It belongs to the session with this id.
    Session(&'a str),
    /// It belongs to a session on a server that keeps none; this is its revision.
    Nowhere(Revision),
    /// It is a notification that the stateless era ignores.
    Drop,
}

/// What [`classify`] needs to know about the server.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The configuration of the server.
    pub config: &'a Config,
    /// Whether it keeps sessions.
    pub sessions: bool,
}

/// Decides where a POST goes.
pub fn classify<'a>(
    fields: &McpFields<'a>,
    incoming: &Incoming,
    rules: Rules<'_>,
    envelopes: &mut EnvelopeCache,
) -> Result<Route<'a>, Refusal> {
    let asking = Asking::new(fields, rules)?;
    match incoming {
        Incoming::Bad(malformed) => Err(asking.malformed(malformed)),
        Incoming::Batch(items) => {
            let is_claim = |it: &Result<Message, Malformed>| match it {
                Ok(Message::Request { params, .. } | Message::Notification { params, .. }) => {
                    asking.is_claim(params, envelopes)
                }
                _ => false,
            };
            if items.is_empty() || asking.is_modern() || items.iter().any(is_claim) {
                return Err(asking.malformed(&Malformed::new(MalformedKind::Batch)));
            }
            asking.session(None)
        }
        Incoming::One(Message::Response { .. }) if asking.is_modern() => {
            let message = "Nobody asked: this revision has no responses of clients.";
            Err(Refusal::bad_request(ErrorObject::invalid_request(message), None))
        }
        Incoming::One(Message::Response { .. }) => asking.session(None),
        Incoming::One(Message::Notification { method, params }) => {
            if asking.is_modern() || asking.is_claim(params, envelopes) {
                asking.notification(method, params)
            } else {
                asking.session(None)
            }
        }
        Incoming::One(Message::Request { id, method, params }) => {
            asking.request(id, method, params, envelopes)
        }
    }
}

struct Asking<'a, 'r> {
    fields: &'r McpFields<'a>,
    rules: Rules<'r>,
    version: Option<&'a str>,
    /// The revision of that name, if it is one.
    named: Option<Revision>,
}

impl<'a, 'r> Asking<'a, 'r> {
    fn new(fields: &'r McpFields<'a>, rules: Rules<'r>) -> Result<Self, Refusal> {
        let (version, named) = version(fields)?;
        Ok(Self { fields, rules, version, named })
    }

    fn request(
        &self,
        id: &Id,
        method: &MethodName,
        params: &Params,
        envelopes: &mut EnvelopeCache,
    ) -> Result<Route<'a>, Refusal> {
        let dialect = self.rules.config.dialect && is_dialect(method);
        if *id == Id::Null && !dialect {
            return Err(self.malformed(&Malformed::new(MalformedKind::NullId)));
        }
        let bad = |error| Err(Refusal::bad_request(error, Some(id.clone())));
        let known = match params.get("_meta") {
            Some(meta) if self.speaks(Era::Stateless) => envelopes.known(meta),
            _ => None,
        };
        if known.is_some() || self.is_claim(params, envelopes) {
            if dialect {
                // The dialect has no envelope, and the revision has no such method.
                let error = ErrorObject::method_not_found(method);
                let refusal = Refusal::bad_request(error, Some(id.clone()));
                return Err(Refusal { status: StatusCode::NOT_FOUND, ..refusal });
            }
            let read = known.map_or_else(|| envelopes.read(params.get("_meta")), Ok);
            let claim = read.and_then(|it| self.claim(method, params, it));
            return claim.map(Route::Stateless).or_else(bad);
        }
        if *method == Method::Initialize {
            return match (self.version, self.named) {
                (None, _) => Ok(Route::Open),
                (_, Some(revision)) if revision.era() == Era::Stateful => Ok(Route::Open),
                (_, Some(_)) => bad(mismatch(
                    "The MCP-Protocol-Version header names a revision without `initialize`.",
                )),
                (_, None) => bad(self.unsupported()),
            };
        }
        if self.is_modern() && !self.speaks(Era::Stateless) {
            return bad(self.unsupported());
        }
        // A stateless method without its envelope gets an error that names what is missing, and so does
        // every request whose header names a stateless revision: it never falls back to a session.
        if self.is_modern() || (*method == Method::ServerDiscover && self.speaks(Era::Stateless)) {
            return match envelopes.read(params.get("_meta")) {
                Err(error) => bad(error),
                // A valid envelope would have been a claim.
                Ok(_) => bad(ErrorObject::invalid_params("`_meta` is not in order.")),
            };
        }
        if dialect {
            return Ok(Route::Dialect);
        }
        self.session(Some(id))
    }

    /// A stateless request: its headers must match its body (2026-07-28 §Transports).
    fn claim(
        &self,
        method: &MethodName,
        params: &Params,
        (envelope, token): ReadEnvelope,
    ) -> Result<StatelessRequest, ErrorObject> {
        match self.version {
            None => return Err(mismatch("The MCP-Protocol-Version header is missing.")),
            Some(version) if version != envelope.revision => {
                return Err(mismatch("The MCP-Protocol-Version header and `_meta` disagree."));
            }
            Some(_) => {}
        }
        let request = StatelessRequest::new(envelope, token, self.rules.config)?;
        self.same_method(method, true)?;
        self.same_name(method, params)?;
        Ok(request)
    }

    /// `Mcp-Name` must match the name in the body.
    fn same_name(&self, method: &MethodName, params: &Params) -> Result<(), ErrorObject> {
        let Some(member) = method.known().and_then(header::name_member) else { return Ok(()) };
        let name = params.get(member).and_then(|it| it.as_text());
        let header = self.header(self.fields.name, "Mcp-Name")?;
        let header = header.map(decode_value).transpose();
        let header = header.map_err(|_| mismatch("The Mcp-Name header cannot be decoded."))?;
        match (header, name) {
            (Some(header), Some(name)) if header == name => Ok(()),
            // The tasks extension requires it of clients, but FastMCP's omits it.
            (None, Some(_)) if member == "taskId" => Ok(()),
            (None, Some(_)) => Err(mismatch("The Mcp-Name header is missing.")),
            // If both lack the name, a later check reports it.
            (None, None) => Ok(()),
            _ => Err(mismatch("The Mcp-Name header and the body disagree.")),
        }
    }

    /// A stateless notification: a server acts on none over HTTP. Its headers are optional, but must
    /// match the body.
    fn notification(&self, method: &str, params: &Params) -> Result<Route<'a>, Refusal> {
        let version = params.get("_meta").and_then(version_in);
        let checked = match (self.version, version) {
            (Some(header), Some(body)) if *header != body => {
                Err(mismatch("The MCP-Protocol-Version header and `_meta` disagree."))
            }
            _ => self.same_method(method, false),
        };
        checked.map(|()| Route::Drop).map_err(|error| Refusal::bad_request(error, None))
    }

    /// `Mcp-Method`, which is never encoded, must match the method in the body.
    fn same_method(&self, method: &str, required: bool) -> Result<(), ErrorObject> {
        match self.header(self.fields.method, "Mcp-Method")? {
            Some(header) if header.trim_ascii() == method.as_bytes() => Ok(()),
            Some(_) => Err(mismatch("The Mcp-Method header and the body disagree.")),
            None if required => Err(mismatch("The Mcp-Method header is missing.")),
            None => Ok(()),
        }
    }

    fn header(&self, field: Field<'a>, shown: &str) -> Result<Option<&'a [u8]>, ErrorObject> {
        field.only_bytes().map_err(|_| mismatch(format!("There is more than one {shown} header.")))
    }

    /// Everything else belongs to a session of the stateful era.
    fn session(&self, id: Option<&Id>) -> Result<Route<'a>, Refusal> {
        let bad = |error| Err(Refusal::bad_request(error, id.cloned()));
        let spoken = self.rules.config.revisions.of_era(Era::Stateful);
        let revision = match self.version {
            // Clients before 2025-06-18 send no such header.
            None => {
                Some(Revision::V2025_03_26).filter(|it| spoken.contains(*it)).or(spoken.newest())
            }
            Some(_) => self.named.filter(|it| spoken.contains(*it)),
        };
        let Some(revision) = revision else { return bad(self.unsupported()) };
        if !self.rules.sessions {
            return Ok(Route::Nowhere(revision));
        }
        match session_id(self.fields) {
            Ok(Some(session)) => Ok(Route::Session(session)),
            Ok(None) => bad(ErrorObject::invalid_request(
                "The Mcp-Session-Id header is missing; open a session with `initialize`.",
            )),
            Err(refusal) => Err(Refusal { id: id.cloned(), ..refusal }),
        }
    }

    fn malformed(&self, malformed: &Malformed) -> Refusal {
        let null = self.named.is_some_and(|it| it.profile().unreadable_id_is_null);
        let id = malformed.id.clone().filter(|_| !malformed.is_response);
        Refusal::bad_request(malformed.to_error(), id.or(null.then_some(Id::Null)))
    }

    fn unsupported(&self) -> ErrorObject {
        unsupported_revision(self.rules.config, self.version.map(str::to_owned))
    }

    fn is_claim(&self, params: &Params, envelopes: &EnvelopeCache) -> bool {
        self.speaks(Era::Stateless) && params.get("_meta").is_some_and(|it| envelopes.is_claim(it))
    }

    /// Whether the header names a stateless revision.
    fn is_modern(&self) -> bool {
        self.named.is_some_and(|it| it.era() == Era::Stateless)
    }

    fn speaks(&self, era: Era) -> bool {
        !self.rules.config.revisions.of_era(era).is_empty()
    }
}

/// The session id of a request, if any.
fn session_id<'a>(fields: &McpFields<'a>) -> Result<Option<&'a str>, Refusal> {
    let bad = |message| Refusal::new(StatusCode::BAD_REQUEST, message);
    let value = fields
        .session
        .only_bytes()
        .map_err(|_| bad("There is more than one Mcp-Session-Id header."))?;
    value.map(|it| std::str::from_utf8(it).map_err(|_| bad("This is no session id."))).transpose()
}

/// The session id of a GET or DELETE. Without sessions, and in the stateless era, only POST is allowed.
pub fn session_request<'a>(headers: &'a HeaderMap, rules: Rules<'_>) -> Result<&'a str, Refusal> {
    let fields = &Fields::of(headers).mcp;
    let asking = Asking::new(fields, rules)?;
    if asking.is_modern() || !rules.sessions || !asking.speaks(Era::Stateful) {
        return Err(Refusal::method("POST"));
    }
    match asking.session(None)? {
        Route::Session(id) => Ok(id),
        _ => Err(Refusal::method("POST")),
    }
}

/// The revision that a request names: as text, and as one of those that there are.
fn version<'a>(fields: &McpFields<'a>) -> Result<(Option<&'a str>, Option<Revision>), Refusal> {
    let mismatch = |message| Refusal::bad_request(mismatch(message), None);
    let value = fields
        .version
        .only_bytes()
        .map_err(|_| mismatch("There is more than one MCP-Protocol-Version header."))?;
    let Some(value) = value else { return Ok((None, None)) };
    // The newest first: most clients speak it, or the one before.
    if let Some(known) = Revision::ALL.iter().rev().find(|it| it.as_str().as_bytes() == value) {
        return Ok((Some(known.as_str()), Some(*known)));
    }
    let text = std::str::from_utf8(value).map(str::trim);
    let text = text.map_err(|_| mismatch("The MCP-Protocol-Version header cannot be read."))?;
    Ok((Some(text), Revision::parse(text)))
}

fn version_in(meta: &Json) -> Option<String> {
    let members = trunkline_wire::jsonrpc::Object::parse(meta.get()).ok()?;
    members.get(meta::PROTOCOL_VERSION)?.to().ok()
}

/// The error for a header that does not match the body.
pub fn mismatch(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(code::HEADER_MISMATCH, message)
}
