//! A played client ⇄ a server's process.

use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use trunkline_recording::as_client::ClientPlayer;
use trunkline_recording::lines::{ClientLines, Turn};
use trunkline_transport::Limits;
use trunkline_transport::child::{Child, Command};

use super::{LAST_NEWS, PAUSE};
use crate::failure::Failure;
use crate::recordings::now;

/// Plays until everything is answered; otherwise says why not.
pub(super) async fn play(
    player: &mut ClientPlayer,
    command: Command,
    patience: Duration,
) -> Result<Option<String>> {
    let limits = Limits::default();
    let mut child = Child::spawn(command, &limits)
        .await
        .map_err(|error| Failure::reach("spawn", error.to_string()))?;
    let (stdin, stdout) = (child.take_stdin(), child.take_stdout());
    let (stdin, mut stdout) = stdin.zip(stdout).expect("a new child has both");
    let mut stdin = Some(stdin);
    let mut lines = ClientLines::new(player, limits.message_bytes);
    let mut buffer = vec![0; CHUNK];
    let ended = loop {
        let is_done = match lines.say(now()) {
            Turn::Pause => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            turn => turn == Turn::Done,
        };
        if lines.is_closed() {
            stdin = None;
        }
        let patience = match is_done {
            true if lines.unsent().is_empty() && !lines.is_missing_news() => break None,
            true => LAST_NEWS,
            false => patience,
        };
        // Both at once: a server that is not read may not read.
        let moved = timeout(patience, async {
            tokio::select! {
                sent = send(&mut stdin, lines.unsent()), if !lines.unsent().is_empty() => Moved::Sent(sent),
                read = stdout.read(&mut buffer) => Moved::Read(read),
            }
        });
        match moved.await {
            Err(_) if is_done => break None,
            Err(_) => break Some("The server did not answer in time.".to_owned()),
            Ok(Moved::Sent(Ok(count))) => lines.sent(count),
            Ok(Moved::Read(Ok(count @ 1..))) => lines.hear(&buffer[..count], now()),
            Ok(_) if is_done => break None,
            Ok(_) => break Some("The server ended the conversation.".to_owned()),
        }
    };
    drop(stdin);
    drop(stdout);
    child.stop().await;
    Ok(ended)
}

enum Moved {
    Sent(std::io::Result<usize>),
    Read(std::io::Result<usize>),
}

/// Writes some of it; what is to be said after the end is not.
async fn send(to: &mut Option<impl AsyncWrite + Unpin>, bytes: &[u8]) -> std::io::Result<usize> {
    match to {
        Some(to) => to.write(bytes).await,
        None => Ok(bytes.len()),
    }
}

const CHUNK: usize = 64 << 10;
