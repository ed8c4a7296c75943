//! The repository's files into one sentence per rule they break.

use crate::{cycles, edges, layers, run, trace};
use std::collections::BTreeSet;
use std::process::Command;

/// Checks every rule; the error names each breach.
pub fn run(args: &[String]) -> Result<(), String> {
    if let Some(extra) = args.first() {
        return Err(format!("`tidy` takes no arguments, but was given `{extra}`."));
    }
    let crates = edges::crates()?;
    let files = files()?;
    // Without the file there is no table, which is a breach like any other.
    let architecture = run::file("ARCHITECTURE.md").unwrap_or_default();
    let mut wrong = edges::compare(&crates, &architecture);
    let read = |path: &str| run::file(path).ok();
    wrong.extend(layers::compare(&cycles::Graph::of(layers::ROOT, &read), &architecture));

    for krate in &crates {
        // Examples are for people to read: their manifest closes the door for all of them.
        if krate.name == EXAMPLES {
            let manifest = run::file("examples/Cargo.toml")?;
            let is_closed = manifest.lines().any(|line| line.trim() == CLOSED);
            wrong.extend((!is_closed).then(|| format!("examples/Cargo.toml lacks `{CLOSED}`.")));
            continue;
        }
        for root in &krate.roots {
            wrong.extend(root_attribute(&krate.name, root, &run::file(root)?));
        }
        wrong.extend(cycles::check(&krate.roots, &read));
    }
    let mut lines = 0;
    for (path, text) in &files {
        if path.ends_with(".rs") {
            lines += text.lines().count();
            wrong.extend(length(path, text));
            wrong.extend(words(path, text));
        }
        wrong.extend(places(path, text));
    }

    wrong.extend(trace::check(&run::file(trace::TRACE).unwrap_or_default(), &files));

    for name in ["trunkline-wire", "trunkline-proto", "trunkline-recording"] {
        if tree(&["-p", name])?.iter().any(|line| line.starts_with("tokio ")) {
            wrong.push(format!("`{name}` reaches tokio; see `cargo tree -p {name} -i tokio`."));
        }
    }
    for (what, features, most) in WEIGHTS {
        let pulled =
            tree(&["-p", "trunkline", "--no-default-features", "--features", features])?.len();
        println!("a server with {what} pulls in {pulled} crates (at most {most})");
        if pulled > most {
            wrong.push(format!(
                "A server with {what} pulls in {pulled} crates; at most {most} are allowed."
            ));
        }
    }

    if wrong.is_empty() {
        println!("{} crates, {} files, {lines} lines of Rust are tidy", crates.len(), files.len());
        return Ok(());
    }
    for sentence in &wrong {
        println!("{sentence}");
    }
    Err(format!("`tidy` found {} breaches, listed above.", wrong.len()))
}

/// Every text file that is tracked or about to be: path and content.
pub fn files() -> Result<Vec<(String, String)>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let paths = run::read(git.current_dir(run::root()))?;
    let mut files = Vec::new();
    for path in paths.split('\0').filter(|path| !path.is_empty()) {
        // A file deleted in the work tree is listed still; one that is not UTF-8 holds no text.
        let Ok(bytes) = std::fs::read(run::root().join(path)) else { continue };
        if let Ok(text) = String::from_utf8(bytes) {
            files.push((path.to_owned(), text));
        }
    }
    Ok(files)
}

/// The crates that cargo would build, each once.
fn tree(selection: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut tree = run::cargo(["tree", "--edges", "normal", "--prefix", "none"]);
    let text = run::read(tree.args(selection))?;
    let crates = text.lines().filter(|line| !line.is_empty());
    Ok(crates.map(|line| line.split(" (").next().unwrap_or(line).to_owned()).collect())
}

fn root_attribute(name: &str, path: &str, text: &str) -> Option<String> {
    // The one crate with a module that needs it says `deny`, and that module says why it may.
    let attribute =
        if name == SPAWNER { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
    let has = text.lines().any(|line| line.trim() == attribute);
    (!has).then(|| format!("{path}: the crate root lacks `{attribute}`."))
}

fn length(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let is_table = text.lines().take(5).any(|line| line.trim() == TABLE_MARK);
    (lines > MOST_LINES && !is_table).then(|| {
        format!(
            "{path}: {lines} lines; split it under {MOST_LINES}, or mark a plain table with `{TABLE_MARK}` at its top."
        )
    })
}

/// Rust words that may not occur, or not there.
fn words(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut in_tests = path.contains("/tests/") || path.contains("testkit/");
    let mut before = "";
    for (number, line) in (1..).zip(text.lines()) {
        in_tests |= line.trim() == "#[cfg(test)]";
        let mut breach = |what: &str| wrong.push(format!("{path}:{number}: {what}"));
        let code = line.split("//").next().unwrap_or_default();
        for word in UNFINISHED {
            if line.contains(word) {
                breach(&format!("`{word}` may not stay; finish it or take it out."));
            }
        }
        if path != SPAWN_MODULE && has_word(code, UNSAFE) {
            breach(&format!("`{UNSAFE}` may only be in `{SPAWN_MODULE}`."));
        }
        let excused = [line, before].iter().any(|line| line.contains(SLEEP_EXCUSE));
        if in_tests && !excused && SLEEPS.iter().any(|sleep| code.contains(sleep)) {
            breach(&format!(
                "a test may not sleep to wait for something; wait for the thing, or say `{SLEEP_EXCUSE}`."
            ));
        }
        before = line;
    }
    wrong
}

/// Places that exist on one machine, and hosts that packages happened to come from.
fn places(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for place in MACHINE_PATHS {
            let found = line.match_indices(place).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| {
                    !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '}'))
                })
            });
            if found {
                wrong.push(format!("{path}:{number}: `{place}` is a path of one machine."));
            }
        }
        for host in HOSTS {
            if line.contains(host) {
                wrong.push(format!("{path}:{number}: `{host}` names where packages come from."));
            }
        }
        let source = line.trim().strip_prefix("source = ");
        if path.ends_with("Cargo.lock") && source.is_some_and(|from| from != CRATES_IO) {
            wrong.push(format!(
                "{path}:{number}: {} is not the usual source of crates.",
                line.trim()
            ));
        }
        if path.ends_with("package-lock.json") && line.trim().starts_with("\"resolved\"") {
            wrong.push(format!(
                "{path}:{number}: a resolved address; install with `omit-lockfile-registry-resolved=true`."
            ));
        }
    }
    wrong
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        let before = code[..at].chars().next_back().is_some_and(inside);
        let after = code[at + word.len()..].chars().next().is_some_and(inside);
        !before && !after
    })
}

