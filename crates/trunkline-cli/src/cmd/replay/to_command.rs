//! A played client ⇄ a server's process.

use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use trunkline_recording::as_client::{ClientPlayer, Next};
use trunkline_transport::Limits;
use trunkline_transport::child::{Child, Command};
use trunkline_wire::frame::{Decoder, Frame, Framing, encode};
use trunkline_wire::jsonrpc::{Incoming, Message};

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
    let (mut stdin, mut is_closing) = (Some(stdin), false);
    let mut decoder = Decoder::ndjson(limits.message_bytes);
    let (mut unsent, mut buffer) = (Vec::new(), vec![0; CHUNK]);
    let ended = loop {
        let is_done = say_all(player, &mut unsent, &mut is_closing).await;
        if is_closing && unsent.is_empty() {
            stdin = None;
        }
        let patience = match is_done {
            true if unsent.is_empty() && !player.is_missing_news() => break None,
            true => LAST_NEWS,
            false => patience,
        };
        // Both at once: a server that is not read may not read.
        let moved = timeout(patience, async {
            tokio::select! {
                sent = send(&mut stdin, &unsent), if !unsent.is_empty() => {
                    sent.map(|count| drop(unsent.drain(..count))).is_ok()
                }
                read = stdout.read(&mut buffer) => match read {
                    Ok(count @ 1..) => {
                        decoder.push(&buffer[..count]);
                        true
                    }
                    _ => false,
                },
            }
        });
        match moved.await {
            Err(_) if is_done => break None,
            Err(_) => break Some("The server did not answer in time.".to_owned()),
            Ok(false) if is_done => break None,
            Ok(false) => break Some("The server ended the conversation.".to_owned()),
            Ok(true) => hear_all(player, &mut decoder, &mut unsent),
        }
    };
    drop(stdin);
    drop(stdout);
    child.stop().await;
    Ok(ended)
}

/// Writes some of it; what is to be said after the end is not.
async fn send(to: &mut Option<impl AsyncWrite + Unpin>, bytes: &[u8]) -> std::io::Result<usize> {
    match to {
        Some(to) => to.write(bytes).await,
        None => Ok(bytes.len()),
    }
}

/// Appends what can be said now; true if nothing more is to be said or heard.
async fn say_all(player: &mut ClientPlayer, unsent: &mut Vec<u8>, is_closing: &mut bool) -> bool {
    loop {
        match player.next(now()) {
            Next::Send(message, _) => write(&message, unsent),
            Next::SendLater(message, _) => {
                tokio::time::sleep(PAUSE).await;
                write(&message, unsent);
            }
            Next::Close => *is_closing = true,
            Next::Wait => return false,
            Next::Done => return true,
        }
    }
}

fn hear_all(player: &mut ClientPlayer, decoder: &mut Decoder, unsent: &mut Vec<u8>) {
    while let Some(frame) = decoder.next() {
        let Frame::Text(text) = frame else { continue };
        let messages = match Incoming::parse(text) {
            Incoming::One(message) => vec![message],
            Incoming::Batch(all) => all.into_iter().flatten().collect(),
            Incoming::Bad(_) => continue,
        };
        for message in messages {
            if let Some(reply) = player.receive(message, None, now()) {
                write(&reply, unsent);
            }
        }
    }
}

fn write(message: &Message, out: &mut Vec<u8>) {
    encode(Framing::Newline, |out| message.write(out), out);
}

const CHUNK: usize = 64 << 10;
