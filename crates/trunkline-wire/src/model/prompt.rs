//! Prompts: messages that a server prepares for a model.

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
        /// Its display name.
        pub title?: String,
        /// Its purpose.
        pub description?: String,
        /// Its arguments.
        pub arguments[]: PromptArgument,
        /// Its icons.
        pub icons[]: Icon,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// An argument of a prompt, always a string.
    #[derive(Default)]
    pub struct PromptArgument {
        /// Its name, for programs.
        pub name: String,
        /// Its display name.
        pub title?: String,
        /// Its meaning.
        pub description?: String,
        /// Whether it is required.
        #[serde(default, skip_serializing_if = "is_false", deserialize_with = "null_is_default")]
        pub required: bool,
    }

    /// The parameters of `prompts/get`.
    #[derive(Default, Eq)]
    pub struct GetPromptParams {
        /// The prompt.
        pub name: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
        pub arguments: BTreeMap<String, String>,
    }

    /// The answer to `prompts/get`.
    #[derive(Default)]
    pub struct GetPromptResult {
        /// The purpose of the prompt.
        pub description?: String,
        /// The messages for the model.
        pub messages: Vec<PromptMessage>,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// One message of a prompt.
    pub struct PromptMessage {
        /// The role of the speaker.
        pub role: Role,
        /// The content.
        pub content: Content,
    }
}

impl Prompt {
    /// A prompt without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters! { Prompt = Prompt::new("review");
    /// Sets its display name.
    title(String) = "Review code" => r#"{"name":"review","title":"Review code"}"#;
    /// Sets its description.
    description(String) = "Looks for mistakes" => r#""description":"Looks for mistakes""#;
    /// Sets its arguments.
    arguments(Vec<PromptArgument>) = [PromptArgument::new("code").required(true)]
        => r#""arguments":[{"name":"code","required":true}]"#;
    /// Sets its icons.
    icons(Vec<Icon>) = [Icon::new("https://example.com/eye.png")]
        => r#""icons":[{"src":"https://example.com/eye.png"}]"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl PromptArgument {
    /// An optional argument.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters! { PromptArgument = PromptArgument::new("code");
    /// Sets its display name.
    title(String) = "The code" => r#"{"name":"code","title":"The code"}"#;
    /// Sets its description.
    description(String) = "What to look at" => r#""description":"What to look at""#;
    /// Sets whether it is required.
    required(bool) = true => r#"{"name":"code","required":true}"#;
}

impl GetPromptParams {
    /// Asks for a prompt.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: BTreeMap::new() }
    }
}

setters! { GetPromptParams = GetPromptParams::new("review");
    /// Sets its arguments.
    arguments(BTreeMap<String, String>) = BTreeMap::from([("code".to_owned(), "1 + 1".to_owned())])
        => r#""arguments":{"code":"1 + 1"}"#;
}

impl GetPromptResult {
    /// A prompt's messages.
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self { description: None, messages, meta: None }
    }
}

setters! { GetPromptResult = GetPromptResult::new(vec![PromptMessage::user("Review this.")]);
    /// Sets the purpose of the prompt.
    description(String) = "Looks for mistakes"
        => r#"{"description":"Looks for mistakes","messages":"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl PromptMessage {
    /// A message of `role`.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into() }
    }

    /// A message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}
