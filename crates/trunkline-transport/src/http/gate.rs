//! A request → who sends it, or a refusal that says what would let it in. One gate for every
//! revision and entrance.

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
    /// Finds out who sends a request, and notes it where handlers find it. What was noted there by
    /// whoever is in front does not count.
    pub(super) async fn enter(&self, head: &mut request::Parts, path: &str) -> Result<(), Refusal> {
        let Some(gate) = &self.settings.gate else { return Ok(()) };
        // The gate has a bound of its own on what it asks about: a stranger who waits for that
        // takes no place of a call.
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
        // It has done its work: from here on nobody can log it or send it on.
        head.headers.remove(header::AUTHORIZATION);
        head.headers.remove(DPOP);
        Ok(())
    }

    /// Whether who was let in has the scopes that this request takes. In an array of requests it is
    /// all of them together, in one challenge.
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

    /// The public document about who gives out tokens, if it is asked for. Pages of every origin
    /// may read it.
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
                // Clients say which revision they speak, also here.
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

/// Tells a client the nonce of its next proof, if the gate has one for it.
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
