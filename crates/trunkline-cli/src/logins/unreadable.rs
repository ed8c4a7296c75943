//! Stored logins that can no longer be parsed.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use trunkline_auth::url::shown;

/// Something that cannot be parsed.
pub(crate) enum Damaged {
    /// The profile of this server.
    Login(String),
    /// A file without a readable name.
    File(PathBuf),
}

impl Damaged {
    /// Whether it is about the server with this key.
    pub(super) fn is_about(&self, key: &str) -> bool {
        matches!(self, Self::Login(url) if super::key(url) == key)
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Login(url) => {
                write!(f, "What is kept of the login to `{}` cannot be understood.", shown(url))
            }
            Self::File(file) => {
                let file = file.display();
                write!(f, "`{file}` held something of a login, and cannot be understood.")
            }
        }
    }
}

/// The files of a folder that do not begin with a name.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.filter_map(|it| Some(it.ok()?.path()));
    let files = files.filter(|it| it.extension().is_some_and(|it| it == "login"));
    let mut files: Vec<_> = files.filter(|it| !has_name(it)).collect();
    files.sort();
    files
}

/// An unreadable file is reported elsewhere.
fn has_name(path: &Path) -> bool {
    if !fs::symlink_metadata(path).is_ok_and(|it| it.is_file()) {
        return true;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|it| it.take(LONGEST).read_to_end(&mut start));
    let end = start.iter().position(|it| *it == b'\n');
    read.is_err() || end.is_some_and(|end| str::from_utf8(&start[..end]).is_ok())
}

/// The longest name that is read.
const LONGEST: u64 = 64 * 1024;
