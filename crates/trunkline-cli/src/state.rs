//! Where a gateway keeps what must outlive it: `--state`, or the usual folder.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder, made if it is not there.
pub(crate) fn folder(named: Option<PathBuf>) -> Result<PathBuf> {
    let folder = place(named)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("The folder `{}` cannot be made", folder.display()))?;
    Ok(folder)
}

/// Where it is.
pub(crate) fn place(named: Option<PathBuf>) -> Result<PathBuf> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|it| it.is_absolute())
    };
    let usual = || {
        variable("XDG_STATE_HOME")
            .map(|it| it.join("trunkline"))
            .or_else(|| variable("HOME").map(|it| it.join(Path::new(".local/state/trunkline"))))
    };
    named.or_else(usual).context("There is no `HOME`. Name a folder with `--state`")
}
