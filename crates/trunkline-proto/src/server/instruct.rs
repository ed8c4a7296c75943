//! A caller → the instructions for its model, where they differ per caller.

use std::fmt;
use std::sync::Arc;

use crate::Attached;

/// Computes the instructions for a caller. The core calls it for each `initialize` and each
/// `server/discover` only.
#[derive(Clone)]
pub struct Instruct(Arc<Work>);

type Work = dyn Fn(&Attached) -> Option<String> + Send + Sync;

impl Instruct {
    /// Instructions that `work` computes for each caller.
    pub fn new(work: impl Fn(&Attached) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    /// The instructions for this caller.
    pub fn for_caller(&self, caller: &Attached) -> Option<String> {
        (self.0)(caller)
    }
}

impl fmt::Debug for Instruct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Instruct")
    }
}
