//! Finds the catalog: the one that is named, the one in this folder, or the user's own.

use std::path::{Path, PathBuf};

/// The name of a catalog in a folder.
pub(crate) const NAME: &str = "trunkline.yaml";

/// The catalog to use; `None` if there is none.
pub(crate) fn meant(named: Option<&Path>) -> Option<PathBuf> {
    let there = |it: PathBuf| it.is_file().then_some(it);
    named.map(Path::to_owned).or_else(|| there(NAME.into())).or_else(|| there(own()?))
}

/// The path of the user's own catalog, the default.
pub(crate) fn own() -> Option<PathBuf> {
    let folder = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|it| it.is_absolute())
    };
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    Some(config?.join("trunkline").join(NAME))
}
