//! Which servers a client chose, and who listens for changes of them.

use std::sync::Arc;

use crate::catalog::plan::ServerPlan;

/// Which servers a client chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Selector {
    /// All that it may see.
    #[default]
    All,
    /// One, by its own names.
    Server(String),
    /// Those with one of these tags, and those without tags.
    Tags(Vec<String>),
    /// Those without tags.
    Untagged,
}

impl Selector {
    /// Whether a server is among them.
    pub fn chooses(&self, plan: &ServerPlan) -> bool {
        match self {
            Self::All => true,
            Self::Server(name) => plan.name == *name,
            Self::Tags(tags) => overlap(&plan.tags, tags),
            Self::Untagged => plan.tags.is_empty(),
        }
    }
}

/// Whether one tag is in both; who has none goes with everything.
fn overlap(server: &[String], wanted: &[String]) -> bool {
    server.is_empty() || wanted.is_empty() || server.iter().any(|it| wanted.contains(it))
}

/// Where a listener sits.
pub(crate) struct ListenerInfo {
    pub(crate) selector: Selector,
    /// By what the client is told apart from others.
    pub(crate) caller: Arc<str>,
    /// What its conversation is called.
    pub(crate) conversation: u64,
}
