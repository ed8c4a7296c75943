//! Expands `${…}` in a text from the environment and from files.

use std::io;
use std::path::Path;

/// Where variables and files come from.
pub trait Env {
    /// A variable, if it is set.
    fn var(&self, name: &str) -> Option<String>;
    /// A small text file.
    ///
    /// # Errors
    ///
    /// If it does not exist, cannot be read, is not UTF-8 or is not small.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// A small text file that only its owner can read.
    ///
    /// # Errors
    ///
    /// As [`Env::read`], and if others can read it.
    fn read_private(&self, path: &Path) -> io::Result<String> {
        self.read(path)
    }
    /// Whether the file exists.
    fn is_file(&self, path: &Path) -> bool;
}

/// The environment of this process, and the files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process;

impl Env for Process {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        super::watch::read_text(path, SMALL)
    }

    #[cfg(unix)]
    fn read_private(&self, path: &Path) -> io::Result<String> {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = format!("others can read it (its mode is {mode:04o}; it must be 0600)");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        self.read(path)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }
}

/// What a `${…}` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted<'a> {
    Var(&'a str),
    /// A file, and its path before expansion.
    File {
        path: &'a str,
        written: &'a str,
    },
}

/// Why a text cannot be expanded, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) suggestion: Option<String>,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>, suggestion: &str) -> Self {
        Self { message: message.into(), suggestion: Some(suggestion.to_owned()) }
    }
}

