//! A server as a whole program: what its command line says → stdio or HTTP.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use super::{Server, log};

/// How a server is to be reached.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    Stdio,
    #[cfg(feature = "http")]
    Http(String),
    Say(String),
}

/// A command line that says nothing sensible.
#[derive(Debug, PartialEq, Eq)]
struct Unclear(String);

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Server {
    /// Serves as the command line says, as the last thing that `main` does: over stdio if it says
    /// nothing; over HTTP after `--http ADDRESS` (with the feature `http`); `--help` and `--version`
    /// do what they should. What goes wrong is told on stderr, and so are warnings and errors of
    /// handlers unless the program has a `tracing` subscriber of its own. SIGTERM and Ctrl-C let a
    /// server over HTTP finish what it is at.
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
        match self.way(std::env::args_os().skip(1)) {
            Ok(Way::Say(text)) => {
                say(&text);
                ExitCode::SUCCESS
            }
            Ok(Way::Stdio) => told(self.run_stdio()),
            #[cfg(feature = "http")]
            Ok(Way::Http(address)) => told(self.run_http(&address)),
            Err(unclear) => told::<Unclear>(Err(unclear)),
        }
    }

    fn way(&self, args: impl Iterator<Item = OsString>) -> Result<Way, Unclear> {
        let args: Vec<_> = args.map(|it| it.to_string_lossy().into_owned()).collect();
        let info = &self.inner().core.info;
        match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => Ok(Way::Stdio),
            ["--help" | "-h"] => Ok(Way::Say(self.usage())),
            ["--version" | "-V"] => Ok(Way::Say(format!("{} {}", info.name, info.version))),
            #[cfg(feature = "http")]
            ["--http"] => Ok(Way::Http("127.0.0.1:8000".to_owned())),
            #[cfg(feature = "http")]
            ["--http", address] => Ok(Way::Http(complete(address))),
            #[cfg(feature = "http")]
            [one] if one.starts_with("--http=") => Ok(Way::Http(complete(&one["--http=".len()..]))),
            // What is known may be followed by too much.
            ["--help" | "-h" | "--version" | "-V", other, ..]
            | ["--http", _, other, ..]
            | [other, ..] => Err(Unclear(format!("`{other}` is not clear. {}", self.usage()))),
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

    /// Serves HTTP until it is told to stop.
    #[cfg(feature = "http")]
    fn run_http(&self, address: &str) -> Result<(), Unclear> {
        let failed = |error: std::io::Error| {
            Unclear(format!("It cannot be served at `{address}`: {error}. Try another address."))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(failed)?.block_on(async {
            let listener = super::bind(address).await.map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            say(&format!("Listening at http://{address}/mcp"));
            self.http().serve(listener, told_to_stop()).await.map_err(failed)
        })
    }
}

/// An address of which only the port is given is on this machine.
#[cfg(feature = "http")]
fn complete(address: &str) -> String {
    match address.strip_prefix(':').unwrap_or(address) {
        port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
        _ => address.to_owned(),
    }
}

/// SIGTERM, or Ctrl-C.
#[cfg(feature = "http")]
async fn told_to_stop() {
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

/// To stderr: stdout is for messages.
#[allow(clippy::print_stderr)]
fn say(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(args: &[&str]) -> Result<Way, Unclear> {
        let server = Server::builder("travel", "1.2.3").build();
        server.way(args.iter().map(OsString::from))
    }

    #[test]
    fn a_command_line_says_how_to_serve() {
        assert_eq!(way(&[]), Ok(Way::Stdio));
        assert_eq!(way(&["--version"]), Ok(Way::Say("travel 1.2.3".to_owned())));
        assert!(
            matches!(way(&["--help"]), Ok(Way::Say(text)) if text.starts_with("Usage: travel"))
        );
        assert!(way(&["--port", "3"]).unwrap_err().0.starts_with("`--port` is not clear."));
        assert!(way(&["--help", "me"]).unwrap_err().0.starts_with("`me` is not clear."));
        assert!(way(&["serve"]).unwrap_err().0.starts_with("`serve` is not clear. Usage: travel"));
    }

    #[cfg(feature = "http")]
    #[test]
    fn an_address_is_for_http() {
        let address = "127.0.0.1:0".to_owned();
        assert_eq!(way(&["--http", "127.0.0.1:0"]), Ok(Way::Http(address.clone())));
        assert_eq!(way(&["--http=127.0.0.1:0"]), Ok(Way::Http(address.clone())));
        assert_eq!(way(&["--http", ":0"]), Ok(Way::Http(address)));
        assert!(way(&["--http", "127.0.0.1:0", "more"]).unwrap_err().0.starts_with("`more`"));
        assert!(matches!(way(&["--http"]), Ok(Way::Http(_))));
    }
}
