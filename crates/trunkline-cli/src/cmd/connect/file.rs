//! Reads another program's file, and replaces it atomically.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trunkline_gateway::policy::stamp::rfc3339;

use crate::failure::Failure;

/// A file as it was read.
pub(crate) struct Seen {
    /// Its real path.
    pub(crate) path: PathBuf,
    /// Its text; `None` if there is no file.
    pub(crate) text: Option<String>,
    mode: u32,
}

impl Seen {
    /// Reads a file. Symbolic links are followed, so that a write goes to their target.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let (path, metadata) = match fs::canonicalize(path) {
            Ok(path) => (path.clone(), Some(fs::metadata(&path).map_err(|it| unread(&path, &it))?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    let why = format!("`{}` is a link that leads nowhere.", path.display());
                    return Err(Failure::usage(why).advice("Remove it, or make what it leads to."));
                }
                (path.to_owned(), None)
            }
            Err(error) => return Err(unread(path, &error)),
        };
        let Some(metadata) = metadata else { return Ok(Self { path, text: None, mode: 0o600 }) };
        if metadata.len() > LARGEST {
            let why = format!("`{}` is larger than any file of settings.", path.display());
            return Err(Failure::usage(why));
        }
        let bytes = fs::read(&path).map_err(|error| unread(&path, &error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let why = format!("`{}` is no text: byte {at} is not UTF-8.", path.display());
            Failure::usage(why)
        })?;
        Ok(Self { path, text: Some(text), mode: metadata.permissions().mode() & 0o777 })
    }

    /// Backs up the text beside the file, under a name with the time.
    pub(crate) fn back_up(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(text) = &self.text else { return Ok(None) };
        let name = format!("{}.bak-{}", self.path.display(), stamp(SystemTime::now()));
        let names = std::iter::once(name.clone()).chain((2..100).map(|it| format!("{name}-{it}")));
        for name in names {
            match put(Path::new(&name), text, self.mode) {
                Ok(()) => return Ok(Some(name.into())),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritten(Path::new(&name), &error)),
            }
        }
        Err(Failure::usage(format!("There are too many backups like `{name}`.")))
    }

    /// Replaces the text that was read, unless the file has changed since. With `is_private` only
    /// the owner can read it.
    pub(crate) fn write(&self, text: &str, is_private: bool) -> Result<(), Failure> {
        let fail = |error: io::Error| unwritten(&self.path, &error);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let new = self.path.with_file_name(format!(".{name}.trunkline-{}", std::process::id()));
        let mode = if is_private { self.mode & 0o600 } else { self.mode };
        put(&new, text, mode).map_err(fail)?;
        let outcome = match self.is_as_it_was() {
            true => fs::rename(&new, &self.path).map_err(fail),
            false => {
                let why = format!("`{}` has been changed meanwhile.", self.path.display());
                Err(Failure::usage(why).advice("Run the command again."))
            }
        };
        if outcome.is_err() {
            let _ = fs::remove_file(&new);
        }
        outcome
    }

    /// Removes the file, unless it has changed since.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        match self.is_as_it_was() {
            true => fs::remove_file(&self.path).map_err(|error| unwritten(&self.path, &error)),
            false => Err(Failure::usage(format!("`{}` has been changed.", self.path.display()))),
        }
    }

    /// The texts of the backups, newest first.
    pub(crate) fn backups(&self) -> Vec<String> {
        let Some((folder, name)) = self.path.parent().zip(self.path.file_name()) else {
            return Vec::new();
        };
        let prefix = format!("{}.bak-", name.to_string_lossy());
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|it| it.starts_with(&prefix));
        names.sort();
        names.iter().rev().filter_map(|it| fs::read_to_string(folder.join(it)).ok()).collect()
    }

    fn is_as_it_was(&self) -> bool {
        fs::read_to_string(&self.path).ok() == self.text
    }
}

/// Creates a file that does not exist yet.
fn put(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

fn unread(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("`{}` cannot be read: {error}.", path.display()))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("`{}` cannot be written: {error}.", path.display()))
        .advice("Check who may write there; nothing was changed.")
}

/// A timestamp for a file name, in UTC: `20261115-213000`.
fn stamp(at: SystemTime) -> String {
    let text = rfc3339(at);
    let seconds = text.split('.').next().unwrap_or(&text);
    seconds.replace(['-', ':'], "").replace('T', "-")
}

/// Larger than any settings file.
const LARGEST: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn times_are_written_as_names() {
        for (seconds, expected) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_782_400, "20000229-000000"),
            (1_704_067_199, "20231231-235959"),
            (1_794_777_000, "20261115-211000"),
        ] {
            assert_eq!(stamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
