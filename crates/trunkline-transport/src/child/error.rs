//! Why a child did not start, and what to do about it.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::command::Parts;

/// How far the start of a child got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Creating the pipes.
    Pipes,
    /// Changing to its directory.
    Directory,
    /// Finding and executing the program.
    Program,
}

/// A child that did not start.
#[derive(Debug)]
pub struct SpawnError {
    /// How far it got.
    pub stage: Stage,
    /// The program, as it was given.
    pub program: String,
    /// The error of the system.
    pub cause: io::Error,
    message: String,
}

impl SpawnError {
    pub(super) fn new(stage: Stage, program: &OsStr, cause: io::Error) -> Self {
        let program = program.to_string_lossy().into_owned();
        let advice = match cause.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => "Too many files are open; raise `ulimit -n`.",
            Some(libc::EAGAIN | libc::ENOMEM) => "The system has no room for another process.",
            Some(libc::E2BIG) => "Its arguments and variables are too long together.",
            _ => "Try the command in a terminal.",
        };
        let message = format!("`{program}` could not be started: {cause}. {advice}");
        Self { stage, program, cause, message }
    }

    fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// Explains an error of `spawn`: the system says "not found" for four different causes.
    pub(super) fn explain(command: &Parts, cause: io::Error) -> Self {
        let program = command.program().to_string_lossy().into_owned();
        if let Some(directory) = command.directory().filter(|it| !it.is_dir()) {
            let message = format!(
                "`{program}` could not be started: its directory `{}` does not exist. Create it or name another.",
                directory.display()
            );
            return Self::new(Stage::Directory, command.program(), cause).with_message(message);
        }
        let file = locate(command);
        let error = Self::new(Stage::Program, command.program(), cause);
        let has_slash = program.contains('/');
        let message = match (error.cause.kind(), file) {
            (io::ErrorKind::NotFound, None) if has_slash => {
                format!(
                    "`{program}` does not exist. Check the path; it is relative to the directory of the command."
                )
            }
            (io::ErrorKind::NotFound, _) if program.is_empty() => {
                "The command is empty. Name the program that is to be started.".to_owned()
            }
            (io::ErrorKind::NotFound, None) => {
                format!("`{program}` was not found on PATH. Install it, or give its full path.")
            }
            (io::ErrorKind::NotFound, Some(file)) => format!(
                "`{}` exists, but the interpreter it names does not. Check its first line, or the architecture it was built for.",
                file.display()
            ),
            (io::ErrorKind::PermissionDenied, file) => format!(
                "`{}` may not be executed. Check its permissions (`chmod +x`) and that it is a file.",
                file.unwrap_or_else(|| program.clone().into()).display()
            ),
            (_, Some(file)) if error.cause.raw_os_error() == Some(libc::ENOEXEC) => format!(
                "`{}` is no program this system can run. A script needs a first line such as `#!/bin/sh`.",
                file.display()
            ),
            _ => return error,
        };
        error.with_message(message)
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// The file that would be executed: preferably an executable one.
fn locate(command: &Parts) -> Option<PathBuf> {
    let program = Path::new(command.program());
    if command.program().as_encoded_bytes().contains(&b'/') {
        let file = command.directory().unwrap_or(Path::new("")).join(program);
        return file.exists().then_some(file);
    }
    let path = command.path()?;
    let files: Vec<PathBuf> =
        std::env::split_paths(&path).map(|it| it.join(program)).filter(|it| it.is_file()).collect();
    let may_run =
        |file: &&PathBuf| file.metadata().is_ok_and(|it| it.permissions().mode() & 0o111 != 0);
    files.iter().find(may_run).or(files.first()).cloned()
}
