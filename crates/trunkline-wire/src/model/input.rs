//! Questions that a server puts into a result, and the answers in the client's retry.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::ordered;
use super::{
    CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, ListRootsResult,
};
use crate::json::Json;
use crate::method::{Gate, Method};

/// One question. In the stateful era it is a request of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum InputRequest {
    /// Ask the user.
    Elicit(ElicitParams),
    /// Ask the model.
    Sample(Box<CreateMessageParams>),
    /// Ask for the roots.
    Roots,
}

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub enum InputResponse {
    /// From the user.
    Elicit(ElicitResult),
    /// From the model.
    Sample(Box<CreateMessageResult>),
    /// The roots.
    Roots(ListRootsResult),
}

model! {
    /// An `input_required` result. It has questions, state, or both.
    #[derive(Default)]
    pub struct InputRequired {
        /// The questions, by key.
        #[serde(rename = "inputRequests", default, with = "ordered", skip_serializing_if = "Vec::is_empty")]
        pub requests: Vec<(String, InputRequest)>,
        /// State that the client returns unread.
        #[serde(rename = "requestState")]
        pub state?: String,
    }

    /// What a retry carries: answers by key, and the state.
    #[derive(Default)]
    pub struct InputResponses {
        /// The answers, by the question's key.
        #[serde(rename = "inputResponses", default, with = "ordered", skip_serializing_if = "Vec::is_empty")]
        pub responses: Vec<(String, InputResponse)>,
        /// The state, byte for byte.
        #[serde(rename = "requestState")]
        pub state?: String,
    }
}

impl InputRequest {
    /// The method that asks this.
    pub fn method(&self) -> Method {
        match self {
            Self::Elicit(_) => Method::ElicitationCreate,
            Self::Sample(_) => Method::SamplingCreateMessage,
            Self::Roots => Method::RootsList,
        }
    }

    /// The client capability that it requires.
    pub fn gate(&self) -> Gate {
        match self {
            Self::Elicit(_) => Gate::Elicitation,
            Self::Sample(_) => Gate::Sampling,
            Self::Roots => Gate::Roots,
        }
    }

    /// The parameters, if the method has any.
    pub fn params(&self) -> Option<Json> {
        match self {
            Self::Elicit(params) => Some(Json::of(params)),
            Self::Sample(params) => Some(Json::of(params)),
            Self::Roots => None,
        }
    }

    /// Reads a question from its method and parameters.
    pub fn read(method: &str, params: Option<&Json>) -> Result<Self, serde_json::Error> {
        let params = || params.ok_or_else(|| serde_json::Error::missing_field("params"));
        match Method::of(method) {
            Some(Method::ElicitationCreate) => params()?.to().map(Self::Elicit),
            Some(Method::SamplingCreateMessage) => params()?.to().map(Self::Sample),
            Some(Method::RootsList) => Ok(Self::Roots),
            _ => Err(serde_json::Error::unknown_variant(method, QUESTIONS)),
        }
    }

    /// Reads the answer to this question.
    pub fn read_response(&self, raw: &Json) -> Result<InputResponse, serde_json::Error> {
        match self {
            Self::Elicit(_) => raw.to().map(InputResponse::Elicit),
            Self::Sample(_) => raw.to().map(InputResponse::Sample),
            Self::Roots => raw.to().map(InputResponse::Roots),
        }
    }
}

impl InputRequired {
    /// Questions without state.
    pub fn new(requests: Vec<(String, InputRequest)>) -> Self {
        Self { requests, state: None }
    }
}

setters! { InputRequired = InputRequired::new(vec![("where".to_owned(), InputRequest::Roots)]);
    /// Sets the state that the client returns.
    state(String) = "sealed"
        => r#"{"inputRequests":{"where":{"method":"roots/list"}},"requestState":"sealed"}"#;
}

impl InputResponses {
    /// Answers without state.
    pub fn new(responses: Vec<(String, InputResponse)>) -> Self {
        Self { responses, state: None }
    }

    /// The answer to the question `key`.
    pub fn get(&self, key: &str) -> Option<&InputResponse> {
        self.responses.iter().find(|(name, _)| name == key).map(|(_, response)| response)
    }
}

setters! { InputResponses = InputResponses::new(Vec::new());
    /// Returns the state.
    state(String) = "sealed" => r#"{"requestState":"sealed"}"#;
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", self.method().name())?;
        match self {
            Self::Elicit(params) => map.serialize_entry("params", params)?,
            Self::Sample(params) => map.serialize_entry("params", params)?,
            Self::Roots => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Bare {
            method: String,
            #[serde(default)]
            params: Option<Json>,
        }
        let bare = Bare::deserialize(deserializer)?;
        Self::read(&bare.method, bare.params.as_ref()).map_err(D::Error::custom)
    }
}

impl Serialize for InputResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Elicit(result) => result.serialize(serializer),
            Self::Sample(result) => result.serialize(serializer),
            Self::Roots(result) => result.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for InputResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The wire does not name the kind; each has a required member the others lack.
        #[derive(Deserialize)]
        struct Members {
            action: Option<serde::de::IgnoredAny>,
            model: Option<serde::de::IgnoredAny>,
            roots: Option<serde::de::IgnoredAny>,
        }
        let raw = Json::deserialize(deserializer)?;
        if !raw.is_object() {
            return Err(D::Error::custom("an answer must be an object"));
        }
        let members: Members = raw.to().map_err(D::Error::custom)?;
        let read = if members.action.is_some() {
            raw.to().map(Self::Elicit)
        } else if members.model.is_some() {
            raw.to().map(Self::Sample)
        } else if members.roots.is_some() {
            raw.to().map(Self::Roots)
        } else {
            return Err(D::Error::custom("this answers no kind of question"));
        };
        read.map_err(D::Error::custom)
    }
}

/// The requests of the stateful era that 2026-07-28 embeds in `input_required` instead.
const QUESTIONS: &[&str] = &[
    Method::ElicitationCreate.name(),
    Method::SamplingCreateMessage.name(),
    Method::RootsList.name(),
];
