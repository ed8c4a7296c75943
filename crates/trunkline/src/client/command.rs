//! What to run as a server, as often as needed: some servers must be started twice.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_transport::child;

/// A program to run as a server. It gets few of our variables
/// ([`INHERITED`](child::INHERITED)) and nothing else that is ours.
#[derive(Clone)]
pub struct Command(Arc<dyn Fn() -> child::Command + Send + Sync>);

impl Command {
    /// Runs `program`, looked up on `PATH` if it has no slash.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        Self(Arc::new(move || child::Command::new(&program)))
    }

    /// One more argument.
    #[must_use]
    pub fn arg(self, arg: impl Into<OsString>) -> Self {
        let arg = arg.into();
        self.and(move |command| command.arg(&arg))
    }

    /// More arguments.
    #[must_use]
    pub fn args(self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        self.and(move |command| command.args(&args))
    }

    /// Sets a variable for the server.
    #[must_use]
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.and(move |command| command.env(&name, &value))
    }

    /// Hands one more of our own variables on, if we have it.
    #[must_use]
    pub fn inherit(self, name: impl Into<OsString>) -> Self {
        let name = name.into();
        self.and(move |command| command.inherit(&name))
    }

    /// Runs in `directory`.
    #[must_use]
    pub fn current_dir(self, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        self.and(move |command| command.current_dir(&directory))
    }

    /// Calls `on_line` with each line the server writes to stderr, made safe for a terminal.
    #[must_use]
    pub fn on_stderr(self, on_line: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let on_line = Arc::new(on_line);
        self.and(move |command| {
            let on_line = Arc::clone(&on_line);
            command.on_stderr(move |line| on_line(line))
        })
    }

    pub(super) fn build(&self) -> child::Command {
        (self.0)()
    }

    fn and(self, more: impl Fn(child::Command) -> child::Command + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || more((self.0)())))
    }
}

/// The command line, for messages. Variables stay out: they hold secrets.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.build().fmt(f)
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self})")
    }
}
