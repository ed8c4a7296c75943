//! The state folder of a gateway: `--state`, or the default one.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use trunkline_auth::digest::sha256_bytes;
use trunkline_auth::tag::random_name;

/// The folder, created if it does not exist.
pub(crate) fn folder(named: Option<PathBuf>) -> Result<PathBuf> {
    let folder = place(named)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("The folder `{}` cannot be made", folder.display()))?;
    Ok(folder)
}

/// The key that seals session ids, which survive a restart; generated if there is none.
pub(crate) fn key(state: &Path) -> Result<[u8; 32]> {
    let path = state.join("session.key");
    let cannot = || format!("The key in `{}` cannot be kept", path.display());
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match made {
        Ok(mut file) => {
            let text = format!("{}{}", random_name(), random_name());
            file.write_all(text.as_bytes()).with_context(cannot)?;
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(cannot),
    }
    let text = std::fs::read_to_string(&path).with_context(cannot)?;
    if text.trim().len() < LEAST {
        bail!("`{}` holds no key. Remove it, and one is made up", path.display());
    }
    Ok(sha256_bytes(text.trim().as_bytes()))
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

/// The shortest key that cannot be guessed.
const LEAST: usize = 32;
