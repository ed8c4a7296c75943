//! Which servers a client chose, and who listens for changes of them.

use std::sync::Arc;

use crate::catalog::plan::ServerPlan;

/// Which servers a client chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Selector {
    /// All servers that it may see.
    #[default]
    All,
    /// One server, under its own names.
    Server(String),
    /// Servers with one of these tags, and those without tags.
    Tags(Vec<String>),
    /// Servers without tags.
    Untagged,
}

impl Selector {
    /// Whether a server is selected.
    pub fn chooses(&self, plan: &ServerPlan) -> bool {
        match self {
            Self::All => true,
            Self::Server(name) => plan.name == *name,
            Self::Tags(tags) => overlap(&plan.tags, tags),
            Self::Untagged => plan.tags.is_empty(),
        }
    }
}

/// Whether the lists share a tag; a server without tags matches everything.
fn overlap(server: &[String], wanted: &[String]) -> bool {
    server.is_empty() || wanted.is_empty() || server.iter().any(|it| wanted.contains(it))
}

/// A listener's selector and identity.
pub(crate) struct ListenerInfo {
    pub(crate) selector: Selector,
    /// The principal's id.
    pub(crate) caller: Arc<str>,
    /// The id of its conversation.
    pub(crate) conversation: u64,
}
