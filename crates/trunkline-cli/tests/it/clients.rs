//! `import` and `connect`, in a home folder of their own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{Run, TRUNKLINE};

/// A home folder, and a project in it.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = place.join(format!("home-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("project")).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let mut command = Command::new(TRUNKLINE);
        command
            .args(args)
            .stdin(Stdio::null())
            .current_dir(self.path("project"))
            .env("HOME", &self.0);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "TRUNKLINE_CONFIG"] {
            command.env_remove(name);
        }
        command.env_remove("TRUNKLINE_STATE");
        let output = command.output().expect("the binary was built");
        let text = |bytes| String::from_utf8(bytes).expect("the binary prints UTF-8");
        let code = output.status.code().expect("no signal");
        Run { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The files in a folder that are backups.
    fn backups(&self, folder: &str) -> Vec<PathBuf> {
        let all = fs::read_dir(self.path(folder)).unwrap().map(|it| it.unwrap().path());
        let mut all: Vec<_> = all.filter(|it| it.to_str().unwrap().contains(".bak-")).collect();
        all.sort();
        all
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o777
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CURSOR: &str = r#"{
  "mcpServers": {
    "git": { "command": "git-mcp" },
    "time": { "command": "uvx", "args": ["t"], "env": { "API_KEY": "hunter2" } }
  }
}
"#;

/// Servers of three clients, two of which disagree.
fn three(name: &str) -> Home {
    let home = Home::new(name);
    home.write(".cursor/mcp.json", CURSOR);
    home.write(".codex/config.toml", "[mcp_servers.git]\ncommand = \"other\"\n");
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"git": {"command": "git-mcp"},
            "trunkline": {"command": "/x/trunkline", "args": ["serve", "--stdio"]}}}"#,
    );
    home
}

#[test]
fn an_import_is_shown_first_with_its_conflicts_and_without_secrets() {
    let home = three("preview");
    let found = home.run(&["import"]);
    found.says(
        0,
        &[
            "Cursor ~/.cursor/mcp.json\n",
            "+ git  new\n      command: git-mcp\n",
            "· trunkline  this gateway itself",
            "= git  the same as in Claude Code",
            "! git  differs from Claude Code",
            "command: git-mcp         | command: other",
            "env: API_KEY=***",
            "2 new, 0 replaced, 1 the same, 1 in conflict, 1 left out",
            "Nothing was written.",
        ],
    );
    assert!(!found.stdout.contains("hunter2"), "{}", found.stdout);
    assert!(!home.path("project/trunkline.yaml").exists());
    let found = home.run(&["import", "--write"]);
    assert_eq!(found.code, 2, "{}", found.stdout);
    assert!(found.stderr.contains("--rename"), "{}", found.stderr);
    assert!(!home.path("project/trunkline.yaml").exists());
}

#[test]
fn an_import_is_written_where_only_the_owner_reads_it_and_once() {
    let home = three("write");
    let found = home.run(&["import", "--write", "--skip"]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    let text = home.read("project/trunkline.yaml");
    assert_eq!(
        text,
        "mcpServers:\n  git:\n    command: git-mcp\n  time:\n    command: uvx\n    args: [t]\n    env:\n      API_KEY: hunter2\n"
    );
    assert_eq!(home.mode("project/trunkline.yaml"), 0o600);
    let again = home.run(&["import", "--write", "--skip"]);
    assert!(again.stdout.contains("There is nothing to add"), "{}", again.stdout);
    assert_eq!(home.read("project/trunkline.yaml"), text);
    assert!(home.backups("project").is_empty());
}

#[test]
fn an_import_goes_into_the_catalog_that_is_there() {
    let home = three("merge");
    let before =
        "# mine\nservers:\n  git: {command: mine} # keep\ngateway:\n  listen: 127.0.0.1:1\n";
    home.write("project/mine.yaml", before);
    let args = ["import", "--write", "--config", "mine.yaml"];
    let found = home.run(&[&args[..], &["--rename", "--secrets-as-env"]].concat());
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("Set these variables where the gateway runs: API_KEY."));
    let expected = "# mine\nservers:\n  git: {command: mine} # keep\n  git-claude-code:\n    command: git-mcp\n  git-cursor:\n    command: git-mcp\n  time:\n    command: uvx\n    args: [t]\n    env:\n      API_KEY: \"${API_KEY}\"\n  git-codex:\n    command: other\ngateway:\n  listen: 127.0.0.1:1\n";
    assert_eq!(home.read("project/mine.yaml"), expected);
    let backups = home.backups("project");
    assert_eq!(fs::read_to_string(&backups[0]).unwrap(), before);
    let found = home.run(&[&args[..], &["--replace", "--from", "codex"]].concat());
    assert_eq!(found.code, 0, "{}", found.stderr);
    let text = home.read("project/mine.yaml");
    assert!(text.contains("servers:\n  git:\n    command: other\n  git-claude"), "{text}");
}

