//! The console's page: libraries of npm into `web/vendor`; types, formatting and tests checked.

use crate::{peers, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes what is generated and formats the rest; with `--check` nothing is written, and what is stale is an error.
pub fn run(args: &[String]) -> Result<(), String> {
    let may_write = match args {
        [] => true,
        [flag] if flag == "--check" => false,
        _ => return Err("`web` takes `--check` or nothing.".to_owned()),
    };
    peers::npm()?;
    let mut stale = Vec::new();
    for (path, text) in vendored()? {
        stale.extend(put(&folder().join("web/vendor").join(path), &text, may_write)?);
    }
    if !stale.is_empty() {
        return Err(format!("`cargo xtask web` has to be run: {} differ.", stale.join(", ")));
    }
    let how = if may_write { "--write" } else { "--check" };
    run::run(node("prettier/bin/prettier.cjs").args(["--log-level", "warn", how, "web", "tests"]))?;
    run::run(node("typescript/bin/tsc").args(["--project", "tsconfig.json"]))?;
    run::run(
        Command::new("node")
            .args(["--test", "--test-reporter", "dot", "tests/"])
            .current_dir(folder()),
    )
}

/// The libraries as the page imports them, with their licences.
fn vendored() -> Result<Vec<(&'static str, String)>, String> {
    let mut files = Vec::new();
    for (from, to) in LIBRARIES {
        let text = package_file(from)?;
        let lines = text.lines().filter(|line| !line.starts_with("//# sourceMappingURL"));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        // Browsers resolve no bare names, and a map of them would have to be an inline script.
        let text = text.replace("from\"preact\"", "from\"./preact.js\"");
        // A script that names one variable; only as a module can others import it.
        let export = if *to == "uplot.js" { "export default uPlot;\n" } else { "" };
        files.push((*to, text + export));
    }
    let mut licences = String::new();
    for name in PACKAGES {
        let package: serde_json::Value =
            serde_json::from_str(&package_file(&format!("{name}/package.json"))?)
                .map_err(|error| format!("The manifest of `{name}` is no JSON: {error}."))?;
        let version = package["version"].as_str().unwrap_or_default();
        let licence = package_file(&format!("{name}/LICENSE"))?;
        licences.push_str(&format!("{name} {version}\n\n{}\n\n", licence.trim()));
    }
    files.push(("licences.txt", licences));
    Ok(files)
}

/// Writes a file, or says that it is stale.
fn put(path: &Path, text: &str, may_write: bool) -> Result<Option<String>, String> {
    if std::fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(None);
    }
    let shown = path.strip_prefix(run::root()).unwrap_or(path).display();
    if !may_write {
        return Ok(Some(format!("`{shown}`")));
    }
    println!("wrote {shown}");
    std::fs::write(path, text).map_err(|error| format!("Cannot write `{shown}`: {error}."))?;
    Ok(None)
}

/// A script of an npm package, run in the console's folder.
fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(peers::folder().join("node_modules").join(script)).current_dir(folder());
    command
}

fn package_file(path: &str) -> Result<String, String> {
    run::file(&format!("peers/node_modules/{path}"))
}

fn folder() -> PathBuf {
    run::root().join("crates/trunkline-console")
}

/// The libraries that the page loads: the file in its package, and its name in `web/vendor`.
const LIBRARIES: &[(&str, &str)] = &[
    ("htm/dist/htm.module.js", "htm.js"),
    ("preact/dist/preact.mjs", "preact.js"),
    ("preact/hooks/dist/hooks.mjs", "hooks.js"),
    ("uplot/dist/uPlot.iife.min.js", "uplot.js"),
    ("uplot/dist/uPlot.min.css", "uplot.css"),
];
/// The npm packages that they are from.
pub const PACKAGES: &[&str] = &["htm", "preact", "uplot"];
