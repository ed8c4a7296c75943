//! How much one has to write for the travel server and its client.

use std::path::PathBuf;
use std::process::Command;

#[test]
fn the_travel_server_takes_32_lines_and_its_client_18() {
    for (path, most) in [("travel/server.rs", 32), ("travel/client.rs", 18)] {
        let lines = code(path);
        let count = lines.len();
        assert!(count <= most, "{path} has {count} lines; at most {most} are allowed:\n{lines:#?}");
        println!("{path} has {count} lines of at most {most}");
    }
}

#[test]
fn neither_knows_of_eras_keys_or_schemas() {
    for path in ["travel/server.rs", "travel/client.rs"] {
        let text = code(path).join("\n");
        for word in
            ["Revision", "Era", "2024", "2025", "2026", "json!({\"type\"", ".key(", "Schema"]
        {
            assert!(!text.contains(word), "{path} has `{word}` in it");
        }
    }
}

/// The lines of an example as rustfmt writes them by default, without blank ones and comments.
fn code(path: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024", "--config", "use_small_heuristics=Default"]);
    let output = rustfmt.args(["--quiet", "--emit", "stdout"]).arg(&path).output();
    let output = output.unwrap_or_else(|error| {
        panic!("`rustfmt` cannot be run ({error}); `rustup component add rustfmt` installs it.")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let lines: Vec<_> = lines.map(str::to_owned).collect();
    assert!(lines.len() > 10, "rustfmt said only {lines:?}");
    lines
}