/// Servers with secrets wherever secrets can be, and one that asks its user.
fn secrets(name: &str) -> Home {
    let home = Home::new(name);
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "crm": {"url": "https://me:hunter2a@crm.example/mcp?apiKey=hunter2b&team=5",
                    "headers": {"Authorization": "Bearer hunter2c"}},
            "db": {"command": "db-mcp", "args": ["--api-key", "hunter2d", "--token=hunter2e", "--port", "80"],
                   "env": {"API_KEY": "hunter2f", "OTHER": "${env:OTHER_KEY}"}}}}"#,
    );
    home
}

#[test]
fn an_import_with_variables_leaves_no_secret_and_names_every_variable() {
    let home = secrets("variables");
    let args = ["import", "--secrets-as-env", "--write"];
    let found = home.run(&args);
    assert_eq!(found.code, 0, "{}", found.stderr);
    let text = home.read("project/trunkline.yaml");
    assert!(!text.contains("hunter2"), "{text}");
    let names =
        "API_KEY, CRM_APIKEY, CRM_AUTHORIZATION, CRM_PASSWORD, DB_API_KEY, DB_TOKEN, OTHER_KEY";
    let expected = format!("Set these variables where the gateway runs: {names}.");
    assert!(found.stdout.contains(&expected), "{}", found.stdout);
    // Again, in either way: it is what was written.
    for args in [&args[..], &["import", "--write"]] {
        let again = home.run(args);
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert!(again.stdout.contains("2 the same, 0 in conflict"), "{}", again.stdout);
        assert_eq!(home.read("project/trunkline.yaml"), text);
    }
}

