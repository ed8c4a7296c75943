//! Lists of tools → what is known of each tool without asking again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_wire::model::{Tool, ToolAnnotations};

/// What the last lists say about each tool.
#[derive(Default)]
pub(super) struct Known(Mutex<BTreeMap<String, ToolAnnotations>>);

impl Known {
    /// Takes in what a list says.
    pub(super) fn learn(&self, tools: &[Tool]) {
        let mut known = self.lock();
        for tool in tools {
            let annotations = tool.annotations.clone().unwrap_or_default();
            if known.len() < MOST || known.contains_key(&tool.name) {
                known.insert(tool.name.clone(), annotations);
            }
        }
    }

    pub(super) fn annotations(&self, tool: &str) -> Option<ToolAnnotations> {
        self.lock().get(tool).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ToolAnnotations>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tools that are remembered; those beyond are unknown.
const MOST: usize = 10_000;
