//! Things a model can do.

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
        /// Its name, for people.
        pub title?: String,
        /// What it does, for the model.
        pub description?: String,
        /// The JSON Schema of its arguments, whose root is an object.
        pub input_schema: Json,
        /// The JSON Schema of its structured result.
        pub output_schema?: Json,
        /// How it behaves. Not to be trusted.
        pub annotations?: ToolAnnotations,
        /// How to draw it.
        pub icons[]: Icon,
        /// Whether it can be called as a task (2025-11-25).
        #[serde(rename = "execution", default, with = "execution", skip_serializing_if = "TaskSupport::is_forbidden")]
        pub task_support: TaskSupport,
        /// Anything else.
        pub meta?: Json,
    }

    /// How a tool says it behaves.
    #[derive(Default, Eq)]
    pub struct ToolAnnotations {
        /// Its name, for people.
        pub title?: String,
        /// It changes nothing; no, unless said.
        pub read_only_hint?: bool,
        /// It may destroy; yes, unless said.
        pub destructive_hint?: bool,
        /// Calling it twice is like once; no, unless said.
        pub idempotent_hint?: bool,
        /// It reaches beyond a closed world; yes, unless said.
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
        /// Which tool.
        pub name: String,
        /// Its arguments, an object.
        pub arguments?: Json,
        /// Asks for a task (2025-11-25).
        pub task?: TaskRequest,
    }

    /// The answer to `tools/call`.
    #[derive(Default)]
    pub struct CallToolResult {
        /// What the tool says to the model.
        #[serde(default)]
        pub content: Vec<Content>,
        /// The same for programs; `null` is a value, and not the same as nothing.
        #[serde(deserialize_with = "some_json")]
        pub structured_content?: Json,
        /// Whether the tool failed; see [`CallToolResult::is_error`].
        pub is_error?: bool,
        /// Anything else.
        pub meta?: Json,
    }
}

impl Tool {
    /// A tool that takes what `input_schema` says.
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
    /// Names it for people.
    title(String) = "Add numbers" => r#""title":"Add numbers""#;
    /// Says what it does.
    description(String) = "Adds two numbers." => r#""description":"Adds two numbers.""#;
    /// Says what its structured result looks like.
    output_schema(Json) = Json::of(&serde_json::json!({ "type": "number" }))
        => r#""outputSchema":{"type":"number"}"#;
    /// Says how it behaves.
    annotations(ToolAnnotations) = ToolAnnotations::new().read_only_hint(true)
        => r#""annotations":{"readOnlyHint":true}"#;
    /// Says how to draw it.
    icons(Vec<Icon>) = [Icon::new("https://example.com/plus.png")]
        => r#""icons":[{"src":"https://example.com/plus.png"}]"#;
    /// Says whether it can be called as a task.
    task_support(TaskSupport) = TaskSupport::Optional
        => r#""execution":{"taskSupport":"optional"}"#;
    /// Adds anything else.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl ToolAnnotations {
    /// Nothing said.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ToolAnnotations = ToolAnnotations::new();
    /// Names it for people.
    title(String) = "Delete a file" => r#"{"title":"Delete a file"}"#;
    /// It changes nothing, or something.
    read_only_hint(bool) = true => r#"{"readOnlyHint":true}"#;
    /// It may destroy, or not.
    destructive_hint(bool) = false => r#"{"destructiveHint":false}"#;
    /// Calling it twice is like once, or not.
    idempotent_hint(bool) = true => r#"{"idempotentHint":true}"#;
    /// It reaches beyond a closed world, or not.
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
        let mut object = Object::default();
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
    /// What the tool says, in blocks.
    pub fn new(content: Vec<Content>) -> Self {
        Self { content, ..Self::default() }
    }

    /// The tool says one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Content::text(text)])
    }

    /// All that the tool says in texts, one after the other.
    pub fn as_text(&self) -> String {
        let texts: Vec<_> = self.content.iter().filter_map(|it| it.as_text()).collect();
        texts.join("\n")
    }

    /// The tool failed, and says so to the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// A value for programs, and the same as text for the model.
    pub fn structured(value: Json) -> Self {
        Self { structured_content: Some(value.clone()), ..Self::text(value.get()) }
    }

    /// Whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.is_error == Some(true)
    }
}

setters! { CallToolResult = CallToolResult::text("3");
    /// Adds a value for programs.
    structured_content(Json) = Json::of(&serde_json::json!({ "sum": 3 }))
        => r#""structuredContent":{"sum":3}"#;
    /// Adds anything else.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

/// `task_support` stands inside `execution`.
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