#[test]
fn an_import_puts_secrets_into_a_file_that_the_catalog_reads() {
    let home = secrets("secrets-file");
    home.write("project/trunkline.yaml", "gateway:\n  naming: flat\n");
    home.write("project/secrets.env", "# mine\nAPI_KEY=of another\n");
    let args = ["import", "--secrets-file", "secrets.env"];
    let shown = home.run(&args);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("would be in `~/project/secrets.env`: "), "{}", shown.stdout);
    assert!(!home.read("project/secrets.env").contains("hunter2"));
    let found = home.run(&[&args[..], &["--write"]].concat());
    assert_eq!(found.code, 0, "{}", found.stderr);
    let expected = "Set these variables where the gateway runs: OTHER_KEY.";
    assert!(found.stdout.contains(expected), "{}", found.stdout);
    assert_eq!(home.mode("project/secrets.env"), 0o600);
    let file = home.read("project/secrets.env");
    assert!(file.starts_with("# mine\nAPI_KEY=of another\n"), "{file}");
    assert!(file.contains("\nCRM_PASSWORD=hunter2a\n"), "{file}");
    assert_eq!(file.matches("hunter2").count(), 6, "{file}");
    let text = home.read("project/trunkline.yaml");
    assert!(text.starts_with("gateway:\n  envFile: secrets.env\n  naming: flat\n"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    // All that is missing is what nobody told us.
    let checked = home.run(&["check", "--json"]);
    assert!(checked.stdout.contains("OTHER_KEY"), "{}", checked.stdout);
    assert!(!checked.stdout.contains("CRM_") && !checked.stdout.contains("DB_"));
    let again = home.run(&[&args[..], &["--write"]].concat());
    assert!(again.stdout.contains("There is nothing to add"), "{}", again.stdout);
    assert_eq!(home.read("project/secrets.env"), file);
    let other = home.run(&["import", "--secrets-file", "other.env", "--write"]);
    assert_eq!(other.code, 2, "{}", other.stdout);
    assert!(other.stderr.contains("Name that file."), "{}", other.stderr);
}

#[test]
fn an_import_tells_programs_the_same() {
    let home = three("json");
    home.write("project/.vscode/mcp.json", "{ \"servers\": {");
    let found = home.run(&["import", "--json", "--from", "vscode,codex,cursor"]);
    let value: Value = serde_json::from_str(&found.stdout).unwrap();
    let rows: Vec<_> = value["servers"].as_array().unwrap().iter().collect();
    let words: Vec<_> =
        rows.iter().map(|it| (&it["client"], &it["name"], &it["verdict"])).collect();
    let expected =
        [("cursor", "git", "add"), ("cursor", "time", "add"), ("codex", "git", "conflict")];
    for (found, (client, name, verdict)) in words.iter().zip(expected) {
        assert_eq!(
            (found.0.as_str(), found.1.as_str(), found.2.as_str()),
            (Some(client), Some(name), Some(verdict))
        );
    }
    assert_eq!(words.len(), 3);
    assert!(value["unreadable"][0]["why"].as_str().unwrap().starts_with("line 1, column"));
    assert!(!found.stdout.contains("hunter2"));
    let found = home.run(&["import", "--from", "emacs"]);
    assert_eq!(found.code, 2);
    assert!(found.stderr.contains("claude-desktop"), "{}", found.stderr);
}

#[test]
fn a_client_is_connected_once_and_disconnected_to_the_byte() {
    for (client, name, text) in [
        ("cursor", ".cursor/mcp.json", CURSOR),
        ("zed", ".config/zed/settings.json", "// mine\n{\n  \"theme\": \"x\", // dark\n}\n"),
        ("codex", ".codex/config.toml", "model = \"o3\" # mine"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "{\"mcpServers\":{}}"),
    ] {
        let home = Home::new(&format!("connect-{client}"));
        home.write(name, text);
        home.write("project/trunkline.yaml", "mcpServers: {}\n");
        let folder = Path::new(name).parent().unwrap().to_str().unwrap();
        fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o640)).unwrap();
        let shown = home.run(&["connect", client]);
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        assert!(shown.stdout.contains("--stdio") && shown.stdout.contains("trunkline.yaml"));
        assert!(!shown.stdout.contains("hunter2"), "{}", shown.stdout);
        assert_eq!(home.read(name), text, "nothing is written unasked");
        let written = home.run(&["connect", client, "--write"]);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let with = home.read(name);
        assert!(with.contains("\"serve\""), "{with}");
        assert_eq!(home.mode(name), 0o640);
        let backups = home.backups(folder);
        assert_eq!(fs::read_to_string(&backups[0]).unwrap(), text);
        let again = home.run(&["connect", client, "--write"]);
        assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
        assert_eq!((home.read(name), home.backups(folder)), (with, backups));
        let back = home.run(&["connect", client, "--undo", "--write"]);
        assert_eq!(back.code, 0, "{}", back.stderr);
        assert_eq!(home.read(name), text);
        let again = home.run(&["connect", client, "--undo", "--write"]);
        assert!(again.stdout.contains("nothing to undo"), "{}", again.stdout);
    }
}

