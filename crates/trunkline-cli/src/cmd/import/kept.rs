//! Secrets → an `envFile` that only its owner can read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trunkline_gateway::catalog::{read_env_file, write_env_file};

use crate::clients::{Have, Secrets};
use crate::cmd::connect::file::Seen;
use crate::failure::Failure;

/// The file, if there is to be one.
pub(super) struct Kept(Option<Inner>);

struct Inner {
    seen: Seen,
    values: BTreeMap<String, String>,
    /// Its name for the catalog; `None` if the catalog has it already.
    name: Option<String>,
}

impl Kept {
    /// Reads the file that is named, for the catalog at `catalog`.
    pub(super) fn open(path: Option<&Path>, catalog: &Path, have: &Have) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self(None)) };
        let folder = catalog.parent().unwrap_or(Path::new("."));
        let seen = Seen::read(&whole(path)?)?;
        let name = match &have.env_file {
            None => Some(name(&seen.path, folder)?),
            Some(there) => {
                let there = Seen::read(&whole(&folder.join(there))?)?;
                if there.path != seen.path {
                    let why = format!(
                        "The catalog has its variables from `{}`, and there is one such file.",
                        there.path.display()
                    );
                    return Err(Failure::usage(why).advice("Name that file."));
                }
                None
            }
        };
        let values = read_env_file(seen.text.as_deref().unwrap_or_default()).map_err(|line| {
            let why = format!("Line {line} of `{}` is no `NAME=value`.", seen.path.display());
            Failure::usage(why).advice("Correct it, or name another file.")
        })?;
        Ok(Self(Some(Inner { seen, values, name })))
    }

    /// The variables that are in it.
    pub(super) fn values(&self) -> BTreeMap<String, String> {
        self.0.as_ref().map(|it| it.values.clone()).unwrap_or_default()
    }

    /// Where it is.
    pub(super) fn path(&self) -> Option<&Path> {
        self.0.as_ref().map(|it| it.seen.path.as_path())
    }

    /// What to write into the catalog, if it does not name the file yet.
    pub(super) fn name_to_write(&self) -> Option<&str> {
        self.0.as_ref().and_then(|it| it.name.as_deref())
    }

    /// Removes from `variables` those that it has or gets, and returns the latter.
    pub(super) fn take(
        &self,
        variables: &mut Vec<String>,
        secrets: &Secrets,
    ) -> BTreeMap<String, String> {
        let mut stored = BTreeMap::new();
        let Some(inner) = &self.0 else { return stored };
        variables.retain(|name| match secrets.get(name) {
            Some(secret) => {
                stored.insert(name.clone(), secret.to_owned());
                false
            }
            None => !inner.values.contains_key(name),
        });
        stored
    }

    /// Writes them, readable by the owner only.
    pub(super) fn write(&mut self, stored: &BTreeMap<String, String>) -> Result<(), Failure> {
        let Some(inner) = self.0.as_mut().filter(|_| !stored.is_empty()) else { return Ok(()) };
        let text = inner.seen.text.clone().unwrap_or_default();
        inner.seen.write(&write_env_file(&text, stored), true)
    }
}

fn whole(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("`{}` is no path: {error}.", path.display())))
}

/// The name of a file in a catalog: relative to the catalog's folder if it is below it.
fn name(path: &Path, folder: &Path) -> Result<String, Failure> {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let whole = match (path.parent().map(std::fs::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    };
    let name = whole.strip_prefix(&folder).unwrap_or(&whole);
    let name = name.to_str().filter(|it| !it.contains(['$', '\n']));
    name.map(str::to_owned).ok_or_else(|| {
        let why = format!("`{}` cannot be written into a catalog.", path.display());
        Failure::usage(why).advice("Name a file whose path is plain text.")
    })
}