/// Expands a text with what `look` finds: `None` is an unset variable. Also returns whether anything was
/// expanded.
pub(super) fn expand(
    text: &str,
    look: &mut dyn FnMut(Wanted<'_>) -> Result<Option<String>, Problem>,
) -> Result<(String, bool), Vec<Problem>> {
    let (mut out, mut problems) = (String::with_capacity(text.len()), Vec::new());
    let is_expanded = walk(text, look, &mut out, &mut problems, 0);
    if problems.is_empty() { Ok((out, is_expanded)) } else { Err(problems) }
}

fn walk(
    mut rest: &str,
    look: &mut dyn FnMut(Wanted<'_>) -> Result<Option<String>, Problem>,
    out: &mut String,
    problems: &mut Vec<Problem>,
    depth: usize,
) -> bool {
    let mut is_expanded = false;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let Some(end) = closing(after) else {
                problems.push(Problem::new("A `${` has no `}`.", "Write `$$` for a dollar sign."));
                return is_expanded;
            };
            is_expanded = true;
            match one(&after[..end], look, depth) {
                Ok(text) => out.push_str(&text),
                Err(more) => problems.extend(more),
            }
            rest = &after[end + 1..];
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    is_expanded
}

/// Expands what is between `${` and `}`.
fn one(
    inner: &str,
    look: &mut dyn FnMut(Wanted<'_>) -> Result<Option<String>, Problem>,
    depth: usize,
) -> Result<String, Vec<Problem>> {
    if depth > DEPTH {
        return Err(vec![Problem::new("`${…}` is nested too deeply.", "Use one variable.")]);
    }
    let nested = |text: &str, look: &mut dyn FnMut(Wanted<'_>) -> _| {
        let (mut out, mut problems) = (String::new(), Vec::new());
        walk(text, look, &mut out, &mut problems, depth + 1);
        if problems.is_empty() { Ok(out) } else { Err(problems) }
    };
    if let Some(written) = inner.strip_prefix("file:") {
        let path = nested(written, look)?;
        let text = look(Wanted::File { path: &path, written }).map_err(|it| vec![it])?;
        return Ok(text.unwrap_or_default());
    }
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if !is_name(name) {
        return Err(vec![strange(name)]);
    }
    match (look(Wanted::Var(name)).map_err(|it| vec![it])?, default) {
        (Some(text), None) => Ok(text),
        (Some(text), Some(_)) if !text.is_empty() => Ok(text),
        (_, Some(default)) => nested(default, look),
        (None, None) => Err(vec![Problem::new(
            format!("The variable `{name}` is not set."),
            &format!("Set it, or write `${{{name}:-default}}`."),
        )]),
    }
}

/// A name that is no variable: another program's placeholder, or a typing error.
fn strange(name: &str) -> Problem {
    let asks = ["input:", "command:", "config:", "prompt:"].iter().any(|it| name.starts_with(it));
    let shown: String = name.chars().filter(|it| !it.is_control()).take(60).collect();
    match asks {
        true => Problem::new(
            format!("`${{{shown}}}` is filled in by an editor, which is not here."),
            "Use a variable, `${NAME}`, or a file, `${file:PATH}`.",
        ),
        false => Problem::new(
            format!("`${{{shown}}}` names no variable."),
            "Write `${NAME}`, `${NAME:-default}` or `${file:PATH}`; `$$` is a dollar sign.",
        ),
    }
}

pub(super) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
        && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// Whether a text contains expansions. Messages must not show the result.
pub(super) fn is_filled_in(text: &str) -> bool {
    text.contains("${")
}

/// The position of the `}` that closes a `${`.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0;
    let bytes = text.as_bytes();
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if place > 0 && bytes[place - 1] == b'$' => open += 1,
            b'}' if open == 0 => return Some(place),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// How deep defaults may nest.
const DEPTH: usize = 8;
/// The largest file that a value is read from.
pub(super) const SMALL: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn look(wanted: Wanted<'_>) -> Result<Option<String>, Problem> {
        Ok(match wanted {
            Wanted::Var("A") => Some("1".to_owned()),
            Wanted::Var("EMPTY") => Some(String::new()),
            Wanted::Var("EVIL") => Some("${A}$$".to_owned()),
            Wanted::File { path, .. } => Some(format!("<{path}>")),
            Wanted::Var(_) => None,
        })
    }

    #[test]
    fn texts_are_expanded_once() {
        for (text, expected) in [
            ("plain", ("plain", false)),
            ("${A}", ("1", true)),
            ("a${A}b${A}", ("a1b1", true)),
            ("${env:A}", ("1", true)),
            ("${NO:-x y}", ("x y", true)),
            ("${NO:-}", ("", true)),
            ("${A:-2}", ("1", true)),
            ("${EMPTY:-2}", ("2", true)),
            ("[${EMPTY}]", ("[]", true)),
            ("${NO:-${A}}!", ("1!", true)),
            ("${NO:-${NEITHER:-3}}", ("3", true)),
            ("${file:./a}", ("<./a>", true)),
            ("${file:./${A}}", ("<./1>", true)),
            ("$${A} $A $5 100$", ("${A} $A $5 100$", false)),
            ("a$$b", ("a$b", false)),
            ("${NO:-http://[::1]/}", ("http://[::1]/", true)),
            // The result is not expanded again.
            ("${EVIL}", ("${A}$$", true)),
        ] {
            let (found, is_expanded) = expand(text, &mut look).unwrap();
            assert_eq!((found.as_str(), is_expanded), expected, "{text}");
        }
    }

    #[test]
    fn every_problem_of_a_text_is_reported() {
        for (text, expected) in [
            (
                "${NO} ${NEITHER}",
                &["The variable `NO` is not set.", "The variable `NEITHER` is not set."][..],
            ),
            ("${NO:-${NEITHER}}", &["The variable `NEITHER` is not set."]),
            ("${A", &["A `${` has no `}`."]),
            ("${}", &["`${}` names no variable."]),
            ("${1A}", &["`${1A}` names no variable."]),
            ("${input:key}", &["`${input:key}` is filled in by an editor, which is not here."]),
        ] {
            let problems = expand(text, &mut look).unwrap_err();
            let found: Vec<_> = problems.iter().map(|it| it.message.as_str()).collect();
            assert_eq!(found, expected, "{text}");
        }
        let deep = format!("{}x{}", "${NO:-".repeat(100), "}".repeat(100));
        assert_eq!(
            expand(&deep, &mut look).unwrap_err()[0].message,
            "`${…}` is nested too deeply."
        );
    }
}
