//! Questions to the client's user.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TaskRequest;
use crate::json::Json;

/// The parameters of `elicitation/create`.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitParams {
    /// Fill in a form.
    Form(ElicitForm),
    /// Visit a URL.
    Url(ElicitUrl),
}

/// A form to fill in. Never for secrets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ElicitForm {
    /// The question.
    pub message: String,
    /// The fields: a flat object schema; see [`FormSchema`](super::FormSchema).
    pub requested_schema: Json,
    /// Asks for a task (2025-11-25).
    pub task: Option<TaskRequest>,
    /// Whether `mode` is written; 2025-06-18 lacks it, later revisions may omit it.
    pub(crate) names_mode: bool,
}

/// A URL to visit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ElicitUrl {
    /// The reason.
    pub message: String,
    /// The URL.
    pub url: String,
    /// The id that `notifications/elicitation/complete` refers to. 2025-11-25 requires it, later
    /// revisions lack it.
    pub elicitation_id: Option<String>,
    /// Asks for a task (2025-11-25).
    pub task: Option<TaskRequest>,
}

model! {
    /// The answer to `elicitation/create`.
    pub struct ElicitResult {
        /// The user's action.
        pub action: ElicitAction,
        /// The values filled in, if any.
        pub content?: Json,
    }
}

/// The user's reaction to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Answer it, or agree to visit the URL.
    Accept,
    /// Say no.
    Decline,
    /// Close it without choosing.
    Cancel,
}

model! {
    /// The parameters of `notifications/elicitation/complete` (2025-11-25).
    #[derive(Eq)]
    pub struct ElicitationCompleteParams {
        /// The elicitation that is complete.
        pub elicitation_id: String,
    }
}

impl ElicitParams {
    /// A form.
    pub fn form(message: impl Into<String>, requested_schema: Json) -> Self {
        Self::Form(ElicitForm::new(message, requested_schema))
    }

    /// A URL.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrl::new(message, url))
    }

    /// The question.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
        }
    }

    /// The request for a task, if any.
    pub fn task(&self) -> Option<&TaskRequest> {
        match self {
            Self::Form(form) => form.task.as_ref(),
            Self::Url(url) => url.task.as_ref(),
        }
    }
}

impl ElicitForm {
    /// A question and its fields.
    pub fn new(message: impl Into<String>, requested_schema: Json) -> Self {
        Self { message: message.into(), requested_schema, task: None, names_mode: true }
    }
}

impl ElicitUrl {
    /// A reason and a URL.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into(), elicitation_id: None, task: None }
    }
}

setters! { ElicitUrl = ElicitUrl::new("Please log in.", "https://example.com/login") => ElicitParams::Url(it);
    /// Sets the id that the completion refers to.
    elicitation_id(String) = "login-1" => r#""elicitationId":"login-1""#;
}

impl ElicitResult {
    /// The user filled in the form.
    pub fn accept(content: Json) -> Self {
        Self { action: ElicitAction::Accept, content: Some(content) }
    }

    /// The user's action, without values.
    pub fn new(action: ElicitAction) -> Self {
        Self { action, content: None }
    }
}

impl ElicitationCompleteParams {
    /// This elicitation is complete.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self { elicitation_id: elicitation_id.into() }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Flat {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_schema: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elicitation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskRequest>,
}

impl Serialize for ElicitParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let flat = match self.clone() {
            Self::Form(form) => Flat {
                mode: form.names_mode.then(|| "form".to_owned()),
                message: form.message,
                requested_schema: Some(form.requested_schema),
                task: form.task,
                ..Flat::default()
            },
            Self::Url(url) => Flat {
                mode: Some("url".to_owned()),
                message: url.message,
                url: Some(url.url),
                elicitation_id: url.elicitation_id,
                task: url.task,
                ..Flat::default()
            },
        };
        flat.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Flat { mode, message, requested_schema, url, elicitation_id, task } =
            Flat::deserialize(deserializer)?;
        match mode.as_deref() {
            None | Some("form") => {
                let requested_schema =
                    requested_schema.ok_or_else(|| D::Error::missing_field("requestedSchema"))?;
                let names_mode = mode.is_some();
                Ok(Self::Form(ElicitForm { message, requested_schema, task, names_mode }))
            }
            Some("url") => {
                let url = url.ok_or_else(|| D::Error::missing_field("url"))?;
                Ok(Self::Url(ElicitUrl { message, url, elicitation_id, task }))
            }
            Some(other) => Err(D::Error::unknown_variant(other, &["form", "url"])),
        }
    }
}
