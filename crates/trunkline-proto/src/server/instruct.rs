//! Who asks → what a model should know about the server, where that is not the same for everybody.

use std::fmt;
use std::sync::Arc;

use crate::Attached;

/// Works out the instructions for whoever opens a conversation. The core calls it for each
/// `initialize` and each `server/discover`, and for nothing else.
#[derive(Clone)]
pub struct Instruct(Arc<Work>);

type Work = dyn Fn(&Attached) -> Option<String> + Send + Sync;

impl Instruct {
    /// Instructions that `work` gives each caller.
    pub fn new(work: impl Fn(&Attached) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    /// What this caller is told.
    pub fn for_caller(&self, caller: &Attached) -> Option<String> {
        (self.0)(caller)
    }
}

impl fmt::Debug for Instruct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Instruct")
    }
}
