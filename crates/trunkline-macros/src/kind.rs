//! The kinds of entry that a function can be registered as.

use crate::options::TEXT;

/// The kinds of entry that a function can be registered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// The attribute's name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// The options that the attribute takes.
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "task",
                "resume",
                "asks",
                "timeout",
                "visible",
                "scopes",
            ],
            Self::Prompt => &["name", "title", "asks", "timeout", "visible", "scopes"],
            Self::Resource => {
                &[TEXT, "name", "title", "mime_type", "asks", "timeout", "visible", "scopes"]
            }
        }
    }

    /// Who reads the description, with a verb.
    pub(crate) fn reader(self) -> &'static str {
        match self {
            Self::Tool => "The model reads",
            Self::Prompt => "The user reads",
            Self::Resource => "Users and models read",
        }
    }
}
