//! The parameters of `notifications/cancelled`.

use serde::{Deserialize, Serialize};

use crate::jsonrpc::Id;

/// The request to cancel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The request; 2025-11-25 allows leaving it out, and then nothing is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Id>,
    /// Why, for a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl CancelledParams {
    /// Cancels one request.
    pub fn new(request_id: Id) -> Self {
        Self { request_id: Some(request_id), reason: None }
    }
}

setters! { CancelledParams = CancelledParams::new(Id::Number(7));
    /// Sets the reason.
    reason(String) = "The user left." => r#"{"requestId":7,"reason":"The user left."}"#;
}
