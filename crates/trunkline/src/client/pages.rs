//! A list in pages → the whole list, within limits.

use serde::de::DeserializeOwned;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListTasksResult,
    ListToolsResult, Prompt, Resource, ResourceTemplate, Task, Tool,
};

use super::call::{Ask, Running};
use super::error::CallError;

/// One page of a list.
pub(super) trait Page: DeserializeOwned + Send + 'static {
    type Item: Send + 'static;

    /// Its items, and where the next page begins.
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! pages {
    ($($Page:ident { $items:ident: $Item:ident })*) => { $(
        impl Page for $Page {
            type Item = $Item;

            fn split(self) -> (Vec<$Item>, Option<String>) {
                (self.$items, self.next_cursor)
            }
        }
    )* };
}

pages! {
    ListToolsResult { tools: Tool }
    ListPromptsResult { prompts: Prompt }
    ListResourcesResult { resources: Resource }
    ListResourceTemplatesResult { resource_templates: ResourceTemplate }
    ListTasksResult { tasks: Task }
}

/// Follows a list to its end.
pub(super) fn follow<P: Page>(mut ask: Ask) -> Running<Vec<P::Item>> {
    Box::pin(async move {
        let method = ask.method;
        let (max_pages, max_items) =
            (ask.caller.shared.limits.list_pages, ask.caller.shared.limits.list_items);
        let mut all = Vec::new();
        let mut last: Option<String> = None;
        for _ in 0..max_pages {
            let (items, next) = ask.send_and_read::<P>().await?.split();
            all.extend(items);
            if all.len() > max_items {
                return Err(CallError::TooLong { method, limit: format!("{max_items} items") });
            }
            // The empty string is a cursor like any other.
            let Some(cursor) = next else { return Ok(all) };
            if last.as_ref() == Some(&cursor) {
                let why = format!("`{method}` gives the cursor `{cursor}` again and again.");
                return Err(CallError::Invalid(why));
            }
            if let Ok(params) = &mut ask.params {
                params.set("cursor", Json::string(&cursor));
            }
            last = Some(cursor);
        }
        Err(CallError::TooLong { method, limit: format!("{max_pages} pages") })
    })
}
