//! Lock files → what in them could bring something else tomorrow than it did today.

use super::CRATES_IO;
use crate::run;
use serde_json::Value;
use std::process::Command;

/// Looks at every lock file of the repository.
pub fn check() -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--", "*Cargo.lock", "*package-lock.json", "*requirements.txt"]);
    let paths = run::read(git.current_dir(run::root()))?;
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in paths.split('\0').filter(|path| !path.is_empty()) {
        let text = run::file(path)?;
        wrong.extend(file(path, &text).into_iter().map(|why| format!("{path}: {why}")));
        count += 1;
    }
    println!("{count} lock files were read");
    if count < LEAST {
        wrong.push(format!("There are {count} lock files; at least {LEAST} were expected."));
    }
    Ok(wrong)
}

fn file(path: &str, text: &str) -> Vec<String> {
    if path.ends_with("Cargo.lock") {
        cargo(text)
    } else if path.ends_with("package-lock.json") {
        npm(text)
    } else {
        pip(text)
    }
}

fn cargo(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for block in text.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            line.map(|it| it.trim_end_matches('"'))
        };
        let name = value("name").unwrap_or("?");
        let Some(source) = value("source") else { continue };
        if source != CRATES_IO {
            wrong.push(format!("`{name}` comes from `{source}`."));
        }
        let is_sum = |it: &str| it.len() == 64 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !value("checksum").is_some_and(is_sum) {
            wrong.push(format!("`{name}` has no checksum."));
        }
    }
    wrong
}

fn npm(text: &str) -> Vec<String> {
    let Ok(lock) = serde_json::from_str::<Value>(text) else {
        return vec!["It is no JSON.".to_owned()];
    };
    let mut wrong = Vec::new();
    for (name, package) in lock["packages"].as_object().into_iter().flatten() {
        if name.is_empty() {
            continue;
        }
        if !package["integrity"].as_str().is_some_and(|it| it.starts_with("sha512-")) {
            wrong.push(format!("`{name}` has no `sha512` integrity."));
        }
        if !package["resolved"].is_null() {
            wrong.push(format!("`{name}` names where it came from."));
        }
        if package["hasInstallScript"] == true {
            wrong.push(format!("`{name}` runs a script when it is installed."));
        }
    }
    wrong
}

/// Versions are pinned; hashes would differ from one platform's wheel to the next.
fn pip(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    let is_pinned = |line: &str| {
        let plain = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
        line.split_once("==").is_some_and(|(name, version)| {
            !name.is_empty() && !version.is_empty() && line.replace("==", "").chars().all(plain)
        })
    };
    lines.filter(|line| !is_pinned(line)).map(|line| format!("`{line}` is not pinned.")).collect()
}

/// Three of cargo, two of npm, one of pip.
const LEAST: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_nailed_down_is_named() {
        let sum = "0".repeat(64);
        let good =
            format!("[[package]]\nname = \"a\"\nsource = \"{CRATES_IO}\"\nchecksum = \"{sum}\"\n");
        assert_eq!(file("Cargo.lock", &good), Vec::<String>::new());
        assert_eq!(file("Cargo.lock", "[[package]]\nname = \"ours\"\n"), Vec::<String>::new());
        assert_eq!(file("Cargo.lock", &good.replace("checksum", "sum")), ["`a` has no checksum."]);
        let git = good.replace(CRATES_IO, "git+https://example.com/a");
        assert_eq!(file("b/Cargo.lock", &git), ["`a` comes from `git+https://example.com/a`."]);

        let npm = r#"{"packages":{"":{},"a":{"integrity":"sha512-x"},"b":{"integrity":"sha1-x"},
            "c":{"integrity":"sha512-x","resolved":"x","hasInstallScript":true}}}"#;
        let told = file("package-lock.json", npm);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("`b`") && told[1].starts_with("`c`"));

        assert_eq!(file("requirements.txt", "# x\na==1.0\n\n"), Vec::<String>::new());
        for bad in ["a", "a>=1", "a==", "a @ https://example.com/a", "-r b.txt", "--pre"] {
            assert_eq!(file("requirements.txt", bad).len(), 1, "{bad}");
        }
    }
}
