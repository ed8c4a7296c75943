//! Private files and folders, created durably.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::StoreError;

/// Opens a file to read and write, and creates it if necessary.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a folder and its parents, durably. An existing one is left as it is.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make_private(parent)?;
    }
    create_private(path)?;
    sync_folder(parent.unwrap_or(Path::new(".")))
}

/// Creates folders in this one. It becomes durable once for all of them: that takes milliseconds each time, and a
/// gateway's first start waits for it.
pub(super) fn make_private_in(root: &Path, names: &[&str]) -> io::Result<()> {
    let mut is_any_new = false;
    for name in names {
        let path = root.join(name);
        if !path.is_dir() {
            create_private(&path)?;
            is_any_new = true;
        }
        keep_private(&path)?;
    }
    if is_any_new { sync_folder(root) } else { Ok(()) }
}

/// Creates a folder that only we can enter, not durably yet.
fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Removes the permissions of others on a folder of ours.
fn keep_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Makes changes in a folder durable. Only Unix can open a folder; elsewhere the file system does this
/// itself.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// The bytes of a file; `None` if there is none.
pub(super) fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// An error that says what could not be done to which path.
pub(super) fn unavailable(path: &Path, done: &str) -> impl FnOnce(io::Error) -> StoreError {
    move |error| {
        StoreError::Unavailable(format!(
            "`{}` could not be {done}: {error}. Check that the folder is there, is yours and has room.",
            path.display()
        ))
    }
}
