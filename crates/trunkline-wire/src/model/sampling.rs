//! Requests to the client's model.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::number;
use super::{Content, Role, TaskRequest, Tool};
use crate::json::Json;

model! {
    /// The parameters of `sampling/createMessage`.
    #[derive(Default)]
    pub struct CreateMessageParams {
        /// The conversation so far.
        pub messages: Vec<SamplingMessage>,
        /// The model preferences.
        pub model_preferences?: ModelPreferences,
        /// The system prompt.
        pub system_prompt?: String,
        /// Whose context to add.
        pub include_context?: IncludeContext,
        /// The sampling temperature.
        #[serde(with = "number::option")]
        pub temperature?: f64,
        /// The most tokens in the answer.
        pub max_tokens: u64,
        /// The stop sequences.
        pub stop_sequences[]: String,
        /// Metadata for the model's provider.
        pub metadata?: Json,
        /// The tools that the model may use.
        pub tools[]: Tool,
        /// Whether it must use them.
        pub tool_choice?: ToolChoice,
        /// Asks for a task (2025-11-25).
        pub task?: TaskRequest,
    }

    /// One message of a conversation.
    pub struct SamplingMessage {
        /// The role of the speaker.
        pub role: Role,
        /// The content.
        pub content: OneOrMany<Content>,
        /// The `_meta` member.
        pub meta?: Json,
    }
}

/// One value or a list of them; remembers which it was.
#[derive(Clone, Debug, PartialEq)]
pub enum OneOrMany<T> {
    /// A single value.
    One(T),
    /// A list, of any length.
    Many(Vec<T>),
}

model! {
    /// The model preferences. Weights go from 0 to 1.
    #[derive(Default)]
    pub struct ModelPreferences {
        /// Model names to try, best first.
        pub hints[]: ModelHint,
        /// How much cost matters.
        #[serde(with = "number::option")]
        pub cost_priority?: f64,
        /// How much speed matters.
        #[serde(with = "number::option")]
        pub speed_priority?: f64,
        /// How much intelligence matters.
        #[serde(with = "number::option")]
        pub intelligence_priority?: f64,
    }

    /// A model's name, or part of it.
    #[derive(Default, Eq)]
    pub struct ModelHint {
        /// The name.
        pub name?: String,
    }
}

/// Whose context to add to the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// Nobody's.
    None,
    /// That of the asking server.
    ThisServer,
    /// That of all servers.
    AllServers,
}

/// Whether the model uses tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
}

model! {
    /// The answer to `sampling/createMessage`.
    pub struct CreateMessageResult {
        /// The role of the speaker: the assistant.
        pub role: Role,
        /// The content.
        pub content: OneOrMany<Content>,
        /// The model's name.
        pub model: String,
        /// `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or something else.
        pub stop_reason?: String,
        /// The `_meta` member.
        pub meta?: Json,
    }
}

/// Why a conversation with tools is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SamplingFault {
    /// A message mixes tool results with other content.
    Mixed,
    /// A tool use is not answered by the next message.
    Unanswered(String),
    /// A tool result answers no tool use of the message before.
    Unasked(String),
}

/// One question of a user, with at most a thousand tokens for the answer.
impl From<&str> for CreateMessageParams {
    fn from(question: &str) -> Self {
        Self::new(vec![SamplingMessage::user(question)], 1000)
    }
}

/// One question of a user, with at most a thousand tokens for the answer.
impl From<String> for CreateMessageParams {
    fn from(question: String) -> Self {
        Self::from(&*question)
    }
}

impl CreateMessageParams {
    /// Asks the model to continue a conversation.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }

    /// Whether the next message answers every tool use, and tool results stand alone.
    pub fn check(&self) -> Result<(), SamplingFault> {
        let mut open: BTreeSet<&str> = BTreeSet::new();
        for message in &self.messages {
            let blocks = message.content.as_slice();
            let results = blocks.iter().filter(|it| matches!(it, Content::ToolResult(_))).count();
            if results > 0 && results < blocks.len() {
                return Err(SamplingFault::Mixed);
            }
            for block in blocks {
                if let Content::ToolResult(result) = block
                    && !open.remove(result.tool_use_id.as_str())
                {
                    return Err(SamplingFault::Unasked(result.tool_use_id.clone()));
                }
            }
            if let Some(id) = open.pop_first() {
                return Err(SamplingFault::Unanswered(id.to_owned()));
            }
            open.extend(blocks.iter().filter_map(|block| match block {
                Content::ToolUse(tool_use) => Some(tool_use.id.as_str()),
                _ => None,
            }));
        }
        match open.pop_first() {
            Some(id) => Err(SamplingFault::Unanswered(id.to_owned())),
            None => Ok(()),
        }
    }
}

