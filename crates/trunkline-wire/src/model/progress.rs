//! The progress of a request.

use serde::{Deserialize, Serialize};

use super::spelling::number;
use crate::json::Json;
use crate::jsonrpc::{Id, Object};

model! {
    /// One step of progress.
    pub struct Progress {
        /// The value, which must increase strictly.
        #[serde(with = "number")]
        pub progress: f64,
        /// The total, if known.
        #[serde(with = "number::option")]
        pub total?: f64,
        /// A message.
        pub message?: String,
    }
}

/// The parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token of the request, with its exact type.
    pub token: Id,
    /// The step.
    pub progress: Progress,
}

impl Progress {
    /// A step without a total.
    pub fn new(progress: impl Into<f64>) -> Self {
        Self { progress: progress.into(), total: None, message: None }
    }

    /// The parameters of a notification for the request with this token.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::Progress};
    /// let params = Progress::new(1.0).total(4.0).to_params(Json::string("a"));
    /// assert_eq!(params.to_json().get(), r#"{"progressToken":"a","progress":1,"total":4}"#);
    /// ```
    pub fn to_params(&self, token: Json) -> Object {
        let mut params = Object::with_room(4);
        params.set("progressToken", token);
        params.set("progress", number::to_json(self.progress));
        if let Some(total) = self.total {
            params.set("total", number::to_json(total));
        }
        if let Some(message) = &self.message {
            params.set("message", Json::string(message));
        }
        params
    }
}

setters! { Progress = Progress::new(1.0);
    /// Sets the total.
    total(f64) = 10.0 => r#"{"progress":1,"total":10}"#;
    /// Sets the message.
    message(String) = "Packing" => r#"{"progress":1,"message":"Packing"}"#;
}

impl ProgressParams {
    /// A step of the request with `token`.
    pub fn new(token: Id, progress: Progress) -> Self {
        Self { token, progress }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    progress_token: Id,
    #[serde(with = "number")]
    progress: f64,
    #[serde(default, with = "number::option", skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl From<Flat> for ProgressParams {
    fn from(flat: Flat) -> Self {
        let Flat { progress_token, progress, total, message } = flat;
        Self { token: progress_token, progress: Progress { progress, total, message } }
    }
}

impl From<ProgressParams> for Flat {
    fn from(params: ProgressParams) -> Self {
        let Progress { progress, total, message } = params.progress;
        Self { progress_token: params.token, progress, total, message }
    }
}
