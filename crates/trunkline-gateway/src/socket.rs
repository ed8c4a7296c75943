//! Listens on a Unix socket that only its owner can reach, and removes it at the end.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use trunkline_auth::tag::random_name;

/// A socket that exists as long as this value.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    /// No other process can take the path while it is locked.
    _lock: File,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens at a path. An existing socket is replaced if nobody answers on it.
pub(crate) async fn bind(path: &Path) -> io::Result<(UnixListener, Socket)> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let shown = path.display();
    let failed = |what: &str, error: io::Error| {
        io::Error::new(error.kind(), format!("{what} `{shown}`: {error}."))
    };
    // A longer path could be bound, but no client could connect.
    std::os::unix::net::SocketAddr::from_pathname(path)
        .map_err(|error| failed("Nobody could connect to", error))?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| failed("Cannot create the folder of", error))?;
    let lock = lock(path).map_err(|error| match error {
        TryLockError::WouldBlock => taken(path),
        TryLockError::Error(error) => failed("Cannot lock", error),
    })?;
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            let message = format!(
                "`{shown}` is no socket, and is left alone; remove it, or name another path."
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(_) => {
            if UnixStream::connect(path).await.is_ok() {
                return Err(taken(path));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("Cannot look at", error)),
    }
    let listener = placed(folder, path).map_err(|error| failed("Cannot listen at", error))?;
    Ok((listener, Socket { path: path.to_owned(), _lock: lock }))
}

/// Creates the socket in a private folder and moves it to its place once its permissions are right: at no
/// moment can others reach it.
fn placed(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    // Short: a socket path is limited to about a hundred bytes.
    let private = folder.join(format!(".{}", &random_name()[..6]));
    DirBuilder::new().mode(0o700).create(&private)?;
    let made = private.join("s");
    let listener = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, Permissions::from_mode(0o600))?;
        fs::rename(&made, path)?;
        Ok(listener)
    });
    if listener.is_err() {
        let _ = fs::remove_file(&made);
    }
    let _ = fs::remove_dir(&private);
    listener
}

fn lock(path: &Path) -> Result<File, TryLockError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(name);
    let file = file.map_err(TryLockError::Error)?;
    file.try_lock()?;
    Ok(file)
}

fn taken(path: &Path) -> io::Error {
    let message = format!(
        "A gateway is running already at `{}`; end that one, or give this one another state \
         folder with `--state DIR`.",
        path.display()
    );
    io::Error::new(io::ErrorKind::AddrInUse, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        std::env::temp_dir().join(format!("trunkline-{}", &random_name()[..12]))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn only_its_owner_reaches_it_and_it_is_gone_at_the_end() {
        let folder = folder();
        let path = folder.join("deep/admin.sock");
        let (listener, socket) = bind(&path).await.unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let (connected, accepted) = tokio::join!(UnixStream::connect(&path), listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 2, "the socket and its lock: {names:?}");
        drop(socket);
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_socket_is_replaced_only_if_nobody_answers() {
        let folder = folder();
        let path = folder.join("admin.sock");
        let first = bind(&path).await.unwrap();
        let error = bind(&path).await.unwrap_err();
        assert!(error.to_string().starts_with("A gateway is running already at"), "{error}");
        // As after `kill -9`: the socket exists, the lock does not.
        let (listener, socket) = first;
        drop(listener);
        drop(socket._lock.try_clone().unwrap());
        socket._lock.unlock().unwrap();
        let second = bind(&path).await.unwrap();
        assert!(UnixStream::connect(&path).await.is_ok());
        // A process that does not use the lock answers there.
        second.1._lock.unlock().unwrap();
        assert_eq!(bind(&path).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop((socket, second));
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let folder = folder();
        fs::create_dir(&folder).unwrap();
        let path = folder.join("notes.txt");
        fs::write(&path, "dear").unwrap();
        let error = bind(&path).await.unwrap_err().to_string();
        assert!(error.contains("is no socket") && error.contains("name another"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "dear");
        let long = folder.join("x".repeat(120));
        let error = bind(&long).await.unwrap_err().to_string();
        assert!(error.starts_with("Nobody could connect to"), "{error}");
        assert!(!long.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
