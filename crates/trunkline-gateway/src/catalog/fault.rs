//! Faults of a catalog: what is wrong, where, and what to do; for people and for programs.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use trunkline_wire::text::edit_distance;

use super::Loaded;

/// One fault or warning. It never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The path of the value: `mcpServers.time.strategy`, `servers[2].maxConcurrent`; empty for the file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The line without its secrets, and the offset of the position in it.
    #[serde(skip)]
    pub(super) excerpt: Option<(String, usize)>,
    /// Whether the value itself may be shown.
    #[serde(skip)]
    pub(super) shows: bool,
}

impl Fault {
    /// The fault as text, with the line and a caret below the position.
    pub fn render(&self, file: &Path) -> String {
        let mut out = format!("{}:{}:{}: ", file.display(), self.line, self.column);
        if !self.path.is_empty() {
            let _ = write!(out, "{}: ", self.path);
        }
        out.push_str(&self.message);
        if let Some((line, before)) = &self.excerpt {
            let number = self.line.to_string();
            let margin = " ".repeat(number.len());
            let _ = write!(out, "\n  {number} | {line}\n  {margin} | {}^", " ".repeat(*before));
            if let Some(suggestion) = &self.suggestion {
                let _ = write!(out, " {suggestion}");
            }
        } else if let Some(suggestion) = &self.suggestion {
            let _ = write!(out, "\n  {suggestion}");
        }
        out
    }
}

/// All faults of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Faults {
    /// The file.
    pub file: PathBuf,
    /// The faults, in the order of the file. At least one.
    pub faults: Vec<Fault>,
    /// The warnings.
    pub warnings: Vec<Fault>,
    /// What can run anyway: everything but the servers that have the faults. `None` if the faults concern more.
    #[serde(skip)]
    pub rest: Option<Box<Loaded>>,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.faults.iter().enumerate() {
            let gap = if place == 0 { "" } else { "\n" };
            write!(f, "{gap}{}", fault.render(&self.file))?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// The nearest of `known` by edit distance, if one is near enough.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written: Vec<char> = written.to_lowercase().chars().take(100).collect();
    let far = (written.len() / 3).max(1);
    let near = known.into_iter().filter_map(|it| {
        let letters: Vec<char> = it.to_lowercase().chars().collect();
        Some((edit_distance(&written, &letters, far)?, it))
    });
    near.min_by_key(|(steps, _)| *steps).map(|(_, it)| it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let known = ["stateless", "stateful", "persistent", "singleton"];
        for (written, expected) in [
            ("statless", Some("stateless")),
            ("Stateful", Some("stateful")),
            ("singelton", Some("singleton")),
            ("persistant", Some("persistent")),
            ("sharded", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }
}
