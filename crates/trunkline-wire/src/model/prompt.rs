//! Messages that a server prepares for a model.

use std::collections::BTreeMap;

use super::spelling::{is_false, null_is_default};
use super::{Content, Icon, Role};
use crate::json::Json;

model! {
    /// A prompt in a server's list.
    #[derive(Default)]
    pub struct Prompt {
        /// Its name, for programs.
        pub name: String,
        /// Its name, for people.
        pub title?: String,
        /// What it is for.
        pub description?: String,
        /// What it takes.
        pub arguments[]: PromptArgument,
        /// How to draw it.
        pub icons[]: Icon,
        /// Anything else.
        pub meta?: Json,
    }

    /// One thing a prompt takes, always a string.
    #[derive(Default)]
    pub struct PromptArgument {
        /// Its name, for programs.
        pub name: String,
        /// Its name, for people.
        pub title?: String,
        /// What it means.
        pub description?: String,
        /// Whether it must be given.
        #[serde(default, skip_serializing_if = "is_false", deserialize_with = "null_is_default")]
        pub required: bool,
    }

    /// The parameters of `prompts/get`.
    #[derive(Default, Eq)]
    pub struct GetPromptParams {
        /// Which prompt.
        pub name: String,
        /// What it takes.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
        pub arguments: BTreeMap<String, String>,
    }

    /// The answer to `prompts/get`.
    #[derive(Default)]
    pub struct GetPromptResult {
        /// What the prompt is for.
        pub description?: String,
        /// What to tell the model.
        pub messages: Vec<PromptMessage>,
        /// Anything else.
        pub meta?: Json,
    }

    /// One message of a prompt.
    pub struct PromptMessage {
        /// Who says it.
        pub role: Role,
        /// What is said.
        pub content: Content,
    }
}

impl Prompt {
    /// A prompt that takes nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters! { Prompt = Prompt::new("review");
    /// Names it for people.
    title(String) = "Review code" => r#"{"name":"review","title":"Review code"}"#;
    /// Says what it is for.
    description(String) = "Looks for mistakes" => r#""description":"Looks for mistakes""#;
    /// Says what it takes.
    arguments(Vec<PromptArgument>) = [PromptArgument::new("code").required(true)]
        => r#""arguments":[{"name":"code","required":true}]"#;
    /// Says how to draw it.
    icons(Vec<Icon>) = [Icon::new("https://example.com/eye.png")]
        => r#""icons":[{"src":"https://example.com/eye.png"}]"#;
    /// Adds anything else.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl PromptArgument {
    /// Something that may be left out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters! { PromptArgument = PromptArgument::new("code");
    /// Names it for people.
    title(String) = "The code" => r#"{"name":"code","title":"The code"}"#;
    /// Says what it means.
    description(String) = "What to look at" => r#""description":"What to look at""#;
    /// Says whether it must be given.
    required(bool) = true => r#"{"name":"code","required":true}"#;
}

impl GetPromptParams {
    /// Asks for a prompt.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: BTreeMap::new() }
    }
}

setters! { GetPromptParams = GetPromptParams::new("review");
    /// Gives it what it takes.
    arguments(BTreeMap<String, String>) = BTreeMap::from([("code".to_owned(), "1 + 1".to_owned())])
        => r#""arguments":{"code":"1 + 1"}"#;
}

impl GetPromptResult {
    /// What to tell the model.
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self { description: None, messages, meta: None }
    }
}

setters! { GetPromptResult = GetPromptResult::new(vec![PromptMessage::user("Review this.")]);
    /// Says what the prompt is for.
    description(String) = "Looks for mistakes"
        => r#"{"description":"Looks for mistakes","messages":"#;
    /// Adds anything else.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl PromptMessage {
    /// Someone says something.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into() }
    }

    /// The user says something.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// The model says something.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}
