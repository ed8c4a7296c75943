//! Which schemas mark secrets, looked through once for each tool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use trunkline_wire::json::Json;
use trunkline_wire::model::Tool;

/// Which tools have schemas that mark secrets. A tool is looked through once.
#[derive(Default)]
pub(super) struct MarkedTools {
    known: Mutex<Vec<Option<Known>>>,
    /// The address of the last tool that marks nothing, which is among the known.
    plain: AtomicUsize,
}

/// A tool, and whether it marks something.
type Known = (Weak<Tool>, bool);

impl MarkedTools {
    #[inline(always)]
    pub(super) fn is_marked(&self, tool: &Arc<Tool>) -> bool {
        let address = Arc::as_ptr(tool) as usize;
        self.plain.load(Ordering::Acquire) != address && self.is_known_as_marked(tool, address)
    }

    #[cold]
    fn is_known_as_marked(&self, tool: &Arc<Tool>, address: usize) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            known.resize_with(TOOLS, || None);
        }
        let slot = &mut known[(address >> 4) % TOOLS];
        // The weak reference keeps the address from being used again.
        let found = match slot {
            Some((known, found)) if std::ptr::eq(known.as_ptr(), Arc::as_ptr(tool)) => *found,
            _ => {
                // Before the tool that was known here is let go, and another may get its address.
                self.plain.store(0, Ordering::Release);
                let found = is_marked(&tool.input_schema)
                    || tool.output_schema.as_ref().is_some_and(is_marked);
                *slot = Some((Arc::downgrade(tool), found));
                found
            }
        };
        if !found {
            self.plain.store(address, Ordering::Release);
        }
        found
    }
}

/// Whether a schema may mark a secret. A word that means something else costs time, no more.
pub(super) fn is_marked(schema: &Json) -> bool {
    schema.get().contains("writeOnly") || schema.get().contains("password")
}

/// The tools whose schemas are remembered to mark something or not.
const TOOLS: usize = 256;
