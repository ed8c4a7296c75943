//! The parameters of `notifications/cancelled`.

use crate::jsonrpc::Id;

model! {
    /// The request to cancel.
    #[derive(Default)]
    pub struct CancelledParams {
        /// The request; 2025-11-25 allows leaving it out, and then nothing is cancelled.
        pub request_id?: Id,
        /// Why, for a log.
        pub reason?: String,
    }
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
