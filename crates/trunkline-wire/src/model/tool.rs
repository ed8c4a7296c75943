//! Tools: functions that a model can call.

mod read;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::some_json;
use super::{Content, Icon, TaskRequest};
use crate::json::Json;
use crate::jsonrpc::Object;

model! {
    /// A tool in a server's list.
    pub struct Tool {
        /// Its name, for programs.
        pub name: String,
        /// Its display name.
        pub title?: String,
        /// What it does, for the model.
        pub description?: String,
        /// The JSON Schema of its arguments, whose root is an object.
        pub input_schema: Json,
        /// The JSON Schema of its structured result.
        pub output_schema?: Json,
        /// Its behaviour hints. Untrusted.
        pub annotations?: ToolAnnotations,
        /// Its icons.
        pub icons[]: Icon,
        /// Whether it can be called as a task (2025-11-25).
        #[serde(rename = "execution", default, with = "execution", skip_serializing_if = "TaskSupport::is_forbidden")]
        pub task_support: TaskSupport,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// A tool's own claims about its behaviour.
    #[derive(Default, Eq)]
    pub struct ToolAnnotations {
        /// Its display name.
        pub title?: String,
        /// It changes nothing (default: false).
        pub read_only_hint?: bool,
        /// It may destroy data (default: true).
        pub destructive_hint?: bool,
        /// It is idempotent (default: false).
        pub idempotent_hint?: bool,
        /// It reaches beyond a closed world (default: true).
        pub open_world_hint?: bool,
    }
}

/// Whether a tool can be called as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// It cannot.
    #[default]
    Forbidden,
    /// It can.
    Optional,
    /// It must.
    Required,
}

model! {
    /// The parameters of `tools/call`.
    pub struct CallToolParams {
        /// The tool.
        pub name: String,
        /// Its arguments, an object.
        pub arguments?: Json,
        /// Asks for a task (2025-11-25).
        pub task?: TaskRequest,
    }

    /// The answer to `tools/call`.
    #[derive(Default)]
    pub struct CallToolResult {
        /// The result for the model.
        #[serde(default)]
        pub content: Vec<Content>,
        /// The structured result; `null` is a value and differs from absence.
        #[serde(deserialize_with = "some_json")]
        pub structured_content?: Json,
        /// Whether the tool failed; see [`CallToolResult::is_error`].
        pub is_error?: bool,
        /// The `_meta` member.
        pub meta?: Json,
    }
}

impl Tool {
    /// A tool whose arguments match `input_schema`.
    pub fn new(name: impl Into<String>, input_schema: Json) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            task_support: TaskSupport::Forbidden,
            meta: None,
        }
    }
}

setters! { Tool = Tool::new("add", Json::of(&serde_json::json!({ "type": "object" })));
    /// Sets its display name.
    title(String) = "Add numbers" => r#""title":"Add numbers""#;
    /// Sets its description.
    description(String) = "Adds two numbers." => r#""description":"Adds two numbers.""#;
    /// Sets the schema of its structured result.
    output_schema(Json) = Json::of(&serde_json::json!({ "type": "number" }))
        => r#""outputSchema":{"type":"number"}"#;
    /// Sets its behaviour hints.
    annotations(ToolAnnotations) = ToolAnnotations::new().read_only_hint(true)
        => r#""annotations":{"readOnlyHint":true}"#;
    /// Sets its icons.
    icons(Vec<Icon>) = [Icon::new("https://example.com/plus.png")]
        => r#""icons":[{"src":"https://example.com/plus.png"}]"#;
    /// Sets whether it can be called as a task.
    task_support(TaskSupport) = TaskSupport::Optional
        => r#""execution":{"taskSupport":"optional"}"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl ToolAnnotations {
    /// No hints.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ToolAnnotations = ToolAnnotations::new();
    /// Sets its display name.
    title(String) = "Delete a file" => r#"{"title":"Delete a file"}"#;
    /// Whether it changes nothing.
    read_only_hint(bool) = true => r#"{"readOnlyHint":true}"#;
    /// Whether it may destroy data.
    destructive_hint(bool) = false => r#"{"destructiveHint":false}"#;
    /// Whether it is idempotent.
    idempotent_hint(bool) = true => r#"{"idempotentHint":true}"#;
    /// Whether it reaches beyond a closed world.
    open_world_hint(bool) = false => r#"{"openWorldHint":false}"#;
}

impl TaskSupport {
    /// Whether it cannot be called as a task.
    pub fn is_forbidden(&self) -> bool {
        *self == Self::Forbidden
    }
}

impl CallToolParams {
    /// Calls a tool without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: None, task: None }
    }

    /// Reads the parameters out of their members without copying the arguments.
    pub fn from_object(mut object: Object) -> Result<Self, serde_json::Error> {
        use serde::de::Error as _;
        let name = object.take("name").ok_or_else(|| serde_json::Error::missing_field("name"))?;
        let task = object.take("task").map(|task| task.to()).transpose()?.flatten();
        let arguments = object.take("arguments").filter(|arguments| !arguments.is_null());
        Ok(Self { name: name.to()?, arguments, task })
    }

    /// The parameters as members, without copying the arguments.
    pub fn into_object(self) -> Object {
        let mut object = Object::with_room(2);
        object.set("name", Json::string(&self.name));
        if let Some(arguments) = self.arguments {
            object.set("arguments", arguments);
        }
        if let Some(task) = self.task {
            object.set("task", Json::of(&task));
        }
        object
    }
}

setters! { CallToolParams = CallToolParams::new("add");
    /// Gives it arguments.
    arguments(Json) = Json::of(&serde_json::json!({ "a": 1 }))
        => r#"{"name":"add","arguments":{"a":1}}"#;
    /// Asks for a task.
    task(TaskRequest) = TaskRequest::new().ttl_ms(60_000_u64)
        => r#"{"name":"add","task":{"ttl":60000}}"#;
}

impl CallToolResult {
    /// A result in blocks.
    #[inline]
    pub fn new(content: Vec<Content>) -> Self {
        Self { content, ..Self::default() }
    }

    /// A result of one text.
    #[inline]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Content::text(text)])
    }

    /// The texts of the result, concatenated.
    pub fn as_text(&self) -> String {
        let texts: Vec<_> = self.content.iter().filter_map(|it| it.as_text()).collect();
        texts.join("\n")
    }

    /// A failure, with a text for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// A structured result, and the same as text for the model.
    pub fn structured(value: Json) -> Self {
        Self { structured_content: Some(value.clone()), ..Self::text(value.get()) }
    }

    /// Whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.is_error == Some(true)
    }
}

setters! { CallToolResult = CallToolResult::text("3");
    /// Adds a structured result.
    structured_content(Json) = Json::of(&serde_json::json!({ "sum": 3 }))
        => r#""structuredContent":{"sum":3}"#;
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

/// On the wire `task_support` is inside `execution`.
mod execution {
    use super::*;

    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Execution {
        task_support: TaskSupport,
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    pub(super) fn serialize<S: Serializer>(it: &TaskSupport, ser: S) -> Result<S::Ok, S::Error> {
        Execution { task_support: *it }.serialize(ser)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(de: D) -> Result<TaskSupport, D::Error> {
        let execution = Option::<Execution>::deserialize(de)?;
        Ok(execution.unwrap_or_default().task_support)
    }
}
