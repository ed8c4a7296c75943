//! A request → its principal, or a refusal with a challenge. One gate for every revision and path.

use http::header::{self, HeaderName, HeaderValue};
use http::{Extensions, Method, Response, StatusCode, request};
use trunkline_auth::Principal;
use trunkline_auth::resource::{Denied, HeadView};
use trunkline_proto::Attached;
use trunkline_proto::http::Refusal;
use trunkline_wire::jsonrpc::{Incoming, Message};

use super::body::HttpBody;
use super::endpoint::Endpoint;
use super::post::id_of;
use super::response::{empty, json};
use crate::handler::Handler;

impl<H: Handler> Endpoint<H> {
    /// Authenticates a request and records the principal for handlers. Replaces any principal that a
    /// layer in front recorded.
    pub(super) async fn enter(&self, head: &mut request::Parts, path: &str) -> Result<(), Refusal> {
        let Some(gate) = &self.settings.gate else { return Ok(()) };
        // The gate bounds its own lookups: an unauthenticated request that waits for one takes no place
        // of a call.
        head.extensions.remove::<Principal>();
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let (full, query) = (head.uri.path(), head.uri.query());
        let view = HeadView::new(head.method.as_str(), full, query, headers).served_at(path);
        let (principal, nonce) = match Box::pin(gate.admit(view)).await {
            Ok(admission) => (Ok(admission.principal), admission.nonce),
            Err(mut denied) => {
                let nonce = denied.nonce.take();
                (Err(denied), nonce)
            }
        };
        if let Some(nonce) = nonce.and_then(|it| HeaderValue::try_from(it).ok()) {
            head.extensions.insert(Nonce(nonce));
        }
        head.extensions.insert(principal.map_err(|denied| self.refusal(denied))?);
        // From here on the token can neither be logged nor forwarded.
        head.headers.remove(header::AUTHORIZATION);
        head.headers.remove(DPOP);
        Ok(())
    }

    /// Whether the caller has the scopes that this request needs. A batch needs all of them together,
    /// in one challenge.
    pub(super) fn check_scopes(
        &self,
        incoming: &Incoming,
        caller: &Attached,
    ) -> Result<(), Refusal> {
        let Some(gate) = &self.settings.gate else { return Ok(()) };
        let principal = caller.get::<Extensions>().and_then(|it| it.get::<Principal>());
        let principal = principal.expect("nobody gets past the gate without a name");
        let mut needed = Vec::new();
        let mut note = |message: &Message| {
            if let Message::Request { method, params, .. } = message {
                needed.extend(self.handler.scopes(method, params, caller));
            }
        };
        match incoming {
            Incoming::One(message) => note(message),
            Incoming::Batch(parts) => parts.iter().flatten().for_each(note),
            Incoming::Bad(_) => {}
        }
        if needed.is_empty() {
            return Ok(());
        }
        gate.needs(principal, &needed)
            .map_err(|denied| Refusal { id: id_of(incoming), ..self.refusal(denied) })
    }

    /// The Protected Resource Metadata document (RFC 9728), if requested. Pages of every origin may
    /// read it.
    pub(super) fn document(
        &self,
        head: &request::Parts,
    ) -> Option<Result<Response<HttpBody>, Refusal>> {
        let text = self.settings.gate.as_deref()?.document(head.uri.path())?;
        let mut response = match head.method {
            Method::GET | Method::HEAD => json(StatusCode::OK, text.as_bytes().to_vec()),
            Method::OPTIONS => {
                let mut response = empty(StatusCode::NO_CONTENT);
                let allowed = response.headers_mut();
                allowed.insert(header::ACCESS_CONTROL_ALLOW_METHODS, GET);
                // Clients send `MCP-Protocol-Version` here too.
                allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ANYTHING);
                response
            }
            _ => return Some(Err(Refusal::method("GET"))),
        };
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANYTHING);
        Some(Ok(response))
    }

    fn refusal(&self, denied: Denied) -> Refusal {
        let why = denied.cause.as_deref().unwrap_or(&denied.description);
        self.handler.denied(denied.status, why);
        let status = StatusCode::from_u16(denied.status).unwrap_or(StatusCode::UNAUTHORIZED);
        Refusal {
            challenge: denied.challenge.map(String::into_boxed_str),
            ..Refusal::new(status, denied.description)
        }
    }
}

/// Sends the next DPoP nonce (RFC 9449 §8.2), if the gate has one.
pub(super) fn give_nonce(head: &request::Parts, response: &mut Response<HttpBody>) {
    if let Some(Nonce(nonce)) = head.extensions.get() {
        response.headers_mut().insert(DPOP_NONCE, nonce.clone());
    }
}

#[derive(Clone)]
struct Nonce(HeaderValue);

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
const GET: HeaderValue = HeaderValue::from_static("GET");
const ANYTHING: HeaderValue = HeaderValue::from_static("*");
