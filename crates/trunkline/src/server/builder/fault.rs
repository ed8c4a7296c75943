//! The faults of a server's registrations, all at once.

use std::fmt;

use super::States;
use crate::server::function::Signature;
use crate::server::lists::{Entry, List};
use crate::server::scopes::is_scope;

/// Every fault of a server's registrations.
/// ```
/// let nameless = trunkline::tool("", async || "?");
/// let why = trunkline::Server::builder("a", "1").tool(nameless).try_build().unwrap_err();
/// assert!(why.to_string().starts_with("The tool `` needs another name"), "{why}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    faults: Vec<String>,
}

impl BuildError {
    /// The faults, a sentence each.
    /// ```
    /// let builder = trunkline::Server::builder("a", "1").tool(trunkline::tool("", async || "?"));
    /// assert_eq!(builder.try_build().unwrap_err().faults().len(), 1);
    /// ```
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    pub(super) fn new(faults: Vec<String>) -> Self {
        Self { faults }
    }

    pub(in crate::server) fn check(faults: Vec<String>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self::new(faults)) }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.faults {
            [only] => f.write_str(only),
            all => {
                write!(f, "The server cannot be built, for {} reasons:", all.len())?;
                all.iter().try_for_each(|it| write!(f, "\n- {it}"))
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// The entries as a list; a duplicate name is a fault.
pub(super) fn list<T: Entry>(kind: &str, entries: Vec<T>, faults: &mut Vec<String>) -> List<T> {
    let mut list = List::default();
    for entry in entries {
        if list.find(entry.key()).is_some() {
            faults.push(format!("There are two {kind}s `{}`; rename one.", entry.key()));
        }
        list.put(entry);
    }
    list
}

/// Adds the states that a handler wants and the server lacks, and scopes that no token can have.
pub(in crate::server) fn check_signature(
    name: &str,
    signature: &Signature,
    states: &States,
    faults: &mut Vec<String>,
) {
    for (_, type_name) in signature.states.iter().filter(|(id, _)| !states.contains_key(id)) {
        faults.push(format!(
            "`{name}` takes a `State<{type_name}>`, but the server has none; add \
             `.state(..)` with one."
        ));
    }
    for scope in signature.scopes.iter().filter(|it| !is_scope(it)) {
        faults.push(format!(
            "`{name}` takes the scope `{scope}`, which nobody can be given: a scope is one word \
             of printable ASCII without `\"` and `\\`."
        ));
    }
}
