//! A request → an authenticated request, which another endpoint may answer.
//!
//! Where one door leads to many endpoints, nothing may be built or kept for a request before its Host,
//! Origin and sender are checked.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Mutex;

use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, request};
use http_body::Body;
use trunkline_proto::http::fields::Fields;
use trunkline_proto::http::{Refusal, door};
use trunkline_proto::server::EnvelopeCache;

use super::body::HttpBody;
use super::endpoint::{Endpoint, Entrance};
use super::h1::fields::MAX_FIELDS;
use super::lent_head::LentHead;
use super::response::refuse;
use crate::handler::Handler;

/// A request whose Host, Origin and sender were checked. Only [`Endpoint::let_in`] makes one.
pub struct LetIn<B> {
    pub(super) request: Request<B>,
    pub(super) by: By,
}

/// Who has let a request in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Nobody yet.
    Nobody,
    /// An endpoint of this process.
    Endpoint,
    /// Another replica, which forwarded it. It is never forwarded again.
    Replica,
}

impl<B> LetIn<B> {
    /// The request, with what the gate recorded about its sender.
    pub fn get(&self) -> &Request<B> {
        &self.request
    }

    /// The request itself, for what answers without an endpoint.
    pub fn into_inner(self) -> Request<B> {
        self.request
    }

    /// Changes its URI.
    pub fn redirect(&mut self, to: Uri) {
        *self.request.uri_mut() = to;
    }
}

impl<H: Handler> Endpoint<H> {
    /// Checks a request meant for an endpoint at `path` with the same door and gate, or answers it if
    /// it goes no further.
    pub async fn let_in<B: Body>(
        &self,
        request: Request<B>,
        path: &str,
    ) -> Result<LetIn<B>, Response<HttpBody>> {
        let (head, body) = request.into_parts();
        let mut head = LentHead::from(head);
        let place = match head.uri.path().strip_prefix(path) {
            Some("/sse") => Entrance::Events,
            Some("/messages") => Entrance::Messages,
            _ => Entrance::Streamable,
        };
        let checked = {
            let fields = Fields::of(&head.headers);
            check_fields(&fields, &head.headers).map_err(refuse)?;
            self.check(&head, &fields, place)
        };
        let checked = match checked {
            Continue(()) => self.enter_with(&mut head, body, path).await,
            Break(outcome) => Break(outcome),
        };
        match checked {
            Continue(body) => {
                Ok(LetIn { request: Request::from_parts(head.take(), body), by: By::Endpoint })
            }
            Break(outcome) => Err(self.finish(&head, outcome)),
        }
    }

    /// Answers a request that an endpoint with the same door and gate has let in.
    pub async fn answer_let_in<B: Body>(
        &self,
        LetIn { request, by }: LetIn<B>,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> Response<HttpBody> {
        let (head, body) = request.into_parts();
        self.answer_any(&mut head.into(), body, envelopes, by).await
    }

    #[inline]
    pub(super) async fn answer_any<B: Body>(
        &self,
        head: &mut LentHead,
        body: B,
        envelopes: &Mutex<EnvelopeCache>,
        let_in: By,
    ) -> Response<HttpBody> {
        let place = self.place(head.uri.path());
        let is_checked = let_in != By::Nobody || !self.goes_straight_to_post(head, place);
        // In a block, so that a connection that waits does not hold them.
        if is_checked {
            let fields = Fields::of(&head.headers);
            if let Err(refusal) = check_fields(&fields, &head.headers) {
                return refuse(refusal);
            }
            if let Some(place) = place
                && let_in == By::Nobody
                && let Break(outcome) = self.check(head, &fields, place)
            {
                return self.finish(head, outcome);
            }
        }
        let Some(place) = place else { return self.finish(head, self.beside(head)) };
        let body = match let_in == By::Nobody && self.has_gate() {
            true => match self.enter_with(head, body, &self.settings.path).await {
                Continue(body) => body,
                Break(outcome) => return self.finish(head, outcome),
            },
            false => body,
        };
        let outcome = match self.begin(head, place, let_in) {
            Ok(begun) => self.route(head, place, body, envelopes, begun, is_checked).await,
            // Boxed: few servers have replicas, and every connection would carry its size.
            Err(astray) => {
                Box::pin(self.route_elsewhere(astray, head, place, body, envelopes)).await
            }
        };
        self.finish(head, outcome)
    }

    /// Whether neither a gate nor another replica may answer first: then [`Self::post`] checks the head, which it
    /// looks at anyway.
    fn goes_straight_to_post(&self, head: &request::Parts, place: Option<Entrance>) -> bool {
        let is_post = matches!(place, Some(Entrance::Streamable)) && head.method == Method::POST;
        is_post && !self.has_gate() && self.settings.replicas.is_none()
    }

    fn has_gate(&self) -> bool {
        #[cfg(feature = "auth")]
        return self.settings.gate.is_some();
        #[cfg(not(feature = "auth"))]
        false
    }

    /// Checks Host, Origin and preflight, in this order.
    fn check(&self, head: &request::Parts, fields: &Fields<'_>, place: Entrance) -> Checked<()> {
        if let Err(refusal) = self.settings.door.check(&head.uri, fields) {
            return Break(Err(refusal));
        }
        match head.method {
            Method::OPTIONS => Break(self.preflight(&head.headers, place.methods())),
            _ => Continue(()),
        }
    }

    /// Checks the sender, after everything else in the head.
    pub(super) async fn enter_with<B: Body>(
        &self,
        head: &mut LentHead,
        body: B,
        path: &str,
    ) -> Checked<B> {
        #[cfg(feature = "auth")]
        return match super::gate::let_in(self.enter(head, path).await, &head.headers, body).await {
            Ok(body) => Continue(body),
            Err(refusal) => Break(Err(refusal)),
        };
        #[cfg(not(feature = "auth"))]
        {
            let _ = (head, path);
            Continue(body)
        }
    }

    /// Adds the headers for CORS and the nonce to the response.
    #[inline]
    pub(super) fn finish(
        &self,
        head: &request::Parts,
        outcome: Result<Response<HttpBody>, Refusal>,
    ) -> Response<HttpBody> {
        let mut response = outcome.unwrap_or_else(refuse);
        #[cfg(feature = "auth")]
        super::gate::give_nonce(head, &mut response);
        self.allow_reading(&head.headers, &mut response);
        response
    }
}

/// Whether a request goes on, with what is left of it, or the response that ends it here.
type Checked<B> = ControlFlow<Result<Response<HttpBody>, Refusal>, B>;

/// Refuses a malformed head, whatever the path.
pub(super) fn check_fields(fields: &Fields<'_>, headers: &HeaderMap) -> Result<(), Refusal> {
    // HTTP/1 enforces this bound already.
    if headers.len() > MAX_FIELDS {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Refusal::new(status, "There are too many header fields."));
    }
    door::check_coding(fields)
}
