//! The pages of a list → the whole list, within limits.

use serde::de::DeserializeOwned;
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListTasksResult,
    ListToolsResult, Prompt, Resource, ResourceTemplate, Task, Tool,
};
use trunkline_wire::revision::Era;

use super::call::{Ask, Caller, Running};
use super::error::CallError;

/// One page of a list.
pub(super) trait Page: DeserializeOwned + Send + 'static {
    type Item: Send + 'static;

    /// Removes the items that must not be used.
    fn remove_rejected(&mut self, _caller: &Caller) {}

    /// Its items, and the cursor of the next page.
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! pages {
    ($($Page:ident { $items:ident: $Item:ident } $({ $($more:tt)* })?)*) => { $(
        impl Page for $Page {
            type Item = $Item;

            $($($more)*)?

            fn split(self) -> (Vec<$Item>, Option<String>) {
                (self.$items, self.next_cursor)
            }
        }
    )* };
}

pages! {
    ListToolsResult { tools: Tool } {
        fn remove_rejected(&mut self, caller: &Caller) {
            if caller.revision().era() == Era::Stateless {
                caller.shared.rejected.remove_rejected(&mut self.tools);
            }
            caller.shared.known.learn(&self.tools);
        }
    }
    ListPromptsResult { prompts: Prompt }
    ListResourcesResult { resources: Resource }
    ListResourceTemplatesResult { resource_templates: ResourceTemplate }
    ListTasksResult { tasks: Task }
}

/// One page of a list.
pub(super) fn one<P: Page>(mut ask: Ask) -> Running<P> {
    Box::pin(async move { page(&mut ask).await })
}

/// Fetches all pages of a list.
pub(super) fn follow<P: Page>(mut ask: Ask) -> Running<Vec<P::Item>> {
    Box::pin(async move {
        let method = ask.method;
        let (max_pages, max_items) =
            (ask.caller.shared.limits.list_pages, ask.caller.shared.limits.list_items);
        let mut all = Vec::new();
        let mut last: Option<String> = None;
        let mut some_kept = false;
        for _ in 0..max_pages {
            let (items, next) = match page::<P>(&mut ask).await {
                Ok(page) => page.split(),
                // A cached page led to one that no longer exists: fetch the list from its start.
                Err(CallError::Peer(error)) if some_kept && error.code == code::INVALID_PARAMS => {
                    (some_kept, last) = (false, None);
                    all.clear();
                    ask.is_fresh = true;
                    if let Ok(params) = &mut ask.params {
                        params.take("cursor");
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            some_kept |= ask.was_kept;
            all.extend(items);
            if all.len() > max_items {
                return Err(CallError::TooLong {
                    method: method.name(),
                    limit: format!("{max_items} items"),
                });
            }
            // An empty string is a valid cursor.
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
        Err(CallError::TooLong { method: method.name(), limit: format!("{max_pages} pages") })
    })
}

async fn page<P: Page>(ask: &mut Ask) -> Result<P, CallError> {
    let mut page = ask.send_and_read::<P>().await?;
    page.remove_rejected(&ask.caller);
    Ok(page)
}
