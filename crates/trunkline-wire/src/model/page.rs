//! Lists, a page at a time.

use serde::{Deserialize, Serialize};

use super::{Prompt, Resource, ResourceTemplate, Skill, Task, Tool};
use crate::json::Json;

/// The parameters of every list request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListParams {
    /// Where to go on; an empty string is a cursor too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl ListParams {
    /// The first page.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ListParams:
    /// Goes on from here.
    cursor(String);
}

macro_rules! list_results {
    ($($(#[$doc:meta])* $Name:ident { $items:ident: $Item:ty })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $Name {
            /// This page's items.
            pub $items: Vec<$Item>,
            /// Where the next page begins; none after the last.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<String>,
            /// Anything else.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Json>,
        }

        impl $Name {
            /// The only or last page.
            pub fn new($items: Vec<$Item>) -> Self {
                Self { $items, next_cursor: None, meta: None }
            }

            /// Says where the next page begins.
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
    ListToolsResult { tools: Tool }
    /// The answer to `prompts/list`.
    ListPromptsResult { prompts: Prompt }
    /// The answer to `resources/list`.
    ListResourcesResult { resources: Resource }
    /// The answer to `resources/templates/list`.
    ListResourceTemplatesResult { resource_templates: ResourceTemplate }
    /// The answer to `tasks/list`, which only 2025-11-25 has.
    ListTasksResult { tasks: Task }
    /// The answer to `skills/list`.
    ListSkillsResult { skills: Skill }
    /// The answer to `resources/directory/read`: the directory's direct children.
    ReadDirectoryResult { resources: Resource }
}
