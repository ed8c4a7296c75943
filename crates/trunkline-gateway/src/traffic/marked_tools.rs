//! Which schemas mark secrets, looked through once for each tool.

use std::sync::{Arc, Weak};

use trunkline_wire::json::Json;
use trunkline_wire::model::Tool;

/// Which tools have schemas that mark secrets. A tool is looked through once.
#[derive(Default)]
pub(super) struct MarkedTools(Vec<Option<(Weak<Tool>, bool)>>);

impl MarkedTools {
    pub(super) fn is_marked(&mut self, tool: &Arc<Tool>) -> bool {
        if self.0.is_empty() {
            self.0.resize_with(TOOLS, || None);
        }
        let address = Arc::as_ptr(tool) as usize;
        let slot = &mut self.0[(address >> 4) % TOOLS];
        // The weak reference keeps the address from being used again.
        if let Some((known, is_marked)) = slot
            && std::ptr::eq(known.as_ptr(), Arc::as_ptr(tool))
        {
            return *is_marked;
        }
        let found =
            is_marked(&tool.input_schema) || tool.output_schema.as_ref().is_some_and(is_marked);
        *slot = Some((Arc::downgrade(tool), found));
        found
    }
}

/// Whether a schema may mark a secret. A word that means something else costs time, no more.
pub(super) fn is_marked(schema: &Json) -> bool {
    schema.get().contains("writeOnly") || schema.get().contains("password")
}

/// The tools whose schemas are remembered to mark something or not.
const TOOLS: usize = 256;
