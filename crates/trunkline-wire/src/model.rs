//! MCP's data types, independent of the revision: the newest revision's members without those that
//! exist only on the wire (`resultType`, the `_meta` envelope, cache members, `requestState`).
//!
//! Reading is lenient: unknown members are ignored and optional ones may be missing. Values that are
//! carried unparsed are [`Json`](crate::json::Json), so these types can be read from JSON text only.
//! [`crate::era`] spells them for each revision.
//!
//! ```
//! use trunkline_wire::json::Json;
//! use trunkline_wire::model::{ListChanged, ServerCapabilities};
//!
//! let server = ServerCapabilities::new().tools(ListChanged::new(true));
//! assert_eq!(Json::of(&server).get(), r#"{"tools":{"listChanged":true}}"#);
//! let newer = Json::parse(r#"{"tools":{"listChanged":true},"new":1}"#).unwrap();
//! assert_eq!(newer.to::<ServerCapabilities>().unwrap(), server);
//! ```

// The hidden imports of every example below.
macro_rules! example {
    ($($line:expr),+) => {
        concat!(
            "\n```\n# use std::collections::BTreeMap;\n",
            "# use trunkline_wire::{json::Json, jsonrpc::*, model::*};\n",
            $($line, "\n",)+
            "```"
        )
    };
}

// Types, written as the specification's schema writes them. `name?: T` is an `Option<T>` and
// `name[]: T` a `Vec<T>`: the member may be missing, and an empty one is not written. `meta` is
// `_meta` on the wire.
macro_rules! model {
    ($($(#[$attr:meta])* pub struct $Name:ident { $($fields:tt)* })*) => { $(
        model! { $(#[$attr])* $Name [] $($fields)* }
    )* };
    ($(#[$attr:meta])* $Name:ident [$($done:tt)*]) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        $(#[$attr])*
        #[non_exhaustive]
        pub struct $Name { $($done)* }
    };
    (
        $(#[$attr:meta])* $Name:ident [$($done:tt)*]
        $(#[$own:meta])* pub meta?: $T:ty, $($rest:tt)*
    ) => { model! { $(#[$attr])* $Name [$($done)*
        $(#[$own])* #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        pub meta: Option<$T>,
    ] $($rest)* } };
    (
        $(#[$attr:meta])* $Name:ident [$($done:tt)*]
        $(#[$own:meta])* pub $name:ident?: $T:ty, $($rest:tt)*
    ) => { model! { $(#[$attr])* $Name [$($done)*
        $(#[$own])* #[serde(default, skip_serializing_if = "Option::is_none")]
        pub $name: Option<$T>,
    ] $($rest)* } };
    (
        $(#[$attr:meta])* $Name:ident [$($done:tt)*]
        $(#[$own:meta])* pub $name:ident[]: $T:ty, $($rest:tt)*
    ) => { model! { $(#[$attr])* $Name [$($done)*
        $(#[$own])* #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "crate::model::spelling::null_is_default"
        )]
        pub $name: Vec<$T>,
    ] $($rest)* } };
    (
        $(#[$attr:meta])* $Name:ident [$($done:tt)*]
        $(#[$own:meta])* $vis:vis $name:ident: $T:ty, $($rest:tt)*
    ) => { model! { $(#[$attr])* $Name [$($done)* $(#[$own])* $vis $name: $T,] $($rest)* } };
}

// Chainable setters for the types that people build by hand. Each row names the value to try it on
// (and, if that is no JSON by itself, what to wrap it in), an argument, and the expected JSON: that is
// its example.
macro_rules! setters {
    ($Type:ident = $new:expr; $($rest:tt)*) => { setters! { $Type = $new => it; $($rest)* } };
    (
        $Type:ident = $new:expr => $whole:expr;
        $($(#[$doc:meta])* $name:ident($ty:ty) = $value:expr => $json:literal;)*
    ) => {
        impl $Type {
            $(
                $(#[$doc])*
                #[doc = example!(
                    concat!("let it = ", stringify!($new)),
                    concat!("    .", stringify!($name), "(", stringify!($value), ");"),
                    concat!("let json = Json::of(&", stringify!($whole), ");"),
                    concat!("assert!(json.get().contains(", stringify!($json), "));")
                )]
                #[must_use]
                pub fn $name(mut self, $name: impl Into<$ty>) -> Self {
                    self.$name = <_ as Into<$ty>>::into($name).into();
                    self
                }
            )*
        }
    };
}

// Each of these types is a variant of the enum.
macro_rules! variants {
    ($Enum:ident: $($Type:ident => $Variant:ident),*) => { $(
        impl From<$Type> for $Enum {
            fn from(it: $Type) -> Self {
                Self::$Variant(it)
            }
        }
    )* };
}

mod cache;
mod cancel;
mod capability;
mod completion;
mod content;
mod discover;
mod elicitation;
mod empty;
mod input;
mod logging;
pub mod meta;
mod page;
mod primitive;
mod progress;
mod prompt;
mod resource;
mod root;
mod sampling;
mod skill;
mod spelling;
mod subscription;
mod task;
mod tool;

pub use cache::{CacheHint, CacheScope};
pub use cancel::CancelledParams;
pub use capability::{
    ClientCapabilities, ClientTasks, ElicitationCapability, Icon, IconTheme, Implementation,
    ListChanged, ResourcesCapability, RootsCapability, SKILLS_EXTENSION, SamplingCapability,
    ServerCapabilities, ServerTasks, TASKS_EXTENSION,
};
pub use completion::{CompleteParams, CompleteResult, Completion, CompletionArgument, Reference};
pub use content::{
    Annotations, AudioContent, Content, EmbeddedResource, ImageContent, ResourceContents,
    ResourceData, ResourceLink, Role, TextContent, ToolResultContent, ToolUseContent,
};
pub use discover::{DiscoverResult, InitializeParams, InitializeResult};
pub use elicitation::{
    ElicitAction, ElicitForm, ElicitParams, ElicitResult, ElicitUrl, ElicitationCompleteParams,
};
pub use empty::EmptyResult;
pub use input::{InputRequest, InputRequired, InputResponse, InputResponses};
pub use logging::{LogLevel, LogMessage, SetLevelParams};
pub use page::{
    ListParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListSkillsResult, ListTasksResult, ListToolsResult, ReadDirectoryResult,
};
pub use primitive::{
    BooleanSchema, EnumOption, EnumSchema, FormSchema, Many, NumberSchema, PrimitiveSchema,
    StringSchema,
};
pub use progress::{Progress, ProgressParams};
pub use prompt::{GetPromptParams, GetPromptResult, Prompt, PromptArgument, PromptMessage};
pub use resource::{
    ReadResourceParams, ReadResourceResult, Resource, ResourceTemplate, ResourceUpdatedParams,
    SubscribeParams,
};
pub use root::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    OneOrMany, SamplingFault, SamplingMessage, ToolChoice,
};
pub use skill::{
    GetSkillParams, GetSkillResult, ReadDirectoryParams, Skill, SkillFile, SkillFiles,
    SkillsSettings,
};
pub use subscription::{AcknowledgedParams, ListenParams, SubscriptionFilter};
pub(crate) use task::progress_meta;
pub use task::{
    DetailedTask, Task, TaskParams, TaskRequest, TaskStatus, UnknownTaskShape, UpdateTaskParams,
};
pub use tool::{CallToolParams, CallToolResult, TaskSupport, Tool, ToolAnnotations};
