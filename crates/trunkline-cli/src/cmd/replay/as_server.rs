//! A played server ⇄ our stdin and stdout.

use std::process::ExitCode;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trunkline_recording::as_server::ServerPlayer;
use trunkline_recording::lines::messages;
use trunkline_recording::recording::Recording;
use trunkline_transport::stdio;
use trunkline_wire::frame::{DEFAULT_LIMIT, Decoder, Frame, Framing, encode};

use crate::output::Screen;

/// Plays the server until stdin ends.
pub(super) async fn run(recording: &Recording, screen: &Screen) -> Result<ExitCode> {
    let mut player = ServerPlayer::new(recording);
    let (mut stdin, mut stdout) = (stdio::stdin()?, stdio::stdout()?);
    let (mut decoder, mut buffer) = (Decoder::detect(DEFAULT_LIMIT), vec![0; CHUNK]);
    while let Ok(count @ 1..) = stdin.read(&mut buffer).await {
        decoder.push(&buffer[..count]);
        let mut out = Vec::new();
        while let Some(frame) = decoder.next() {
            let messages = match frame {
                Frame::Text(text) => messages(text),
                _ => Vec::new(),
            };
            let framing = decoder.framing().unwrap_or(Framing::Newline);
            for output in messages.iter().flat_map(|it| player.receive(it)) {
                encode(framing, |out| output.message.write(out), &mut out);
            }
        }
        for remark in player.remarks() {
            screen.aside("replay", &remark);
        }
        stdout.write_all(&out).await?;
        stdout.flush().await?;
    }
    let (framing, mut out) = (decoder.framing().unwrap_or(Framing::Newline), Vec::new());
    for output in player.ended() {
        encode(framing, |out| output.message.write(out), &mut out);
    }
    // A client that has closed its side may not read any more.
    let _ = stdout.write_all(&out).await;
    let _ = stdout.flush().await;
    Ok(ExitCode::SUCCESS)
}

const CHUNK: usize = 64 << 10;
