//! Scopes: granted, needed, and implied by others.
//!
//! ```
//! use trunkline_auth::scope::{Hierarchy, Scopes, missing};
//!
//! let hierarchy = Hierarchy::from([("files", ["files:read", "files:write"])]);
//! let granted = Scopes::parse("files mail:read");
//! let needed = Scopes::parse("files:write mail:send");
//! assert_eq!(missing(&granted, &needed, &hierarchy).to_string(), "mail:send");
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// A set of scopes that keeps their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// The scopes of a text: words between spaces (RFC 6749 §3.3).
    pub fn parse(text: &str) -> Self {
        text.split(' ').filter(|it| !it.is_empty()).collect()
    }

    /// These scopes, then those of `others` that are not among them.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        self.0.iter().chain(&others.0).collect()
    }

    /// Whether this scope is among them, exactly.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|it| it == scope)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scopes, in order.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl<S: Into<String>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Self {
        let mut out = Self::default();
        for scope in scopes {
            let scope = scope.into();
            if !out.contains(&scope) {
                out.0.push(scope);
            }
        }
        out
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Which scopes imply others. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchy(BTreeMap<String, Vec<String>>);

impl Hierarchy {
    /// `scope` includes these scopes, and what they imply.
    #[must_use]
    pub fn implies<S: Into<String>>(
        mut self,
        scope: impl Into<String>,
        others: impl IntoIterator<Item = S>,
    ) -> Self {
        self.0.entry(scope.into()).or_default().extend(others.into_iter().map(Into::into));
        self
    }

    /// Whether the granted scopes include `needed`, directly or by implication.
    pub fn allows(&self, granted: &Scopes, needed: &str) -> bool {
        self.all(granted).contains(needed)
    }

    /// The granted scopes and all that they imply. It ends even for a cycle: each scope is added
    /// once.
    pub(crate) fn all(&self, granted: &Scopes) -> Scopes {
        let mut all = Scopes::default();
        let mut found: VecDeque<&String> = granted.0.iter().collect();
        while let Some(scope) = found.pop_front() {
            if !all.contains(scope) {
                all.0.push(scope.clone());
                found.extend(self.0.get(scope).into_iter().flatten());
            }
        }
        all
    }
}

impl<S, T, I> FromIterator<(S, I)> for Hierarchy
where
    S: Into<String>,
    T: Into<String>,
    I: IntoIterator<Item = T>,
{
    fn from_iter<P: IntoIterator<Item = (S, I)>>(pairs: P) -> Self {
        pairs.into_iter().fold(Self::default(), |all, (scope, others)| all.implies(scope, others))
    }
}

impl<S, T, I, const N: usize> From<[(S, I); N]> for Hierarchy
where
    S: Into<String>,
    T: Into<String>,
    I: IntoIterator<Item = T>,
{
    fn from(pairs: [(S, I); N]) -> Self {
        pairs.into_iter().collect()
    }
}

/// The needed scopes that were not granted, in the order of `needed`.
///
/// ```
/// use trunkline_auth::scope::{Hierarchy, Scopes, missing};
///
/// let needed = Scopes::parse("a b c");
/// let missing = missing(&Scopes::parse("b"), &needed, &Hierarchy::default());
/// assert_eq!(missing.to_string(), "a c");
/// ```
pub fn missing(granted: &Scopes, needed: &Scopes, hierarchy: &Hierarchy) -> Scopes {
    let all = hierarchy.all(granted);
    needed.0.iter().filter(|it| !all.contains(it)).collect()
}

/// Whether a text is a valid scope token (RFC 6749 §3.3).
#[cfg(feature = "oauth")]
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic() && it != b'"' && it != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_a_set_in_order() {
        for (text, expected) in [
            ("", &[][..]),
            ("   ", &[]),
            ("a", &["a"]),
            (" b a ", &["b", "a"]),
            ("a b a", &["a", "b"]),
            // Only the space separates, and case counts.
            ("a\tb A", &["a\tb", "A"]),
        ] {
            let scopes = Scopes::parse(text);
            assert_eq!(scopes.as_slice(), expected, "{text:?}");
            assert_eq!(scopes.is_empty(), expected.is_empty(), "{text:?}");
            assert_eq!(scopes.to_string(), expected.join(" "), "{text:?}");
        }
        let scopes = Scopes::parse("a b");
        assert!(scopes.contains("a") && scopes.contains("b") && !scopes.contains("c"));
        assert_eq!(scopes.union(&Scopes::parse("c b d")), Scopes::parse("a b c d"));
        assert_eq!(scopes.union(&Scopes::default()), scopes);
        assert_eq!(Scopes::default().union(&scopes), scopes);
    }

    #[test]
    fn what_is_missing() {
        let files = Hierarchy::from([("files", ["files:read", "files:write"])]);
        let chain: Hierarchy =
            [("a", vec!["b"]), ("b", vec!["c", "a"]), ("c", vec!["d"])].into_iter().collect();
        let nothing = Hierarchy::default();
        for (granted, needed, hierarchy, expected) in [
            ("", "", &nothing, ""),
            ("a", "", &nothing, ""),
            ("", "a b", &nothing, "a b"),
            ("b", "a b c", &nothing, "a c"),
            ("a b", "b a", &nothing, ""),
            // A prefix implies nothing by itself.
            ("files", "files:read", &nothing, "files:read"),
            ("files", "files:read files:write mail", &files, "mail"),
            ("files:read", "files files:read", &files, "files"),
            ("files:read files:write", "files", &files, "files"),
            ("x files", "files:write", &files, ""),
            // Over several steps, and round a circle.
            ("a", "a b c d e", &chain, "e"),
            ("b", "a d", &chain, ""),
            ("c", "a b c d", &chain, "a b"),
            ("d", "a c", &chain, "a c"),
        ] {
            let (granted, needed) = (Scopes::parse(granted), Scopes::parse(needed));
            let found = missing(&granted, &needed, hierarchy);
            assert_eq!(found.to_string(), expected, "{granted} for {needed}");
            for scope in needed.as_slice() {
                assert_eq!(hierarchy.allows(&granted, scope), !found.contains(scope), "{scope}");
            }
        }
    }

    #[test]
    fn one_scope_can_be_given_more_in_steps() {
        let hierarchy = Hierarchy::default().implies("a", ["b"]).implies("a", ["c"]);
        assert_eq!(hierarchy, Hierarchy::from([("a", ["b", "c"])]));
        assert_ne!(hierarchy, Hierarchy::default());
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn what_is_a_scope() {
        for (text, expected) in [
            ("files:read", true),
            ("!", true),
            ("~", true),
            ("", false),
            ("a b", false),
            ("a\"", false),
            ("a\\", false),
            ("a\n", false),
            ("é", false),
        ] {
            assert_eq!(is_scope(text), expected, "{text:?}");
        }
    }
}
