//! A client → the paths of its files.
//!
//! | client | documented by its makers | otherwise known |
//! |---|---|---|
//! | Claude Desktop | macOS: `~/Library/Application Support/Claude/claude_desktop_config.json` | Linux builds: `$XDG_CONFIG_HOME/Claude/…` |
//! | Claude Code | `~/.claude.json` (user, and each project's own), `.mcp.json` | |
//! | Cursor | `~/.cursor/mcp.json`, `.cursor/mcp.json` | |
//! | VS Code | `.vscode/mcp.json`, and `mcp.json` “in the user profile” | where the profile is: `Code/User` in the system's folder for settings |
//! | Windsurf | `~/.codeium/windsurf/mcp_config.json` | |
//! | Zed | `~/.config/zed/settings.json`, on Linux `$XDG_CONFIG_HOME/zed/…`, `.zed/settings.json` | |
//! | Codex | `~/.codex/config.toml` (`$CODEX_HOME`), `.codex/config.toml` | |
//! | Gemini | `~/.gemini/settings.json`, `.gemini/settings.json` | |

use std::path::PathBuf;

use super::Client;

/// The environment that determines the paths.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// The home folder.
    pub(crate) home: PathBuf,
    /// `$XDG_CONFIG_HOME`, if it is set.
    pub(crate) config: Option<PathBuf>,
    /// `$CODEX_HOME`, if it is set.
    pub(crate) codex: Option<PathBuf>,
    /// The folder of the project.
    pub(crate) project: PathBuf,
    /// Whether this is macOS.
    pub(crate) is_mac: bool,
}

/// A file of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Whose it is.
    pub(crate) client: Client,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The project that it is for; `None` if it is the user's.
    pub(crate) project: Option<PathBuf>,
}

/// The files that a client reads, the user's first.
pub(crate) fn places(client: Client, at: &Surroundings) -> Vec<Place> {
    let library = at.home.join("Library/Application Support");
    let config = at.config.clone().unwrap_or_else(|| at.home.join(".config"));
    let settings = if at.is_mac { library } else { config.clone() };
    let (user, project) = match client {
        Client::ClaudeDesktop => (settings.join("Claude/claude_desktop_config.json"), None),
        Client::ClaudeCode => (at.home.join(".claude.json"), Some(".mcp.json")),
        Client::Cursor => (at.home.join(".cursor/mcp.json"), Some(".cursor/mcp.json")),
        Client::VsCode => (settings.join("Code/User/mcp.json"), Some(".vscode/mcp.json")),
        Client::Windsurf => (at.home.join(".codeium/windsurf/mcp_config.json"), None),
        Client::Zed => {
            let folder = if at.is_mac { at.home.join(".config") } else { config };
            (folder.join("zed/settings.json"), Some(".zed/settings.json"))
        }
        Client::Codex => {
            let folder = at.codex.clone().unwrap_or_else(|| at.home.join(".codex"));
            (folder.join("config.toml"), Some(".codex/config.toml"))
        }
        Client::Gemini => (at.home.join(".gemini/settings.json"), Some(".gemini/settings.json")),
    };
    let mut all = vec![Place { client, path: user, project: None }];
    if let Some(path) = project.map(|it| at.project.join(it))
        // In the home folder, both are the same file.
        && path != all[0].path
    {
        all.push(Place { client, path, project: Some(at.project.clone()) });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_place() {
        let linux = Surroundings {
            home: "/users/a".into(),
            config: None,
            codex: None,
            project: "/p".into(),
            is_mac: false,
        };
        let mac = Surroundings { home: "/Users/a".into(), is_mac: true, ..linux.clone() };
        let moved = Surroundings {
            config: Some("/c".into()),
            codex: Some("/x".into()),
            project: "/users/a".into(),
            ..linux.clone()
        };
        let texts = |at: &Surroundings| {
            let all = Client::ALL.into_iter().flat_map(|it| places(it, at));
            all.map(|it| it.path.to_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            texts(&linux),
            "/users/a/.config/Claude/claude_desktop_config.json
/users/a/.claude.json
/p/.mcp.json
/users/a/.cursor/mcp.json
/p/.cursor/mcp.json
/users/a/.config/Code/User/mcp.json
/p/.vscode/mcp.json
/users/a/.codeium/windsurf/mcp_config.json
/users/a/.config/zed/settings.json
/p/.zed/settings.json
/users/a/.codex/config.toml
/p/.codex/config.toml
/users/a/.gemini/settings.json
/p/.gemini/settings.json"
        );
        let found = texts(&mac);
        for path in [
            "/Users/a/Library/Application Support/Claude/claude_desktop_config.json",
            "/Users/a/Library/Application Support/Code/User/mcp.json",
            "/Users/a/.config/zed/settings.json",
        ] {
            assert!(found.contains(path), "{found}");
        }
        let found = texts(&moved);
        for path in ["/c/Claude/", "/c/Code/User/mcp.json", "/c/zed/", "/x/config.toml"] {
            assert!(found.contains(path), "{found}");
        }
        assert_eq!(found.matches(".cursor/mcp.json").count(), 1, "{found}");
    }
}
