//! What is wrong in a file, where, and what to do: for people and for programs.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use trunkline_wire::text::edit_distance;

use super::Loaded;

/// One thing that is wrong, or odd. It never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Which value: `mcpServers.time.strategy`, `servers[2].maxConcurrent`; empty for the file.
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
    /// The line with its secrets left out, and how many characters stand before the place.
    #[serde(skip)]
    pub(super) excerpt: Option<(String, usize)>,
    /// Whether the value itself can be shown.
    #[serde(skip)]
    pub(super) shows: bool,
}

impl Fault {
    /// As text, with the line and a caret below the place.
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

/// All that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Faults {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, in the order of the file. At least one.
    pub faults: Vec<Fault>,
    /// What is odd.
    pub warnings: Vec<Fault>,
    /// What can run all the same: everything but the servers that the faults are about. `None` if they
    /// are about more.
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

/// The nearest of `known` to what was written, if any is near.
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
