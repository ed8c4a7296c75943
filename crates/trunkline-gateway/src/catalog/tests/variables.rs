//! `gateway.envFile`.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::catalog::Process;
use crate::catalog::plan::Reach;

fn env_of_a(loaded: &Loaded) -> Vec<(String, String)> {
    match &loaded.plan.servers["a"].reach {
        Reach::Stdio { env, .. } => env.clone(),
        reach => panic!("{reach:?}"),
    }
}

#[test]
fn variables_come_from_the_file_where_the_environment_has_none() {
    let text = "mcpServers: { a: { command: b, env: { X: \"${FILED}\", Y: \"${TOKEN}\" } } }\n\
                gateway: { envFile: ./variables }\n";
    let loaded = loaded(text).unwrap_or_else(|faults| panic!("{faults}"));
    let expected = [("X", "hunter3"), ("Y", "hunter2-hunter2-hunter2")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(env_of_a(&loaded), expected);
}

#[test]
fn a_file_that_cannot_be_used_stops_the_start_and_shows_nothing_of_it() {
    for (file, expected) in [
        ("none", "gateway.envFile: The file cannot be read: no such file."),
        ("bad-variables", "gateway.envFile: Line 2 of the file is no `NAME=value`."),
    ] {
        let text = format!("mcpServers: {{}}\ngateway: {{ envFile: {file} }}\n");
        let faults = loaded(&text).unwrap_err();
        assert!(faults.to_string().contains(expected), "{faults}");
        assert!(!faults.to_string().contains("hunter2"), "{faults}");
        assert!(faults.rest.is_none());
    }
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let folder = std::env::temp_dir().join(format!("trunkline-variables-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("secrets.env");
    std::fs::write(&file, "KEY=hunter2\n").unwrap();
    let text = "mcpServers: { a: { command: b, env: { X: \"${KEY}\" } } }\n\
                gateway: { envFile: secrets.env }\n";
    let load = || load(text, &folder.join("trunkline.yaml"), &Process);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let faults = load().unwrap_err().to_string();
    assert!(faults.contains("others can read it (its mode is 0640; it must be 0600)"), "{faults}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let found = load().map(|it| env_of_a(&it));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found.unwrap(), [("X".to_owned(), "hunter2".to_owned())]);
}