setters! { CreateMessageParams = CreateMessageParams::new(vec![SamplingMessage::user("Hi")], 100);
    /// Sets the model preferences.
    model_preferences(ModelPreferences) = ModelPreferences::new().speed_priority(1.0)
        => r#""modelPreferences":{"speedPriority":1}"#;
    /// Sets the system prompt.
    system_prompt(String) = "Be brief." => r#""systemPrompt":"Be brief.""#;
    /// Sets whose context to add.
    include_context(IncludeContext) = IncludeContext::ThisServer
        => r#""includeContext":"thisServer""#;
    /// Sets the sampling temperature.
    temperature(f64) = 0.2 => r#""temperature":0.2"#;
    /// Sets the stop sequences.
    stop_sequences(Vec<String>) = ["END".to_owned()] => r#""stopSequences":["END"]"#;
    /// Adds metadata for the model's provider.
    metadata(Json) = Json::of(&serde_json::json!({ "tier": 1 })) => r#""metadata":{"tier":1}"#;
    /// Sets the tools that the model may use.
    tools(Vec<Tool>) = [Tool::new("add", Json::empty_object())]
        => r#""tools":[{"name":"add","inputSchema":{}}]"#;
    /// Sets whether it must use them.
    tool_choice(ToolChoice) = ToolChoice::Required => r#""toolChoice":{"mode":"required"}"#;
    /// Asks for a task.
    task(TaskRequest) = TaskRequest::new() => r#""task":{}"#;
}

impl SamplingMessage {
    /// A message of `role`.
    pub fn new(role: Role, content: impl Into<OneOrMany<Content>>) -> Self {
        Self { role, content: content.into(), meta: None }
    }

    /// A text message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, Content::text(text))
    }

    /// A text message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, Content::text(text))
    }
}

impl<T> OneOrMany<T> {
    /// All of them.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

impl<T> From<T> for OneOrMany<T> {
    fn from(one: T) -> Self {
        Self::One(one)
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(many: Vec<T>) -> Self {
        Self::Many(many)
    }
}

impl ModelPreferences {
    /// No preference.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ModelPreferences = ModelPreferences::new();
    /// Sets the models to try.
    hints(Vec<ModelHint>) = [ModelHint::new("sonnet"), ModelHint::new("claude")]
        => r#"{"hints":[{"name":"sonnet"},{"name":"claude"}]}"#;
    /// Sets how much cost matters.
    cost_priority(f64) = 0.3 => r#"{"costPriority":0.3}"#;
    /// Sets how much speed matters.
    speed_priority(f64) = 0.8 => r#"{"speedPriority":0.8}"#;
    /// Sets how much intelligence matters.
    intelligence_priority(f64) = 1.0 => r#"{"intelligencePriority":1}"#;
}

impl ModelHint {
    /// A model's name, or part of it.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()) }
    }
}

impl CreateMessageResult {
    /// The answer of `model`.
    pub fn new(content: impl Into<OneOrMany<Content>>, model: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
        }
    }

    /// The texts of the answer, one per line.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.content.as_slice().iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

setters! { CreateMessageResult = CreateMessageResult::new(Content::text("Hi"), "model-1");
    /// Sets why the model stopped.
    stop_reason(String) = "endTurn" => r#""stopReason":"endTurn""#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl fmt::Display for SamplingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mixed => f.write_str("A message with tool results must hold nothing else."),
            Self::Unanswered(id) => {
                write!(f, "The tool use `{id}` is not answered by the next message.")
            }
            Self::Unasked(id) => {
                write!(f, "The tool result `{id}` answers no tool use of the message before it.")
            }
        }
    }
}

impl std::error::Error for SamplingFault {}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(one) => one.serialize(serializer),
            Self::Many(many) => many.serialize(serializer),
        }
    }
}

impl<'de, T: serde::de::DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Json::deserialize(deserializer)?;
        let read = match raw.get().starts_with('[') {
            true => raw.to().map(Self::Many),
            false => raw.to().map(Self::One),
        };
        read.map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
struct Choice {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Auto,
    Required,
    None,
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mode = match self {
            Self::Auto => Mode::Auto,
            Self::Required => Mode::Required,
            Self::None => Mode::None,
        };
        Choice { mode: Some(mode) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Choice::deserialize(deserializer)?.mode {
            None | Some(Mode::Auto) => Self::Auto,
            Some(Mode::Required) => Self::Required,
            Some(Mode::None) => Self::None,
        })
    }
}
