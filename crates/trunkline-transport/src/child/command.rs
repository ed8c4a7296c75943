//! A program, its arguments, environment and directory.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The variables that a child inherits by default. Any other may be a secret.
pub const INHERITED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// A program to run as a server, as often as needed.
#[derive(Clone)]
pub struct Command {
    parts: Parts,
    on_line: Option<OnLine>,
}

/// Receives each line of stderr, made safe for a terminal.
pub(super) type OnLine = Arc<dyn Fn(&str) + Send + Sync>;

/// What the spawner needs.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    program: OsString,
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    inherited: Vec<OsString>,
    directory: Option<PathBuf>,
    /// Whether the orphan reaper watches the group of the child.
    is_watched: bool,
    /// Whether the child writes to our own stderr.
    shares_stderr: bool,
}

impl Command {
    /// Runs `program`, looked up on `PATH` if it has no slash.
    pub fn new(program: impl Into<OsString>) -> Self {
        let parts = Parts {
            program: program.into(),
            args: Vec::new(),
            variables: Vec::new(),
            inherited: INHERITED.map(OsString::from).to_vec(),
            directory: None,
            is_watched: true,
            shares_stderr: false,
        };
        Self { parts, on_line: None }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.parts.args.push(arg.into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.parts.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable for the child.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.parts.variables.push((name.into(), value.into()));
        self
    }

    /// Passes one more of our own variables on, if it is set. See [`INHERITED`] for the defaults.
    #[must_use]
    pub fn inherit(mut self, name: impl Into<OsString>) -> Self {
        self.parts.inherited.push(name.into());
        self
    }

    /// Runs in `directory`.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.parts.directory = Some(directory.into());
        self
    }

    /// Starts no [orphan reaper](super::orphan_reaper) for this child, which saves a process. If this
    /// process is killed by SIGKILL, processes that the child has started survive.
    #[must_use]
    pub fn without_orphan_reaper(mut self) -> Self {
        self.parts.is_watched = false;
        self
    }

    /// Calls `on_line` with each line of the child's stderr: truncated to the limit, control characters
    /// escaped. Without it, stderr is only kept for error messages.
    #[must_use]
    pub fn on_stderr(mut self, on_line: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_line = Some(Arc::new(on_line));
        self
    }

    /// Lets the child write to our own stderr, byte by byte as it does. Then nothing of it is kept for error
    /// messages.
    #[must_use]
    pub fn share_stderr(mut self) -> Self {
        self.parts.shares_stderr = true;
        self
    }

    /// The program, as it was given.
    pub fn program(&self) -> &OsStr {
        &self.parts.program
    }

    pub(super) fn into_parts(self) -> (Parts, Option<OnLine>) {
        (self.parts, self.on_line)
    }
}

/// The command line, for messages. Variables stay out: they hold secrets.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.parts.program.to_string_lossy())?;
        self.parts.args.iter().try_for_each(|arg| write!(f, " {}", arg.to_string_lossy()))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self})")
    }
}

impl Parts {
    pub(super) fn program(&self) -> &OsStr {
        &self.program
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    pub(super) fn is_watched(&self) -> bool {
        self.is_watched
    }

    pub(super) fn shares_stderr(&self) -> bool {
        self.shares_stderr
    }

    /// The `PATH` for the program: the child's own.
    pub(super) fn path(&self) -> Option<OsString> {
        self.environment()
            .into_iter()
            .rev()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value)
    }

    /// Exactly the variables the child gets; later ones win.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let ours =
            self.inherited.iter().filter_map(|name| Some((name.clone(), std::env::var_os(name)?)));
        // Shells export functions as values that start like this; they are dropped.
        let ours = ours.filter(|(_, value)| !value.as_encoded_bytes().starts_with(b"()"));
        ours.chain(self.variables.iter().cloned()).collect()
    }

    pub(super) fn to_std(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.environment());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}
