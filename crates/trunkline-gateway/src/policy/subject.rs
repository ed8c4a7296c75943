//! The target of a call, and the patterns of rules and rate limits that it may match.
//!
//! | pattern | what it is about |
//! |---|---|
//! | `SERVER.read:URI` | resources, by every reading of their URI |
//! | `SERVER.prompt:NAME` | prompts |
//! | `SERVER.tool:NAME` | tools |
//! | anything else: `git.push`, `git.*`, `*` | tools as `SERVER.NAME`, resources and prompts as above |
//!
//! A tool named `read:x` is still a tool: its kind decides, not its name.

use std::borrow::Cow;

use super::What;
use super::rules::Glob;
use super::uri::Forms;

/// A target at a server that a caller wants to use.
#[derive(Debug)]
pub struct Subject<'a> {
    server: &'a str,
    kind: &'static str,
    near: Vec<Reading<'a>>,
    far: Vec<Reading<'a>>,
    is_ambiguous: bool,
}

/// One of the names that the target may have.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    name: Cow<'a, str>,
    /// The name as [`What::on`] spells it.
    text: String,
}

impl<'a> Subject<'a> {
    /// The target of a call at a server.
    pub fn new(server: &'a str, what: What<'a>) -> Self {
        let one = |name: Cow<'a, str>| {
            let text = match what {
                What::Tool(_) => What::Tool(&name).on(server),
                What::Resource(_) => What::Resource(&name).on(server),
                What::Prompt(_) => What::Prompt(&name).on(server),
            };
            Reading { name, text }
        };
        let (near, far, is_ambiguous) = match what {
            What::Tool(name) | What::Prompt(name) => (vec![one(name.into())], Vec::new(), false),
            What::Resource(uri) => {
                let forms = Forms::of(uri);
                let all = |forms: Vec<String>| forms.into_iter().map(|it| one(it.into())).collect();
                (all(forms.near), all(forms.far), forms.is_ambiguous)
            }
        };
        Self { server, kind: what.kind(), near, far, is_ambiguous }
    }

    /// Whether the URI is ambiguous.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    /// The names that an `allow` must match, all of them.
    pub(crate) fn near(&self) -> &[Reading<'a>] {
        &self.near
    }

    /// The names that only a careless server would read.
    pub(crate) fn far(&self) -> &[Reading<'a>] {
        &self.far
    }
}

/// Patterns of which one must match; an empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Patterns(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq)]
enum Pattern {
    /// Matches any kind.
    Any(Glob),
    /// Matches one kind.
    Of { kind: &'static str, server: Glob, names: Vec<Glob> },
}

impl Patterns {
    pub(crate) fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().map(|it| Pattern::new(it)).collect())
    }

    /// Whether one matches this reading.
    pub(crate) fn fits(&self, subject: &Subject<'_>, reading: &Reading<'_>) -> bool {
        self.0.is_empty() || self.0.iter().any(|it| it.fits(subject, reading))
    }

    /// Whether one matches any reading.
    pub(crate) fn fits_any(&self, subject: &Subject<'_>) -> bool {
        let mut readings = subject.near.iter().chain(&subject.far);
        self.0.is_empty() || readings.any(|it| self.fits(subject, it))
    }
}

impl Pattern {
    fn new(pattern: &str) -> Self {
        // The name of a server has no dot.
        let typed = pattern.split_once('.').and_then(|(server, rest)| {
            let (word, name) = rest.split_once(':')?;
            let kind = match word {
                "read" => What::Resource(name).kind(),
                "prompt" => What::Prompt(name).kind(),
                "tool" => What::Tool(name).kind(),
                _ => return None,
            };
            let mut names = vec![Glob::new(name)];
            if word == "read" {
                names.extend(spellings(name).iter().map(|it| Glob::new(it)));
                names.dedup();
            }
            Some(Self::Of { kind, server: Glob::new(server), names })
        });
        typed.unwrap_or_else(|| Self::Any(Glob::new(pattern)))
    }

    fn fits(&self, subject: &Subject<'_>, reading: &Reading<'_>) -> bool {
        match self {
            Self::Any(glob) => glob.fits(&reading.text),
            Self::Of { kind, server, names } => {
                *kind == subject.kind
                    && server.fits(subject.server)
                    && names.iter().any(|it| it.fits(&reading.name))
            }
        }
    }
}

/// The normal forms of a URI pattern. A pattern that climbs with `..` over a `*` would match more than was
/// written, and has none.
fn spellings(pattern: &str) -> Vec<String> {
    if pattern.contains("..") { Vec::new() } else { Forms::of(pattern).near }
}

/// A tool, as `server.tool`.
#[cfg(test)]
pub(super) fn tool(name: &str) -> Subject<'_> {
    let (server, name) = name.split_once('.').unwrap();
    Subject::new(server, What::Tool(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, server: &str, what: What<'_>) -> bool {
        Patterns::new(&[pattern.to_owned()]).fits_any(&Subject::new(server, what))
    }

    #[test]
    fn a_tool_is_a_tool_whatever_it_is_called() {
        let tool = What::Tool("read:file:///a");
        for pattern in ["git.read:*", "*.read:file:///a", "*.prompt:*"] {
            assert!(!fits(pattern, "git", tool), "{pattern}");
        }
        assert!(!fits("git.prompt:x", "git", What::Tool("prompt:x")));
        assert!(!fits("git.tool:x", "git", What::Prompt("tool:x")));
        for pattern in ["git.tool:read:file:///a", "*.tool:read:*", "git.*", "*"] {
            assert!(fits(pattern, "git", tool), "{pattern}");
        }
        assert!(fits("git.read:*", "git", What::Resource("file:///a")));
        assert!(fits("git.prompt:x", "git", What::Prompt("x")));
        assert!(fits("git.tool:push", "git", What::Tool("push")));
        assert!(!fits("git.tool:push", "hub", What::Tool("push")));
    }

    #[test]
    fn a_pattern_may_be_spelt_in_any_way_too() {
        let uri = What::Resource("file:///etc/a");
        for pattern in ["*.read:FILE:/etc/*", "*.read:file://LOCALHOST/%65tc/*", "*.read:file:*"] {
            assert!(fits(pattern, "files", uri), "{pattern}");
        }
        assert!(!fits("*.read:file:///srv/../*", "files", uri), "what is written, and no more");
    }
}
