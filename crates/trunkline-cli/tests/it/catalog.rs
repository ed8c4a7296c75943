//! `trunkline check` and `trunkline schema`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{Run, TRUNKLINE, run};

/// A file of this test, gone at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("trunkline-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A catalog, and what `check` says of it.
fn checked(name: &str, text: &str) -> (File, Run) {
    let file = File::new(name, text);
    let run = run(&["check", file.path()]);
    (file, run)
}

#[test]
fn a_good_catalog_is_told_to_be_good() {
    let text = "mcpServers: { b: { command: run }, a: { url: 'http://localhost/mcp', tgas: [x] } }";
    let (file, Run { code, stdout, stderr }) = checked("good.yaml", text);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout, format!("`{}` is good. It has 2 servers: a, b.\n", file.path()));
    assert!(stderr.starts_with("warning: ") && stderr.contains("Did you mean `tags`?"), "{stderr}");
    let json = run(&["check", file.path(), "--json"]);
    let found: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (json.code, &found["ok"], &found["faults"]),
        (0, &true.into(), &Value::Array(vec![]))
    );
    assert_eq!(found["servers"], serde_json::json!(["a", "b"]));
    assert_eq!(found["warnings"][0]["path"], "mcpServers.a.tgas");
}

#[test]
fn all_faults_of_a_catalog_are_told_with_their_places() {
    let text = "servers:\n  - name: a\n    cmd: [b]\n    maxConcurrent: 0\n  - name: a\n    strategy: sharded\n";
    let (file, Run { code, stdout, stderr }) = checked("bad.yaml", text);
    assert_eq!((code, stdout.as_str()), (2, ""));
    for expected in [
        ":4:20: servers[0].maxConcurrent: This must be a whole number, at least 1; it is `0`.\n  4 |     maxConcurrent: 0\n    |                    ^ ",
        ":5:5: servers[1]: There is neither a command nor a URL.",
        ":5:11: servers[1].name: There is a server `a` in line 2 already.",
        ":6:15: servers[1].strategy: `sharded` is none of ",
    ] {
        assert!(stderr.contains(&format!("{}{expected}", file.path())), "{expected}\n{stderr}");
    }
    let json = run(&["check", file.path(), "--json"]);
    let found: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.code, &found["ok"]), (2, &false.into()));
    let places: Vec<_> = found["faults"].as_array().unwrap().iter().map(|it| &it["line"]).collect();
    assert_eq!(places, [4, 5, 5, 6]);
}

#[test]
fn a_catalog_that_is_not_there_is_told() {
    let missing = run(&["check", "/nowhere/at-all.yaml"]);
    assert_eq!(missing.code, 2);
    let expected = "error: /nowhere/at-all.yaml:1:1: The file cannot be read: No such file";
    assert!(missing.stderr.starts_with(expected), "{}", missing.stderr);
    let mut command = Command::new(TRUNKLINE);
    command.arg("check").current_dir("/").stdin(Stdio::null()).env_remove("TRUNKLINE_CONFIG");
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("There is no `trunkline.yaml` here."), "{stderr}");
}

#[test]
fn the_environment_names_the_catalog_and_fills_it_in() {
    let file =
        File::new("env.yaml", "mcpServers: { a: { command: b, minReady: \"${CHECK_NUMBER}\" } }");
    let mut command = Command::new(TRUNKLINE);
    command.arg("check").stdin(Stdio::null()).env("TRUNKLINE_CONFIG", file.path());
    let output = command.env_remove("CHECK_NUMBER").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("The variable `CHECK_NUMBER` is not set."), "{stderr}");
    let output = command.env("CHECK_NUMBER", "3").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_schema_is_json_schema() {
    let Run { code, stdout, stderr } = run(&["schema"]);
    assert_eq!(code, 0, "{stderr}");
    let schema: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["$defs"]["server"]["properties"]["maxConcurrent"].is_object());
}

/// What `check` says of a shipped catalog for several gateways, whose key is in a file that deployments mount.
fn shipped(name: &str, text: &str, key_at: &str) -> Run {
    let key = File::new(&format!("{name}.key"), &"0f".repeat(32));
    assert!(text.contains(key_at), "{text}");
    let file = File::new(name, &text.replace(key_at, key.path()));
    let mut command = Command::new(TRUNKLINE);
    command.args(["check", file.path()]).stdin(Stdio::null());
    command.envs([("ALICE", "a-token-that-is-long"), ("HOSTNAME", "a1b2c3")]);
    command.envs([("POD_IP", "10.0.0.7"), ("STORE", "redis://:secret@valkey:6379")]);
    Run::of(command)
}

#[test]
fn the_catalogs_that_are_shipped_for_several_gateways_are_good() {
    let compose = include_str!("../../../../packaging/replicas/trunkline.yaml");
    let run = shipped("compose.yaml", compose, "/run/secrets/replicas.key");
    run.says(0, &[]);

    let manifests = include_str!("../../../../packaging/replicas/kubernetes.yaml");
    let (_, catalog) = manifests.split_once("  trunkline.yaml: |\n").expect("the ConfigMap has it");
    let lines = catalog.lines().take_while(|it| *it != "---");
    let catalog: String = lines.map(|it| format!("{}\n", it.get(4..).unwrap_or(""))).collect();
    let run = shipped("kubernetes.yaml", &catalog, "/etc/trunkline-secrets/replicas.key");
    run.says(0, &[]);
}
