//! A request → its principal, or a refusal with a challenge. One gate for every revision and path.

use std::future::poll_fn;
use std::pin::pin;

use bytes::Buf as _;
use http::header::{self, HeaderName, HeaderValue};
use http::{Extensions, HeaderMap, Method, Response, StatusCode, request};
use http_body::Body;
use tokio::time::timeout;
use trunkline_auth::Principal;
use trunkline_auth::resource::{Denied, HeadView};
use trunkline_proto::Attached;
use trunkline_proto::http::Refusal;
use trunkline_wire::jsonrpc::{Incoming, Message};

use super::body::{HttpBody, MAX_UNREAD, UNREAD_TIME};
use super::endpoint::Endpoint;
use super::lent_head::LentHead;
use super::post::id_of;
use super::response::{empty, json};
use crate::handler::Handler;

impl<H: Handler> Endpoint<H> {
    /// Authenticates a request and records the principal for handlers. Replaces any principal that a
    /// layer in front recorded.
    pub(super) async fn enter(&self, head: &mut LentHead, path: &str) -> Result<(), Refusal> {
        let Some(gate) = &self.settings.gate else { return Ok(()) };
        // The gate bounds its own lookups: an unauthenticated request that waits for one takes no place
        // of a call.
        head.extensions_mut().remove::<Principal>();
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
            head.extensions_mut().insert(Nonce(nonce));
        }
        let principal = principal.map_err(|denied| self.refusal(denied))?;
        head.extensions_mut().insert(principal);
        // From here on the token can neither be logged nor forwarded.
        let headers = head.headers_mut();
        headers.remove(header::AUTHORIZATION);
        headers.remove(DPOP);
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

/// The body of a request that is let in. A refusal first lets a short body arrive: where another server
/// owns the connection, unread bytes may cause a reset that destroys the answer. A refusal never asks
/// for a body with `100 Continue`.
pub(super) async fn let_in<B: Body>(
    entered: Result<(), Refusal>,
    headers: &HeaderMap,
    body: B,
) -> Result<B, Refusal> {
    match entered {
        Ok(()) => Ok(body),
        Err(refusal) if is_awaited(headers) => Err(refusal),
        Err(refusal) => {
            Box::pin(discard_short_body(body)).await;
            Err(refusal)
        }
    }
}

/// Waits for a short body to arrive and discards it, so that the connection can be reused. Returns
/// whether all of it arrived.
async fn discard_short_body<B: Body>(body: B) -> bool {
    let mut left = MAX_UNREAD;
    let is_long = body.size_hint().lower() > left as u64;
    let mut body = pin!(body);
    let arriving = async {
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let Ok(frame) = frame else { return false };
            let size = frame.into_data().map_or(0, |it| it.remaining());
            let Some(rest) = left.checked_sub(size) else { return false };
            left = rest;
        }
        true
    };
    !is_long && timeout(UNREAD_TIME, arriving).await.unwrap_or(false)
}

/// Whether the client sends the body only after `100 Continue` (RFC 9110 §10.1.1).
fn is_awaited(headers: &HeaderMap) -> bool {
    headers
        .get(header::EXPECT)
        .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

#[derive(Clone)]
struct Nonce(HeaderValue);

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
const GET: HeaderValue = HeaderValue::from_static("GET");
const ANYTHING: HeaderValue = HeaderValue::from_static("*");
