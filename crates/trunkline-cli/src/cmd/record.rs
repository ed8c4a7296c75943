//! `trunkline record FILE -- COMMAND…` and `trunkline record FILE URL`

mod file;
mod relay;
mod tap;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use tokio::runtime::Builder;
use trunkline_auth::url::shown;
use trunkline_recording::line::Begin;
use trunkline_recording::redact::Redactor;
use trunkline_wire::text;

use crate::loopback;
use crate::recordings::now;
use crate::target::{self, Given};
use file::RecordingFile;

/// Records what a client and a server say to each other, as JSON lines.
///
/// With a command it is a tap: put it into a host's settings in the place of the server's command. With a URL it
/// listens on this machine and passes everything on to that server. Messages pass as they are; secrets are masked
/// before they are written, the values of `--env` and `--header` among them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The recording; it must not exist yet.
    file: PathBuf,
    /// Append to the file if it exists.
    #[arg(long)]
    append: bool,
    /// Stop recording before the file is larger than this, such as 64MiB; messages still pass.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max: Option<u64>,
    /// Mask the members of this name, wherever they are.
    #[arg(long, value_name = "NAME")]
    redact: Vec<String>,
    /// Where to listen for the client of a server at a URL.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7375")]
    listen: SocketAddr,
    #[command(flatten)]
    given: Given,
    /// The server: a program and its arguments, or a URL, which needs no `--` before it.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    fn begin(&self) -> Begin {
        let (transport, server) = match target::url(&self.command) {
            Some(url) => ("http", shown(url)),
            // Its arguments may hold secrets.
            None => ("stdio", self.command[0].to_string_lossy().into_owned()),
        };
        Begin {
            at: text::rfc3339(std::time::Duration::from_millis(now())),
            by: concat!("trunkline ", env!("CARGO_PKG_VERSION")).to_owned(),
            transport: transport.to_owned(),
            server,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let redactor = Redactor::new(args.redact.iter().cloned(), args.given.values());
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcome = match target::url(&args.command) {
        Some(url) => {
            let target = args.given.http_target(url)?;
            loopback::check(args.listen)?;
            let file = RecordingFile::create(&args.file, args.append, args.max, redactor)?;
            file.write(|recorder, now, out| recorder.begin(args.begin(), now, out));
            runtime.block_on(relay::run(target, args.listen, file))
        }
        None => {
            let file = RecordingFile::create(&args.file, args.append, args.max, redactor)?;
            file.write(|recorder, now, out| recorder.begin(args.begin(), now, out));
            runtime.block_on(tap::run(args.given.command(&args.command), file))
        }
    };
    // A thread may still be reading from a terminal.
    runtime.shutdown_background();
    outcome
}

/// As [`text::size`] reads it, with room for a message.
fn size(text: &str) -> Result<u64, String> {
    let size =
        text::size(text).ok_or("write it as a number of bytes, or as 64KiB, 64MiB or 1GiB")?;
    match size {
        1024.. => Ok(size),
        _ => Err("give at least 1KiB, or there is no room for a message".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("4096", 4096),
            ("64KiB", 65536),
            ("64k", 65536),
            ("2MiB", 2 << 20),
            ("1GB", 1_000_000_000),
        ] {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for text in ["", "MiB", "1.5MiB", "12 parsecs", "17", "99999999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
