//! Builds the responses of the admin API.

use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;
use trunkline_transport::http::HttpBody;

use super::Complaint;
use crate::policy::hidden;

/// `/healthz` and `/readyz`, open to everyone: the status and text of the answer, or `None` for another path.
pub fn health(path: &str, is_ready: bool) -> Option<(StatusCode, &'static str)> {
    match (path, is_ready) {
        // A process that answers is alive.
        ("/healthz", _) | ("/readyz", true) => Some((StatusCode::OK, "ok\n")),
        ("/readyz", false) => Some((StatusCode::SERVICE_UNAVAILABLE, "not ready\n")),
        _ => None,
    }
}

pub(super) fn json(status: StatusCode, value: &Value) -> Response<HttpBody> {
    json_text(status, value.to_string())
}

/// A text that is JSON.
pub(super) fn json_text(status: StatusCode, text: String) -> Response<HttpBody> {
    let mut text = hidden::escape_json(text).into_bytes();
    text.push(b'\n');
    with(status, "application/json", text.into())
}

pub(super) fn events(body: HttpBody) -> Response<HttpBody> {
    with(StatusCode::OK, "text/event-stream", body)
}

pub(super) fn text(status: StatusCode, kind: &'static str, text: String) -> Response<HttpBody> {
    with(status, kind, text.into_bytes().into())
}

pub(super) fn lines(body: HttpBody) -> Response<HttpBody> {
    with(StatusCode::OK, "application/x-ndjson", body)
}

pub(super) fn refuse(complaint: &Complaint) -> Response<HttpBody> {
    let mut response = json(complaint.status, &complaint.to_json());
    let headers = response.headers_mut();
    match complaint.status {
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The rest of the body is not read, so the connection cannot be reused.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}

fn with(status: StatusCode, kind: &'static str, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}
