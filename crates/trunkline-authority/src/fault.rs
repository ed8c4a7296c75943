//! Why a request is refused, as OAuth spells it.

use serde_json::json;

use crate::message::Response;

/// A refusal: an error code of OAuth and a sentence.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: u16,
    pub(crate) error: &'static str,
    pub(crate) description: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Fault {
    pub(crate) fn new(error: &'static str, description: impl Into<String>) -> Self {
        let status = if error == "temporarily_unavailable" { 503 } else { 400 };
        Self { status, error, description: description.into(), headers: Vec::new() }
    }

    /// The request makes no sense.
    pub(crate) fn request(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }

    /// What was to be exchanged for a token is not good, or no longer, or not for this client.
    pub(crate) fn grant(description: impl Into<String>) -> Self {
        Self::new("invalid_grant", description)
    }

    /// The client is not who it says.
    pub(crate) fn client(description: impl Into<String>) -> Self {
        Self { status: 401, ..Self::new("invalid_client", description) }
    }

    /// Too much is remembered already.
    pub(crate) fn full() -> Self {
        Self::new("temporarily_unavailable", "This server remembers too much already; try later.")
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn response(self) -> Response {
        let body = json!({ "error": self.error, "error_description": self.description });
        let mut response = Response::of(self.status, &body).unkept();
        response.headers.extend(self.headers);
        response
    }
}
