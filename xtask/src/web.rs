//! The console's page: libraries of npm into `web/vendor`, its files into the list that is embedded; types, formatting,
//! tests and weight checked.

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
    stale.extend(put(&folder().join("src/files.rs"), &list(&embedded()?), may_write)?);
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
    )?;
    weigh()
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

/// The files that a browser may ask for, relative to the folder `web`.
fn embedded() -> Result<Vec<String>, String> {
    let web = folder().join("web");
    let mut found = Vec::new();
    let mut folders = vec![web.clone()];
    while let Some(folder) = folders.pop() {
        let cannot = |error| format!("Cannot read `{}`: {error}.", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let is_served = path
                .extension()
                .is_some_and(|it| SERVED.iter().any(|known| it.eq_ignore_ascii_case(known)));
            if path.is_dir() {
                folders.push(path);
            } else if is_served {
                let path = path.strip_prefix(&web).expect("it was found below `web`");
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn list(files: &[String]) -> String {
    let mut text = HEAD.to_owned();
    for file in files {
        text.push_str(&format!("    (\"/web/{file}\", include_bytes!(\"../web/{file}\")),\n"));
    }
    text + "];\n"
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

/// What a browser would load if everything were compressed.
fn weigh() -> Result<(), String> {
    let script = "const z=require('zlib'),f=require('fs');let n=0;for(const p of process.argv.slice(1))\
                  n+=z.gzipSync(f.readFileSync(p)).length;console.log(n)";
    let files = embedded()?;
    let mut node = Command::new("node");
    node.args(["-e", script]).args(&files).current_dir(folder().join("web"));
    let bytes: usize = run::read(&mut node)?
        .trim()
        .parse()
        .map_err(|_| "The weight of the page is no number.".to_owned())?;
    println!("{} files, {bytes} bytes compressed (at most {HEAVIEST})", files.len());
    if bytes <= HEAVIEST {
        return Ok(());
    }
    Err(format!("The page weighs {bytes} bytes compressed; at most {HEAVIEST} are allowed."))
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
const SERVED: &[&str] = &["css", "html", "js", "svg", "txt"];
const HEAVIEST: usize = 150_000;
const HEAD: &str = "\
//! The files of the page. `cargo xtask web` writes this list.
// tidy: table

/// The path of each, and its content.
#[rustfmt::skip]
pub(crate) const FILES: &[(&str, &[u8])] = &[
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_each_file_with_its_content() {
        let list = list(&["a.js".to_owned(), "b/c.css".to_owned()]);
        assert!(list.contains("(\"/web/a.js\", include_bytes!(\"../web/a.js\")),"), "{list}");
        assert!(list.contains("(\"/web/b/c.css\", include_bytes!(\"../web/b/c.css\")),"), "{list}");
        assert!(list.ends_with("];\n"), "{list}");
    }

    #[test]
    fn what_is_embedded_is_what_browsers_ask_for() {
        let files = embedded().expect("the folder can be read");
        assert!(
            files.iter().any(|it| it == "index.html")
                && files.iter().any(|it| it == "vendor/preact.js")
        );
        assert!(!files.iter().any(|it| it.ends_with(".d.ts")), "{files:?}");
    }
}
