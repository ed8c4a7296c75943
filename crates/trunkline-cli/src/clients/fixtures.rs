//! A typical file of each client.

use serde_json::json;

use super::Client;
use super::edit::{Field, Fields};

/// The entry of a server that is put into a file.
pub(super) fn entry() -> Fields {
    Fields(vec![
        ("command".to_owned(), Field::One("t".into())),
        ("args".to_owned(), Field::One(json!(["a", "b"]))),
    ])
}

/// Arguments of a program, some of them secret, with these among them.
pub(super) fn secret_args(more: &[&'static str]) -> Vec<&'static str> {
    let first = ["-y", "@org/pkg@1.2.3", "--api-key", "hunter2", "--token=hunter2", "--port", "80"];
    let last = ["-e", "PIN_TOKEN=hunter2", "/users/a/some-long-folder-name-2026/x"];
    [&first, more, &last].concat()
}

/// The files, with the client whose they are.
pub(super) const ALL: [(Client, &str); 8] = [
    (Client::ClaudeDesktop, CLAUDE_DESKTOP),
    (Client::ClaudeCode, CLAUDE_CODE),
    (Client::Cursor, CURSOR),
    (Client::VsCode, VS_CODE),
    (Client::Windsurf, WINDSURF),
    (Client::Zed, ZED),
    (Client::Codex, CODEX),
    (Client::Gemini, GEMINI),
];

pub(super) const CLAUDE_DESKTOP: &str = r#"{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/users/a/$work"]
    }
  }
}
"#;

pub(super) const CLAUDE_CODE: &str = r#"{
  "numStartups": 12,
  "mcpServers": {
    "notion": {
      "type": "http",
      "url": "https://mcp.notion.example/mcp",
      "headers": { "Authorization": "Bearer ${NOTION_TOKEN:-none}" }
    }
  },
  "projects": {
    "/users/a/shop": {
      "allowedTools": [],
      "mcpServers": {
        "db": { "type": "stdio", "command": "./db.sh", "args": [], "env": { "DSN": "${DSN}" } }
      }
    },
    "/users/a/blog": { "mcpServers": {} }
  }
}
"#;

pub(super) const CURSOR: &str = "{\n\t\"mcpServers\": {\n\t\t\"search\": {\n\t\t\t\"url\": \"https://search.example/mcp\",\n\t\t\t\"headers\": {\"X-Api-Key\": \"${env:SEARCH_KEY}\"}\n\t\t},\n\t\t\"local\": {\"command\": \"${userHome}/bin/local\", \"envFile\": \".env\"}\n\t}\n}";

pub(super) const VS_CODE: &str = r#"{
    // Asked once, then kept.
    "inputs": [
        { "type": "promptString", "id": "github-token", "description": "Token", "password": true },
    ],
    "servers": {
        "github": {
            "type": "http",
            "url": "https://api.github.example/mcp/",
            "headers": { "Authorization": "Bearer ${input:github-token}" },
        },
        "tests": {
            "type": "stdio",
            "command": "node",
            "args": ["${workspaceFolder}/tools/server.js", "--port", 80],
            "env": { "LEVEL": "${env:LEVEL}" }
        }, // the team's
    },
}
"#;

pub(super) const WINDSURF: &str = r#"{"mcpServers":{"zap":{"serverUrl":"https://zap.example/mcp","headers":{"Authorization":"Bearer ${env:ZAP}"}},"git":{"command":"uvx","args":["mcp-server-git"],"disabled":true}}}"#;

pub(super) const ZED: &str = r#"// Zed settings
{
  "theme": "One Dark", /* dark */
  "context_servers": {
    "mine": {
      "source": "custom",
      "command": "mine-mcp",
      "args": ["--fast"],
      "env": {}
    },
    "old": {
      "command": { "path": "old-mcp", "args": ["a"], "env": { "B": "c" } },
    },
    "ext": { "source": "extension", "settings": { "key": "x" } },
    "far": { "url": "https://far.example/mcp", "enabled": false } // off
    // the end
  }
}
"#;

pub(super) const CODEX: &str = r#"model = "o3" # the big one

[mcp_servers.docs]
command = "npx"
args = [
  "-y", # yes
  "docs-mcp",
]
env = { "LEVEL" = "debug" }
env_vars = ["HOME", { name = "LANG", source = "local" }]
startup_timeout_sec = 20.5
enabled_tools = ["find"]

[mcp_servers.docs.tools.find]
approval_mode = "approve"

[mcp_servers]
figma = { url = "https://figma.example/mcp", bearer_token_env_var = "FIGMA", enabled = false }

[mcp_servers.far]
url = "https://far.example/mcp"
http_headers = { "X-Team" = "a$b" }

[mcp_servers.far.env_http_headers]
X-Key = "FAR_KEY"

# Ours.
[profiles.fast]
model = "o4-mini"
"#;

pub(super) const GEMINI: &str = r#"{
  "theme": "Dracula",
  "mcpServers": {
    "streamed": { "httpUrl": "http://localhost:3000/mcp", "timeout": 5000 },
    "sent": { "url": "http://localhost:8080/sse" },
    "py": {
      "command": "python",
      "args": ["-m", "srv"],
      "cwd": "./srv",
      "env": { "KEY": "$MY_KEY", "OTHER": "${OTHER}" },
      "includeTools": ["safe"],
      "excludeTools": ["danger"],
      "trust": true
    }
  }
}
"#;
