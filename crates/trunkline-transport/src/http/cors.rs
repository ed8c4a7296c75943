//! CORS: which origins may send requests and read the responses.

use http::header::{self, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use trunkline_proto::http::Refusal;

use super::body::HttpBody;
use super::endpoint::Endpoint;
use super::response::empty;
use crate::handler::Handler;

impl<H: Handler> Endpoint<H> {
    /// Answers a preflight request, if the origin is on the allow list.
    pub(super) fn preflight(
        &self,
        headers: &HeaderMap,
        methods: &'static str,
    ) -> Result<Response<HttpBody>, Refusal> {
        let named = headers.get(header::ORIGIN).and_then(|it| it.to_str().ok());
        if !named.is_some_and(|it| self.settings.door.knows_origin(it)) {
            return Err(Refusal::method(methods));
        }
        let mut response = empty(StatusCode::NO_CONTENT);
        let allowed = response.headers_mut();
        allowed.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
        // The origin is trusted by name, so it may send any header it asks for.
        let asked = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let asked = asked.unwrap_or(HeaderValue::from_static("content-type, accept"));
        allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        allowed.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        Ok(response)
    }

    /// Lets pages of an origin on the allow list read the response.
    pub(super) fn allow_reading(&self, headers: &HeaderMap, response: &mut Response<HttpBody>) {
        let Some(origin) = headers.get(header::ORIGIN) else { return };
        // A client that passed the door but lacks a scope may read which one.
        let is_turned_away = response.status() == StatusCode::FORBIDDEN
            && !response.headers().contains_key(header::WWW_AUTHENTICATE);
        if is_turned_away || !origin.to_str().is_ok_and(|it| self.settings.door.knows_origin(it)) {
            return;
        }
        let allowed = response.headers_mut();
        allowed.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        allowed.insert(header::VARY, HeaderValue::from_static("Origin"));
        let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce");
        allowed.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}
