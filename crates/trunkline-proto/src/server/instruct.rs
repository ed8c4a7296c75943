//! Who asks → what a model should know about the server, where that is not the same for everybody.

use std::fmt;
use std::sync::Arc;

use crate::Attached;

/// Works out the instructions for whoever opens a conversation. The core calls it for each
/// `initialize` and each `server/discover`, and for nothing else.
///
/// ```
/// # use trunkline_proto::{Attached, server::Instruct};
/// let by_name = Instruct::new(|caller: &Attached| {
///     caller.get::<&str>().map(|name| format!("Address the user as {name}."))
/// });
/// assert_eq!(by_name.for_caller(&Attached::new("Ann")).unwrap(), "Address the user as Ann.");
/// assert_eq!(by_name.for_caller(&Attached::default()), None);
/// ```
#[derive(Clone)]
pub struct Instruct(Arc<Work>);

type Work = dyn Fn(&Attached) -> Option<String> + Send + Sync;

impl Instruct {
    /// Instructions that `work` gives each caller.
    ///
    /// ```
    /// # use trunkline_proto::{Attached, server::Instruct};
    /// let same = Instruct::new(|_| Some("Ask before you book.".to_owned()));
    /// assert!(same.for_caller(&Attached::default()).is_some());
    /// ```
    pub fn new(work: impl Fn(&Attached) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    /// What this caller is told.
    ///
    /// ```
    /// # use trunkline_proto::{Attached, server::Instruct};
    /// assert_eq!(Instruct::new(|_| None).for_caller(&Attached::default()), None);
    /// ```
    pub fn for_caller(&self, caller: &Attached) -> Option<String> {
        (self.0)(caller)
    }
}

impl fmt::Debug for Instruct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Instruct")
    }
}
