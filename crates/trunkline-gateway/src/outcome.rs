//! The outcome of a call in one word: for metrics, logs, spans and the audit.

use trunkline_wire::json::Json;
use trunkline_wire::json::glance::{Glance, ResultType};
use trunkline_wire::method::Method;

use crate::failure::{Done, Failure, Reason, Stage};

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Ok,
    /// The caller was asked a question and retries with the answer.
    Asked,
    /// The tool reported an error.
    ToolError,
    /// The server answered with an error.
    Error,
    /// A rule, a rate limit or a plugin refused it, or the target does not exist.
    Refused,
    /// No instance was free, or none started.
    Unavailable,
    /// It was sent, and its outcome is unknown.
    Unknown,
    /// It timed out.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
}

impl Outcome {
    /// The word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Asked => "asked",
            Self::ToolError => "tool_error",
            Self::Error => "error",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Outcome {
    /// Whether the server is to blame.
    pub(crate) fn blames_server(self) -> bool {
        matches!(self, Self::Unavailable | Self::Unknown | Self::TimedOut)
    }

    /// Whether something went wrong, whoever's fault it is.
    pub(crate) fn is_failure(self) -> bool {
        !matches!(self, Self::Ok | Self::Asked | Self::Cancelled)
    }
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        match (failure.stage, failure.reason, failure.done) {
            (_, Reason::Timeout, _) => Self::TimedOut,
            (Stage::Policy | Stage::Route, ..) => Self::Refused,
            (.., Done::Unknown) => Self::Unknown,
            (Stage::Acquire | Stage::Spawn | Stage::Handshake, ..) => Self::Unavailable,
            (Stage::Call | Stage::Bridge, ..) => Self::Error,
        }
    }
}
/// Whether a result reports a tool error, and its result type.
pub(crate) fn of_result(method: Method, result: &Json) -> (bool, ResultType) {
    if !method.may_ask() {
        return (false, ResultType::None);
    }
    let glance = Glance::of(result);
    (glance.is_error && method == Method::ToolsCall, glance.result_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_failed_if_its_result_says_so_and_not_if_its_content_does() {
        let none = ResultType::None;
        for (method, result, is_error, kind) in [
            (Method::ToolsCall, r#"{"content":[],"isError":true}"#, true, none),
            (Method::ToolsCall, r#"{"content":[],"isError" : true}"#, true, none),
            (Method::ToolsCall, r#"{"structuredContent":{"isError":true}}"#, false, none),
            (Method::PromptsGet, r#"{"messages":[],"isError":true}"#, false, none),
            (Method::ResourcesRead, r#"{"resultType":"complete"}"#, false, ResultType::Complete),
            (
                Method::PromptsGet,
                r#"{ "resultType": "input_required" }"#,
                false,
                ResultType::InputRequired,
            ),
            (Method::CompletionComplete, r#"{"isError":true}"#, false, none),
        ] {
            let result = Json::parse(result).expect("this is JSON");
            assert_eq!(of_result(method, &result), (is_error, kind), "{method} {}", result.get());
        }
    }
}
