//! The documentation: no warning, and an example where people begin.

use crate::{run, tidy};
use std::process::Command;

/// What users read, and the features they read it with.
const CRATES: &[(&str, &str)] = &[
    ("trunkline", "auth,tls,testing"),
    ("trunkline-macros", ""),
    ("trunkline-store", "suite"),
    ("trunkline-wire", ""),
    ("trunkline-auth", "oauth"),
    ("trunkline-proto", "http"),
    ("trunkline-transport", "auth,tls"),
    ("trunkline-authority", "serve"),
];

/// The chore: builds the documentation; a warning is a failure.
pub fn run(_: &[String]) -> Result<(), String> {
    run::run(document().env("RUSTDOCFLAGS", "-D warnings"))
}

/// Every entry point of `trunkline` has an example, and no example anywhere is mostly set-up.
pub fn examples() -> Result<(), String> {
    let files = tidy::files()?;
    let mut wrong = Vec::new();
    let points = entry_points(&run::file("crates/trunkline/src/lib.rs")?);
    for point in &points {
        if !point.has_example(&files) {
            wrong.push(format!("`trunkline::{}` has no example; show how it is used.", point.name));
        }
    }
    let mut count = 0;
    for (path, text) in &files {
        for example in snippets(path, text) {
            count += 1;
            wrong.extend(example.complaint(path));
        }
    }
    println!("{} entry points, {count} examples", points.len());
    for sentence in &wrong {
        println!("{sentence}");
    }
    match wrong.len() {
        0 => Ok(()),
        many => Err(format!("{many} examples are missing or mostly hidden, listed above.")),
    }
}

/// All of them at once, so that what they build on is built once.
fn document() -> Command {
    let mut command = run::cargo(["doc", "--quiet", "--no-deps"]);
    for (krate, features) in CRATES {
        command.args(["-p", krate]);
        for feature in features.split(',').filter(|it| !it.is_empty()) {
            command.arg("--features").arg(format!("{krate}/{feature}"));
        }
    }
    // Its own target folder: other flags would rebuild everything.
    command.env("CARGO_TARGET_DIR", run::root().join("target/docs"));
    command
}

/// A name that the root of `trunkline` exports from a module of its own or from its macros.
#[derive(Debug, PartialEq)]
struct EntryPoint {
    /// Where it is defined: files whose paths begin so.
    within: String,
    name: String,
}

impl EntryPoint {
    /// Whether a definition has an example. Modules hand names on, so any file of the crate may have it.
    fn has_example(&self, files: &[(String, String)]) -> bool {
        let krate = self.within.split("/src/").next().unwrap_or_default();
        let definitions = |within: &str| -> Vec<bool> {
            let files = files.iter().filter(|(path, _)| path.starts_with(within));
            files.flat_map(|(_, text)| definitions(text, &self.name)).collect()
        };
        let mut found = definitions(&self.within);
        if found.is_empty() {
            found = definitions(&format!("{krate}/src/"));
        }
        found.contains(&true)
    }
}