#[test]
fn originals_that_the_catalog_has_are_offered_to_be_taken_out() {
    let home = Home::new("connect-replace");
    let text = "{\n  \"mcpServers\": {\n    \"time\": { \"command\": \"uvx\" }, // mine\n    \"own\": { \"command\": \"x\" }\n  }\n}\n";
    home.write(".cursor/mcp.json", text);
    home.write("project/trunkline.yaml", "mcpServers: { time: { command: uvx } }\n");
    let offered = home.run(&["connect", "cursor"]);
    assert!(offered.stdout.contains("The catalog has `time` too"), "{}", offered.stdout);
    let done = home.run(&["connect", "cursor", "--replace", "--write"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!done.stdout.contains("--replace"), "{}", done.stdout);
    let now = home.read(".cursor/mcp.json");
    assert!(
        !now.contains("\"time\"") && now.contains("\"own\"") && now.contains("trunkline"),
        "{now}"
    );
    assert_eq!(home.run(&["connect", "cursor", "--undo", "--write"]).code, 0);
    assert_eq!(home.read(".cursor/mcp.json"), text, "and come back");
}

#[test]
fn a_link_is_followed_and_a_file_that_was_not_there_goes_again() {
    let home = Home::new("links");
    home.write("dotfiles/cursor.json", "{}\n");
    fs::create_dir_all(home.path(".cursor")).unwrap();
    symlink(home.path("dotfiles/cursor.json"), home.path(".cursor/mcp.json")).unwrap();
    assert_eq!(home.run(&["connect", "cursor", "--write", "--http"]).code, 0);
    assert!(fs::symlink_metadata(home.path(".cursor/mcp.json")).unwrap().is_symlink());
    assert!(home.read("dotfiles/cursor.json").contains("http://127.0.0.1:7373/mcp"));
    assert_eq!(home.run(&["connect", "gemini", "--write"]).code, 0);
    assert!(home.read(".gemini/settings.json").contains("--stdio"));
    assert_eq!(home.mode(".gemini/settings.json"), 0o600);
    assert_eq!(home.run(&["connect", "gemini", "--write", "--undo"]).code, 0);
    assert!(!home.path(".gemini/settings.json").exists());
}

#[test]
fn a_file_that_cannot_be_understood_is_not_touched() {
    let home = Home::new("broken");
    home.write(".cursor/mcp.json", "{\n  \"mcpServers\": oops\n}\n");
    let found = home.run(&["connect", "cursor", "--write"]);
    assert_eq!(found.code, 2);
    assert!(found.stderr.contains("mcp.json:2:17`"), "{}", found.stderr);
    assert_eq!(home.read(".cursor/mcp.json"), "{\n  \"mcpServers\": oops\n}\n");
    assert!(home.backups(".cursor").is_empty());
    let found = home.run(&["connect", "claude-desktop", "--http"]);
    assert_eq!(found.code, 2);
    assert!(found.stderr.contains("takes no URLs"), "{}", found.stderr);
}

#[test]
fn what_the_gateway_listens_at_is_what_a_client_gets() {
    let home = Home::new("listen");
    home.write(
        "project/trunkline.yaml",
        "mcpServers: {}\ngateway:\n  listen: 0.0.0.0:8000\n  tls: {certificate: c, key: k}\n  auth: {tokens: []}\n",
    );
    let found = home.run(&["connect", "vscode", "--http", "--project", "--write"]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("Authorization: Bearer"), "{}", found.stdout);
    let value: Value = serde_json::from_str(&home.read("project/.vscode/mcp.json")).unwrap();
    assert_eq!(value["servers"]["trunkline"]["url"], "https://127.0.0.1:8000/mcp");
    // It is not taken over into the catalog.
    let found = home.run(&["import"]);
    assert!(found.stdout.contains("this gateway itself"), "{}", found.stdout);
}
