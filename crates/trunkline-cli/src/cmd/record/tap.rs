//! A tap on stdio: bytes pass untouched between us and the server's process, and are recorded before they do.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use trunkline_recording::line::{Note, Party};
use trunkline_transport::Limits;
use trunkline_transport::child::{Child, Command, Exit};
use trunkline_transport::stdio;

use super::file::RecordingFile;
use crate::failure::Failure;
use crate::interrupt::Signals;

/// Runs the server until it exits, and exits as it does.
pub(super) async fn run(server: Command, file: RecordingFile) -> Result<ExitCode> {
    // Before anything is started: from then on signals are the server's.
    let mut signals = Signals::new()?;
    let mut child = Child::spawn(server.share_stderr(), &Limits::default())
        .await
        .map_err(|error| Failure::reach("spawn", error.to_string()))?;
    let (to_server, from_server) = (child.take_stdin(), child.take_stdout());
    let (to_server, from_server) =
        to_server.zip(from_server).expect("a child that was just started has both");
    let exit = {
        let mut asking = std::pin::pin!(pass(Party::Client, stdio::stdin()?, to_server, &file));
        let mut answering =
            std::pin::pin!(pass(Party::Server, from_server, stdio::stdout()?, &file));
        let (mut is_asking, mut is_answering) = (true, true);
        loop {
            tokio::select! {
                () = &mut answering, if is_answering => is_answering = false,
                () = &mut asking, if is_asking => is_asking = false,
                number = signals.next() => child.signal(i32::from(number)),
                exit = child.exited() => {
                    // What the server said last still passes. A process that left its group may hold the pipe.
                    if is_answering {
                        let _ = timeout(LAST_WORDS, &mut answering).await;
                    }
                    break exit;
                }
            }
        }
    };
    let (code, signal) = match exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    file.finish(Some(Note::Exited { code, signal }));
    Ok(ExitCode::from(match exit {
        Exit::Code(code) => u8::try_from(code).unwrap_or(1),
        Exit::Signal(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)),
    }))
}

/// Passes bytes on until one side ends, then closes the other. A reader that is slow slows its writer.
async fn pass(
    by: Party,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    file: &RecordingFile,
) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let chunk = &buffer[..count];
        // A request stands in the file before its answer can.
        file.write(|recorder, now, out| recorder.bytes(by, chunk, now, out));
        if to.write_all(chunk).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    file.write(|recorder, now, out| recorder.ended(by, now, out));
}

const CHUNK: usize = 64 << 10;
/// How long the client may take to read what a server said before it exited.
const LAST_WORDS: Duration = Duration::from_secs(5);
