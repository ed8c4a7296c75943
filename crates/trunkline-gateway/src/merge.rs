//! Merges the lists of many servers into what one client sees, and maps shown names back to servers.
//!
//! `lists` holds what one server offers, `names` decides shown names, `index` answers lists and lookups,
//! `offer` says which tools can be tasks, `cursors` where a page ended.

pub mod cursors;
pub mod index;
pub mod lists;
pub mod names;

mod adapt;
#[cfg(test)]
pub(crate) mod fixture;
mod missing;
mod offer;

pub use cursors::{BadCursor, Cursor};
pub use index::{Index, Item, Look, Page, Target};
pub(crate) use lists::cut;
pub use lists::{Draft, Lists};

pub(crate) use missing::{META as MISSING, Missing};
pub(crate) use offer::Offer;
use trunkline_proto::Change;
use trunkline_wire::method::Method;

/// The kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Kind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Kind {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The method that lists it.
    pub const fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourcesTemplatesList,
        }
    }

    /// The change that clients are notified of.
    pub(crate) fn change(self) -> Change {
        match self {
            Self::Tools => Change::Tools,
            Self::Prompts => Change::Prompts,
            Self::Resources | Self::Templates => Change::Resources,
        }
    }

    /// What a method lists, if it lists any of these.
    pub fn of_method(method: Method) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.method() == method)
    }

    /// The member of the result that holds the items.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The notification that announces a change.
    pub const fn changed(self) -> Method {
        match self {
            Self::Tools => Method::ToolsListChanged,
            Self::Prompts => Method::PromptsListChanged,
            Self::Resources | Self::Templates => Method::ResourcesListChanged,
        }
    }
}
