//! What is found in a file of each client.

use super::super::mask::summary;
use super::super::{fixtures, places};
use super::*;
use crate::clients::Surroundings;

/// What is found in a file, one line for each server; notes stand below.
#[track_caller]
fn check(client: Client, project: Option<&str>, text: &str, expected: &str) {
    let project = project.map(PathBuf::from);
    let place = Place { client, path: "f".into(), project };
    let mut out = Vec::new();
    for found in read(&place, text).unwrap() {
        let project = found.project.map(|it| format!(" of {}", it.display()));
        let head = format!("{}{}", found.name, project.unwrap_or_default());
        match found.entry {
            Ok(entry) => {
                out.push(format!("{head} | {}", summary(&entry).join(" | ")));
                let times = [("start", entry.start_seconds), ("call", entry.call_seconds)];
                for (what, seconds) in times {
                    out.extend(seconds.map(|it| format!("  {what} {it} s")));
                }
                out.extend(entry.notes.iter().map(|it| format!("  {it}")));
            }
            Err(why) => out.push(format!("{head} ✗ {why}")),
        }
    }
    assert_eq!(out.join("\n"), expected);
}

#[test]
fn claude_desktop_has_no_variables() {
    check(
        Client::ClaudeDesktop,
        None,
        fixtures::CLAUDE_DESKTOP,
        "filesystem | command: npx -y @modelcontextprotocol/server-filesystem /users/a/$$work",
    );
}

#[test]
fn claude_code_has_servers_of_the_user_and_of_each_project() {
    check(
        Client::ClaudeCode,
        None,
        fixtures::CLAUDE_CODE,
        "notion | url: https://mcp.notion.example/mcp | headers: Authorization=*** | \
         fills in: ${NOTION_TOKEN}\n\
         db of /users/a/shop | command: ./db.sh | cwd: /users/a/shop | env: DSN=${DSN}",
    );
}

#[test]
fn cursor_names_the_environment_and_the_home_folder() {
    check(
        Client::Cursor,
        None,
        fixtures::CURSOR,
        "local | command: ${HOME}/bin/local\n  \
           `envFile` is not taken over: write its variables into `env`.\n\
         search | url: https://search.example/mcp | headers: X-Api-Key=${SEARCH_KEY}",
    );
}

#[test]
fn vs_code_asks_and_knows_its_folder() {
    check(
        Client::VsCode,
        Some("/users/a/shop"),
        fixtures::VS_CODE,
        "github of /users/a/shop | url: https://api.github.example/mcp/ | \
         headers: Authorization=Bearer ${GITHUB_TOKEN}\n  \
           The client asks for a value; set the variable `GITHUB_TOKEN`.\n\
         tests of /users/a/shop | command: node /users/a/shop/tools/server.js --port 80 | \
         cwd: /users/a/shop | env: LEVEL=${LEVEL}",
    );
    check(
        Client::VsCode,
        None,
        r#"{"servers": {"x": {"command": "${workspaceFolder}/x"}}}"#,
        "x ✗ It uses `${workspaceFolder}`, and this file is for no folder. Write the folder instead.",
    );
}

#[test]
fn windsurf_has_server_urls_and_switches() {
    check(
        Client::Windsurf,
        None,
        fixtures::WINDSURF,
        "git | command: uvx mcp-server-git | disabled: true\n\
         zap | url: https://zap.example/mcp | headers: Authorization=Bearer ${ZAP}",
    );
}

#[test]
fn zed_has_comments_two_shapes_and_extensions() {
    check(
        Client::Zed,
        None,
        fixtures::ZED,
        "ext ✗ It belongs to an extension of Zed, which alone knows how to start it.\n\
         far | url: https://far.example/mcp | disabled: true\n\
         mine | command: mine-mcp --fast\n\
         old | command: old-mcp a | env: B=***",
    );
}

#[test]
fn codex_has_tables_of_both_styles() {
    check(
        Client::Codex,
        None,
        fixtures::CODEX,
        "docs | command: npx -y docs-mcp | inherit: HOME, LANG | env: LEVEL=*** | exposeTools: find\n  \
           start 21 s\n\
         far | url: https://far.example/mcp | headers: X-Team=***, X-Key=${FAR_KEY}\n\
         figma | url: https://figma.example/mcp | headers: Authorization=Bearer ${FIGMA} | \
         disabled: true",
    );
}

#[test]
fn gemini_tells_its_transports_by_the_key() {
    check(
        Client::Gemini,
        Some("/p"),
        fixtures::GEMINI,
        "py of /p | command: python -m srv | cwd: /p/./srv | env: KEY=${MY_KEY}, OTHER=${OTHER} | \
         exposeTools: safe\n  \
           `excludeTools` is not taken over: name the tools you want in `exposeTools`.\n\
         sent of /p | sse: http://localhost:8080/sse\n\
         streamed of /p | url: http://localhost:3000/mcp\n  \
           call 5 s",
    );
}

#[test]
fn what_is_no_server_is_said_and_the_others_are_found() {
    check(
        Client::Cursor,
        None,
        r#"{"mcpServers": {
            "a": 1,
            "b": {"command": 5},
            "c": {"command": "x", "args": "y"},
            "d": {"command": "x", "env": {"A": [1]}},
            "e": {"command": "x", "url": "http://y"},
            "f": {"url": "ftp://y"},
            "g": {"command": ""},
            "z": {"command": "x", "env": {"PORT": 80, "ON": true}}}}"#,
        "a ✗ It is no object.\n\
         b ✗ Its command is no text.\n\
         c ✗ `args` is no list.\n\
         d ✗ `env.A` is no text.\n\
         e ✗ It has a command and a URL; one of them is wrong.\n\
         f ✗ Its URL is neither http nor https: `ftp://y`.\n\
         g ✗ Its command is empty.\n\
         z | command: x | env: ON=true, PORT=80",
    );
    check(Client::Cursor, None, "", "");
    check(Client::Cursor, None, "[]", "");
    check(Client::Codex, None, "", "");
}

#[test]
fn a_file_that_cannot_be_read_says_where() {
    let place = Place { client: Client::Cursor, path: "f".into(), project: None };
    let found = read(&place, "{\n  \"mcpServers\": {,}\n}").unwrap_err();
    assert_eq!((found.line, found.column), (2, 18));
    let place = Place { client: Client::Codex, path: "f".into(), project: None };
    assert_eq!(read(&place, "a = 1\nb = [\n").unwrap_err().line, 2);
}

#[test]
fn the_places_and_the_files_fit_together() {
    let at = Surroundings {
        home: "/users/a".into(),
        config: None,
        codex: None,
        project: "/p".into(),
        is_mac: false,
    };
    for (client, text) in fixtures::ALL {
        for place in places(client, &at) {
            assert!(!read(&place, text).unwrap().is_empty(), "{client:?}");
        }
    }
}
