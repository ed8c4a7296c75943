//! Paths that a user does not want compared.

use std::fmt;
use std::str::FromStr;

/// Which differences do not count.
///
/// A path is a JSON Pointer as a comparison shows it. `*` stands for one name or number, `**` for any number of them,
/// and what is below a path is ignored with it. Before the path may stand what it is about: `tools/call sum:/result`.
///
/// ```
/// use trunkline_recording::compare::Ignore;
///
/// let ignore = Ignore::read(["/result/**/text", "tool sum:/description"]).unwrap();
/// assert!(ignore.covers("tools/call echo", "/result/content/0/text"));
/// assert!(ignore.covers("tool sum", "/description"));
/// assert!(!ignore.covers("tool echo", "/description"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignore(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    of: Option<String>,
    segments: Vec<String>,
}

/// This is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPath(String);

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no path: it begins with `/`, as in `/result/content/*/text`.", self.0)
    }
}

impl std::error::Error for BadPath {}

impl Ignore {
    /// Reads paths.
    pub fn read<T: AsRef<str>>(paths: impl IntoIterator<Item = T>) -> Result<Self, BadPath> {
        paths.into_iter().map(|it| it.as_ref().parse()).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a difference does not count.
    pub fn covers(&self, of: &str, path: &str) -> bool {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        self.0
            .iter()
            .any(|it| it.of.as_deref().is_none_or(|it| it == of) && fits(&it.segments, &segments))
    }
}

impl FromStr for Pattern {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let (of, path) = match text.split_once(":/") {
            Some((of, path)) if !text.starts_with('/') => (Some(of.to_owned()), path),
            _ => (None, text.strip_prefix('/').ok_or_else(|| BadPath(text.to_owned()))?),
        };
        Ok(Self { of, segments: path.split('/').map(str::to_owned).collect() })
    }
}

fn fits(pattern: &[String], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((first, rest)) if first == "**" => {
            (0..=path.len()).any(|skipped| fits(rest, &path[skipped..]))
        }
        Some((first, rest)) => match path.split_first() {
            Some((name, below)) => (first == "*" || first == name) && fits(rest, below),
            None => false,
        },
    }
}