/// The entry points in the text of the root.
fn entry_points(root: &str) -> Vec<EntryPoint> {
    let modules: Vec<&str> = root
        .lines()
        .filter_map(|line| line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod "))
        .filter_map(|rest| rest.strip_suffix(';'))
        .collect();
    let mut points = Vec::new();
    // Those of modules inside the root are indented.
    for text in root.split("\npub use ").skip(1) {
        let Some((path, _)) = text.split_once(';') else { continue };
        let Some((module, names)) = path.split_once("::") else { continue };
        let within = match module {
            "trunkline_macros" => "crates/trunkline-macros/src/lib.rs".to_owned(),
            _ if modules.contains(&module) => format!("crates/trunkline/src/{module}"),
            _ => continue,
        };
        for name in names.split(['{', '}', ',']).map(str::trim).filter(|name| !name.is_empty()) {
            points.push(EntryPoint { within: within.clone(), name: name.to_owned() });
        }
    }
    points
}

/// For each public item of this name, whether the comment above it has an example.
fn definitions(text: &str, name: &str) -> Vec<bool> {
    let mut found = Vec::new();
    let mut above = String::new();
    for line in text.lines() {
        if line.starts_with("///")
            || line.starts_with("#[")
            || (!above.is_empty() && line.starts_with([' ', ']', ')']))
        {
            above.push_str(line);
            above.push('\n');
            continue;
        }
        let words = line.strip_prefix("pub ").unwrap_or_default();
        let defines = KINDS.iter().any(|kind| {
            let rest = words.strip_prefix(kind).and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        let derives = above.contains(&format!("#[proc_macro_derive({name}"));
        if defines || (derives && !words.is_empty()) {
            found.push(above.contains("/// ```"));
        }
        above.clear();
    }
    found
}

/// A block of Rust in a comment or on a page.
struct Snippet {
    line: usize,
    hidden: usize,
    visible: usize,
}

impl Snippet {
    fn complaint(&self, path: &str) -> Option<String> {
        let Self { line, hidden, visible } = self;
        (hidden > visible).then(|| {
            format!("{path}:{line}: the example hides {hidden} lines and shows {visible}; show what matters, or drop it.")
        })
    }
}

/// The examples of a file, with how many lines of each are hidden from readers.
fn snippets(path: &str, text: &str) -> Vec<Snippet> {
    let is_page = path.ends_with(".md");
    if !is_page && !path.ends_with(".rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    // The block that is open: none, one of another language, or an example.
    let mut open: Option<Option<Snippet>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let comment = || {
            let line = line.trim_start();
            line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
        };
        let Some(line) = (if is_page { Some(line) } else { comment() }) else {
            open = None;
            continue;
        };
        let line = line.trim();
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let first = language.split(',').next().unwrap_or_default();
                let is_rust = RUST.contains(&first) || (first.is_empty() && !is_page);
                open = Some(is_rust.then_some(Snippet { line: number, hidden: 0, visible: 0 }));
            }
            (Some(_), Some(_)) => found.extend(open.take().flatten()),
            (Some(Some(snippet)), None) if line == "#" || line.starts_with("# ") => {
                snippet.hidden += 1;
            }
            (Some(Some(snippet)), None) if !line.is_empty() => snippet.visible += 1,
            _ => {}
        }
    }
    found
}

const KINDS: &[&str] = &["struct ", "enum ", "trait ", "type ", "fn ", "async fn "];
const RUST: &[&str] = &["rust", "no_run", "ignore", "compile_fail", "should_panic"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_what_the_root_exports_of_its_own() {
        let root = "//! Doc.\nmod a;\npub mod b;\npub use a::A;\npub use b::{\n    B, b,\n};\n\
            pub use trunkline_macros::{M, data};\npub use serde;\npub use elsewhere::E;\n\
            pub mod prelude {\n    pub use a::No;\n}\n";
        let found: Vec<(String, String)> =
            entry_points(root).into_iter().map(|it| (it.within, it.name)).collect();
        let own =
            |module: &str, name: &str| (format!("crates/trunkline/src/{module}"), name.to_owned());
        let macros =
            |name: &str| ("crates/trunkline-macros/src/lib.rs".to_owned(), name.to_owned());
        assert_eq!(
            found,
            [own("a", "A"), own("b", "B"), own("b", "b"), macros("M"), macros("data")]
        );
    }

    #[test]
    fn an_example_stands_above_its_definition() {
        let with = "/// A.\n///\n/// ```\n/// a();\n/// ```\n#[derive(\n    Clone,\n)]\npub struct A<T>(T);\n";
        assert_eq!(definitions(with, "A"), [true]);
        assert_eq!(definitions("/// A.\npub struct A;\n", "A"), [false]);
        assert_eq!(definitions(with, "B"), Vec::<bool>::new());
        let other = format!("{with}/// B.\npub fn AB() {{}}\n/// A.\npub async fn A() {{}}\n");
        assert_eq!(definitions(&other, "A"), [true, false]);
        let derive =
            "/// ```\n/// ```\n#[proc_macro_derive(A, attributes(a))]\npub fn derive_a(it: T) {}\n";
        assert_eq!(definitions(derive, "A"), [true]);
    }

    #[test]
    fn a_name_handed_on_is_looked_up_in_the_whole_crate() {
        let files = [
            ("crates/trunkline/src/a.rs".to_owned(), "pub use crate::b::A;\n".to_owned()),
            (
                "crates/trunkline/src/b.rs".to_owned(),
                "/// ```\n/// ```\npub struct A;\n".to_owned(),
            ),
        ];
        let point =
            |name: &str| EntryPoint { within: "crates/trunkline/src/a".into(), name: name.into() };
        assert!(point("A").has_example(&files));
        assert!(!point("B").has_example(&files));
    }

    #[test]
    fn an_example_that_hides_more_than_it_shows_is_named() {
        let complaints = |path: &str, text: &str| -> Vec<String> {
            snippets(path, text).iter().filter_map(|it| it.complaint(path)).collect()
        };
        let even = "    /// ```\n    /// # a();\n    ///\n    /// b();\n    /// ```\n";
        assert_eq!(complaints("a.rs", even), Vec::<String>::new());
        let more = "/// ```no_run\n/// # a();\n/// #\n/// b();\n/// ```\nfn f() {}\n";
        assert_eq!(complaints("a.rs", more).len(), 1);
        assert!(complaints("a.rs", more)[0].starts_with("a.rs:1: the example hides 2"));
        // A heading is hidden in an example, and shown in a block of another language.
        let page = |language: &str| format!("```{language}\n# a\n# b\nc\n```\n");
        assert_eq!(complaints("a.md", &page("rust")).len(), 1);
        assert_eq!(complaints("a.md", &page("sh")), Vec::<String>::new());
        assert_eq!(complaints("a.md", &page("")), Vec::<String>::new());
    }
}