const MOST_LINES: usize = 600;
const WEIGHTS: [(&str, &str, usize); 2] = [("stdio", "", 45), ("HTTP", "http", 75)];
const TABLE_MARK: &str = "// tidy: table";
const SLEEP_EXCUSE: &str = "// the sleep is the subject";
const EXAMPLES: &str = "trunkline-examples";
const CLOSED: &str = concat!("un", "safe_code = \"forbid\"");
const SPAWNER: &str = "trunkline-transport";
const SPAWN_MODULE: &str = "crates/trunkline-transport/src/child/spawn.rs";
const CRATES_IO: &str = "\"registry+https://github.com/rust-lang/crates.io-index\"";

// Written in halves, so that this file does not break the rules it holds.
const UNSAFE: &str = concat!("un", "safe");
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
];
const SLEEPS: &[&str] =
    &[concat!("thread::", "sleep"), concat!("time::", "sleep"), concat!(" sleep(", "Duration")];
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/tmp/", "target"),
];
const HOSTS: &[&str] = &[
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("pypi.org/", "simple"),
    concat!("files.", "pythonhosted.org"),
    concat!("--index", "-url"),
    concat!("--extra-index", "-url"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_code_and_sleeping_tests_are_named() {
        for bad in UNFINISHED {
            assert_eq!(words("a.rs", &format!("fn f() {{ {bad} }}")).len(), 1, "{bad}");
        }
        for sleep in SLEEPS {
            let line = format!("let _ ={sleep}(x);");
            assert_eq!(words("a/tests/it/b.rs", &line).len(), 1, "{line}");
            assert_eq!(words("a/src/b.rs", &line), Vec::<String>::new(), "{line}");
            assert_eq!(words("a/src/b.rs", &format!("#[cfg(test)]\n{line}")).len(), 1, "{line}");
            let excused = format!("{line} {SLEEP_EXCUSE}");
            assert_eq!(words("a/tests/it/b.rs", &excused), Vec::<String>::new(), "{excused}");
        }
    }

    #[test]
    fn the_one_word_is_allowed_in_the_one_module() {
        let line = format!("{UNSAFE} {{ f() }}");
        assert_eq!(words("crates/a/src/lib.rs", &line).len(), 1);
        assert_eq!(words(SPAWN_MODULE, &line), Vec::<String>::new());
        assert_eq!(words("a.rs", &format!("#![forbid({UNSAFE}_code)]")), Vec::<String>::new());
        assert_eq!(words("a.rs", &format!("// {UNSAFE} is not used")), Vec::<String>::new());
    }

    #[test]
    fn long_files_are_named_unless_they_are_tables() {
        let long = "x\n".repeat(MOST_LINES + 1);
        assert!(length("a.rs", &long).is_some());
        assert_eq!(length("a.rs", &"x\n".repeat(MOST_LINES)), None);
        assert_eq!(length("a.rs", &format!("//! Rows.\n{TABLE_MARK}\n{long}")), None);
    }

    #[test]
    fn paths_of_one_machine_and_package_hosts_are_named() {
        for bad in MACHINE_PATHS.iter().chain(HOSTS) {
            assert_eq!(places("a.md", &format!("see `{bad}x`")).len(), 1, "{bad}");
        }
        let uri = format!("file://{}user/project", MACHINE_PATHS[2]);
        assert_eq!(places("a.md", &uri), Vec::<String>::new(), "{uri}");
        assert_eq!(places("p/package-lock.json", "  \"resolved\": \"x\"").len(), 1);
        assert_eq!(places("Cargo.lock", &format!("source = {CRATES_IO}")), Vec::<String>::new());
        assert_eq!(places("Cargo.lock", "source = \"sparse+https://example.com\"").len(), 1);
    }

    #[test]
    fn a_crate_root_must_close_the_door() {
        assert!(root_attribute("a", "a.rs", "//! A.").is_some());
        assert_eq!(root_attribute("a", "a.rs", "//! A.\n#![forbid(unsafe_code)]"), None);
        assert_eq!(root_attribute(SPAWNER, "a.rs", "#![deny(unsafe_code)]"), None);
    }
}
