//! Runs a server as a whole program: the command line chooses stdio or HTTP.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use super::{Server, log};

/// How the server is reached.
#[derive(Debug, PartialEq, Eq)]
enum Mode {
    Stdio,
    #[cfg(feature = "http")]
    Http(String),
    Say(String),
}

/// A command line that cannot be understood.
#[derive(Debug, PartialEq, Eq)]
struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Server {
    /// Serves as the command line says; call it last in `main`. The default is stdio; `--http
    /// ADDRESS` serves HTTP (with the feature `http`). `--help` and `--version` work as usual.
    /// Failures go to stderr, and so do warnings and errors of handlers unless the program has a
    /// `tracing` subscriber of its own. On SIGTERM or Ctrl-C a server over HTTP drains and stops.
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use trunkline::{Server, tool};
    ///
    /// fn main() -> ExitCode {
    ///     Server::builder("hello", "1.0.0").tool(tool("hello", async || "Hello!")).build().run()
    /// }
    /// ```
    pub fn run(&self) -> ExitCode {
        log::to_stderr();
        match self.mode(std::env::args_os().skip(1)) {
            Ok(Mode::Say(text)) => {
                say(&text);
                ExitCode::SUCCESS
            }
            Ok(Mode::Stdio) => told(self.run_stdio()),
            #[cfg(feature = "http")]
            Ok(Mode::Http(address)) => told(self.run_http(&address)),
            Err(error) => told::<UsageError>(Err(error)),
        }
    }

    fn mode(&self, args: impl Iterator<Item = OsString>) -> Result<Mode, UsageError> {
        let args: Vec<_> = args.map(|it| it.to_string_lossy().into_owned()).collect();
        let info = &self.inner().core.info;
        match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => Ok(Mode::Stdio),
            ["--help" | "-h"] => Ok(Mode::Say(self.usage())),
            ["--version" | "-V"] => Ok(Mode::Say(format!("{} {}", info.name, info.version))),
            #[cfg(feature = "http")]
            ["--http"] => Ok(Mode::Http("127.0.0.1:8000".to_owned())),
            #[cfg(feature = "http")]
            ["--http", address] => Ok(Mode::Http(complete(address))),
            #[cfg(feature = "http")]
            [one] if one.starts_with("--http=") => {
                Ok(Mode::Http(complete(&one["--http=".len()..])))
            }
            // A known option with an argument too many.
            ["--help" | "-h" | "--version" | "-V", other, ..]
            | ["--http", _, other, ..]
            | [other, ..] => Err(UsageError(format!("`{other}` is not clear. {}", self.usage()))),
        }
    }

    fn usage(&self) -> String {
        let name = &self.inner().core.info.name;
        let http = if cfg!(feature = "http") { " [--http [ADDRESS]]" } else { "" };
        format!(
            "Usage: {name}{http}\nServes MCP over stdin and stdout{}.",
            if cfg!(feature = "http") {
                ", or over HTTP; by default at 127.0.0.1:8000"
            } else {
                ""
            }
        )
    }

    /// Serves HTTP until a signal stops it.
    #[cfg(feature = "http")]
    fn run_http(&self, address: &str) -> Result<(), UsageError> {
        let failed = |error: std::io::Error| {
            UsageError(format!("It cannot be served at `{address}`: {error}. Try another address."))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(failed)?.block_on(async {
            let listener = super::bind(address).await.map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            say(&format!("Listening at http://{address}/mcp"));
            self.http().serve(listener, shutdown_signal()).await.map_err(failed)
        })
    }
}

/// A port alone means this port on localhost.
#[cfg(feature = "http")]
fn complete(address: &str) -> String {
    match address.strip_prefix(':').unwrap_or(address) {
        port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
        _ => address.to_owned(),
    }
}

/// SIGTERM, or Ctrl-C.
#[cfg(feature = "http")]
async fn shutdown_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        return std::future::pending().await;
    };
    std::future::poll_fn(|cx| {
        let is_told = terminate.poll_recv(cx).is_ready() || interrupt.poll_recv(cx).is_ready();
        if is_told { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

fn told<E: fmt::Display>(served: Result<(), E>) -> ExitCode {
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// To stderr: stdout carries the protocol.
#[allow(clippy::print_stderr)]
fn say(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(args: &[&str]) -> Result<Mode, UsageError> {
        let server = Server::builder("travel", "1.2.3").build();
        server.mode(args.iter().map(OsString::from))
    }

    #[test]
    fn a_command_line_says_how_to_serve() {
        assert_eq!(mode(&[]), Ok(Mode::Stdio));
        assert_eq!(mode(&["--version"]), Ok(Mode::Say("travel 1.2.3".to_owned())));
        assert!(
            matches!(mode(&["--help"]), Ok(Mode::Say(text)) if text.starts_with("Usage: travel"))
        );
        assert!(mode(&["--port", "3"]).unwrap_err().0.starts_with("`--port` is not clear."));
        assert!(mode(&["--help", "me"]).unwrap_err().0.starts_with("`me` is not clear."));
        assert!(mode(&["serve"]).unwrap_err().0.starts_with("`serve` is not clear. Usage: travel"));
    }

    #[cfg(feature = "http")]
    #[test]
    fn an_address_is_for_http() {
        let address = "127.0.0.1:0".to_owned();
        assert_eq!(mode(&["--http", "127.0.0.1:0"]), Ok(Mode::Http(address.clone())));
        assert_eq!(mode(&["--http=127.0.0.1:0"]), Ok(Mode::Http(address.clone())));
        assert_eq!(mode(&["--http", ":0"]), Ok(Mode::Http(address)));
        assert!(mode(&["--http", "127.0.0.1:0", "more"]).unwrap_err().0.starts_with("`more`"));
        assert!(matches!(mode(&["--http"]), Ok(Mode::Http(_))));
    }
}
