//! Other programs' configuration files ⇄ servers of ours. Texts in, texts out: the caller reads and
//! writes the files.
//!
//! Start with `read.rs` for what is found in them, and `write.rs` for what is added.

mod catalog;
mod edit;
mod entry;
#[cfg(test)]
mod fixtures;
mod import;
mod jsonc;
mod mask;
mod place;
mod read;
mod secrets;
mod tables;
mod variables;
mod write;
mod yaml;

pub(crate) use catalog::{Have, have, merged, with_env_file};
pub(crate) use entry::Entry;
pub(crate) use import::{Origin, Resolve, Row, Verdict, plan};
pub(crate) use jsonc::Unreadable;
pub(crate) use mask::{masked_line, summary};
pub(crate) use place::{Place, Surroundings, places};
pub(crate) use read::read;
pub(crate) use secrets::{Secrets, needed_variables};
pub(crate) use write::{NAME, Ours, connect, disconnect, is_connected, others, without};

/// A program that uses MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Windsurf,
    Zed,
    Codex,
    Gemini,
}

impl Client {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Zed,
        Self::Codex,
        Self::Gemini,
    ];

    /// Its name on a command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Its name for people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The client of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Whether its file supports URLs. Claude Desktop has them elsewhere, in the settings of the
    /// account.
    pub(crate) const fn takes_url(self) -> bool {
        !matches!(self, Self::ClaudeDesktop)
    }

    /// The member of its file that holds the servers.
    const fn container(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }
}
