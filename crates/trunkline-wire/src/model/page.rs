//! Paginated lists.

use serde::{Deserialize, Serialize};

use super::{Prompt, Resource, ResourceTemplate, Skill, Task, Tool};
use crate::json::Json;

model! {
    /// The parameters of every list request.
    #[derive(Default, Eq)]
    pub struct ListParams {
        /// The cursor; an empty string is a cursor too.
        pub cursor?: String,
    }
}

impl ListParams {
    /// The first page.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ListParams = ListParams::new();
    /// Sets the cursor.
    cursor(String) = "" => r#"{"cursor":""}"#;
}

macro_rules! list_results {
    ($($(#[$doc:meta])* $Name:ident { $items:ident: $Item:ty = $item:expr => $json:literal })*) => { $(
        $(#[$doc])*
        #[doc = example!(
            concat!("let page = ", stringify!($Name), "::new(vec![", stringify!($item), "]);"),
            concat!("assert_eq!(Json::of(&page).get(), ", stringify!($json), ");")
        )]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $Name {
            /// This page's items.
            pub $items: Vec<$Item>,
            /// The cursor of the next page; `None` on the last.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<String>,
            /// The `_meta` member.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Json>,
        }

        impl $Name {
            /// The only or last page.
            #[doc = example!(
                concat!("let page = ", stringify!($Name), "::new(Vec::new());"),
                concat!("assert!(page.", stringify!($items), ".is_empty());"),
                "assert_eq!(page.next_cursor, None);"
            )]
            pub fn new($items: Vec<$Item>) -> Self {
                Self { $items, next_cursor: None, meta: None }
            }

            /// Sets the cursor of the next page.
            #[doc = example!(
                concat!("let page = ", stringify!($Name), r#"::default().next_cursor("page-2");"#),
                r##"assert!(Json::of(&page).get().ends_with(r#""nextCursor":"page-2"}"#));"##
            )]
            #[must_use]
            pub fn next_cursor(mut self, cursor: impl Into<String>) -> Self {
                self.next_cursor = Some(cursor.into());
                self
            }
        }
    )* };
}

list_results! {
    /// The answer to `tools/list`.
    ListToolsResult { tools: Tool =
        Tool::new("add", Json::empty_object())
        => r#"{"tools":[{"name":"add","inputSchema":{}}]}"# }
    /// The answer to `prompts/list`.
    ListPromptsResult { prompts: Prompt =
        Prompt::new("review")
        => r#"{"prompts":[{"name":"review"}]}"# }
    /// The answer to `resources/list`.
    ListResourcesResult { resources: Resource =
        Resource::new("file:///a", "a")
        => r#"{"resources":[{"uri":"file:///a","name":"a"}]}"# }
    /// The answer to `resources/templates/list`.
    ListResourceTemplatesResult { resource_templates: ResourceTemplate =
        ResourceTemplate::new("file:///{path}", "files")
        => r#"{"resourceTemplates":[{"uriTemplate":"file:///{path}","name":"files"}]}"# }
    /// The answer to `tasks/list`, which only 2025-11-25 has.
    ListTasksResult { tasks: Task =
        Task::new("t-1", "2025-11-25T12:00:00Z")
        => r#"{"tasks":[{"taskId":"t-1","status":"working","createdAt":"2025-11-25T12:00:00Z","lastUpdatedAt":"2025-11-25T12:00:00Z","ttlMs":null}]}"# }
    /// The answer to `skills/list`.
    ListSkillsResult { skills: Skill =
        Skill::new("skill://a/SKILL.md", Json::empty_object(), SkillFiles::Dynamic)
        => r#"{"skills":[{"uri":"skill://a/SKILL.md","frontmatter":{},"resources":"dynamic"}]}"# }
    /// The answer to `resources/directory/read`: the directory's direct children.
    ReadDirectoryResult { resources: Resource =
        Resource::new("skill://a/SKILL.md", "SKILL.md")
        => r#"{"resources":[{"uri":"skill://a/SKILL.md","name":"SKILL.md"}]}"# }
}
