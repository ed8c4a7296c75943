//! How much code the travel server and its client need.

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

#[test]
fn the_readme_shows_both_as_they_are() {
    let readme = file("../README.md");
    for path in ["travel/server.rs", "travel/client.rs"] {
        let (text, place) = (file(path), path.replace('/', "-"));
        let code = text.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
        let code: Vec<_> = code.collect();
        let code = code.join("\n");
        let block = format!("```rust,no_run\n// src/bin/{place}\n{code}\n```\n");
        assert!(readme.contains(&block), "README.md does not have {path} as it is now");
    }
}

/// Its tests are left out where snippets are compiled, so it is the example's.
#[test]
fn the_guide_shows_a_test_that_runs() {
    let guide = file("../docs/guide/testing.md");
    let snippet = guide.split("```").find(|it| it.starts_with("rust\nuse")).unwrap();
    let snippet = snippet.trim_start_matches("rust\n");
    assert!(snippet.contains("#[trunkline::test]"), "{snippet}");
    assert!(file("testing/main.rs").contains(snippet), "examples/testing/main.rs is another");
}

#[test]
fn the_list_of_examples_has_them_all() {
    let list = file("README.md");
    let manifest = file("Cargo.toml");
    let paths = manifest.lines().filter_map(|line| line.strip_prefix("path = \""));
    let paths: Vec<_> =
        paths.map(|it| it.trim_end_matches('"')).filter(|it| it.contains('/')).collect();
    assert!(paths.len() >= 12, "{paths:?}");
    for path in paths {
        assert!(list.contains(&format!("({path})")), "examples/README.md does not list {path}");
    }
}

fn file(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
