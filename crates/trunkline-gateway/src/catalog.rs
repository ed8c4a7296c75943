//! The catalog: reads the operator's YAML file into a checked, typed plan.
//!
//! `file` parses text into a tree with positions, `check` turns it into a [`plan::Plan`] or reports all faults,
//! `diff` compares two plans, `watch` notices changes of the file.

mod check;
mod diff;
mod env_file;
mod expand;
mod fault;
pub mod file;
mod keys;
pub mod plan;
mod schema;
mod watch;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use self::check::is_local;
pub use self::check::may_listen;
pub use self::diff::{Change, Diff, diff};
pub use self::env_file::{read_env_file, write_env_file};
pub use self::expand::{Env, Process};
pub(crate) use self::fault::nearest;
pub use self::fault::{Fault, Faults};
use self::plan::{Plan, Reach, ServerPlan};
pub use self::schema::schema;
pub use self::watch::Watch;

/// A valid catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The plan.
    pub plan: Plan,
    /// Warnings about the file.
    pub warnings: Vec<Fault>,
    /// The files that it takes values from, beside itself.
    pub files: BTreeSet<PathBuf>,
}

/// Reads a catalog. `origin` is the file of the text: messages name it, and paths are relative to its folder.
///
/// # Errors
///
/// All faults at once.
pub fn load(text: &str, origin: &Path, env: &dyn Env) -> Result<Loaded, Faults> {
    let faults =
        |faults, warnings, rest| Faults { file: origin.to_owned(), faults, warnings, rest };
    let document = match file::read(text) {
        Ok(document) => document,
        Err(it) => {
            let fault = Fault {
                path: String::new(),
                line: it.at.line,
                column: it.at.column,
                message: it.message,
                suggestion: it.suggestion,
                excerpt: it.excerpt,
                shows: false,
            };
            return Err(faults(vec![fault], Vec::new(), None));
        }
    };
    // Absolute: programs may run in another folder, where a relative path would not be found.
    let whole = std::path::absolute(origin).unwrap_or_else(|_| origin.to_owned());
    let base = whole.parent().unwrap_or(Path::new("/"));
    let checked = check::check(&document, base, env);
    let check::Checked { plan, faults: wrong, warnings, files, can_run, .. } = checked;
    let loaded = Loaded { plan, warnings, files };
    match wrong.is_empty() {
        true => Ok(loaded),
        false => {
            let warnings = loaded.warnings.clone();
            Err(faults(wrong, warnings, can_run.then(|| Box::new(loaded))))
        }
    }
}

/// Reads a catalog from a file, with the environment of this process.
///
/// # Errors
///
/// That the file cannot be read, or all its faults.
pub fn load_file(path: &Path) -> Result<Loaded, Faults> {
    match watch::read_text(path, file::LARGEST as u64) {
        Ok(text) => load(&text, path, &Process),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// A catalog with one server, a program called `demo`.
pub fn built_in(command: Vec<String>) -> Plan {
    let mut words = command.into_iter();
    let mut server = ServerPlan::stdio("demo", words.next().unwrap_or_default());
    if let Reach::Stdio { args, .. } = &mut server.reach {
        args.extend(words);
    }
    Plan { servers: [("demo".to_owned(), Arc::new(server))].into(), ..Plan::default() }
}

/// Reports an unreadable file like a fault in it.
fn unreadable(path: &Path, error: &std::io::Error) -> Faults {
    let fault = Fault {
        path: String::new(),
        line: 1,
        column: 1,
        message: format!("The file cannot be read: {error}."),
        suggestion: Some("Check its path, and who may read it.".to_owned()),
        excerpt: None,
        shows: false,
    };
    Faults { file: path.to_owned(), faults: vec![fault], warnings: Vec::new(), rest: None }
}

#[cfg(test)]
mod tests;
