//! A played client ⇄ the bytes of a server that reads and writes lines.

use trunkline_wire::frame::{Decoder, Frame, Framing, encode};
use trunkline_wire::jsonrpc::{Incoming, Message};

use crate::as_client::{ClientPlayer, Next};

/// Plays a client over two streams of bytes.
#[derive(Debug)]
pub struct ClientLines<'a> {
    player: &'a mut ClientPlayer,
    decoder: Decoder,
    unsent: Vec<u8>,
    /// What is to be said after a pause.
    later: Option<Message>,
    is_closing: bool,
}

/// What there is to do beside sending what is [unsent](ClientLines::unsent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Pause, then say more.
    Pause,
    /// Read what the server says.
    Listen,
    /// Nothing: everything was said and answered.
    Done,
}

impl<'a> ClientLines<'a> {
    /// Plays a client whose server writes no line longer than `limit` bytes.
    pub fn new(player: &'a mut ClientPlayer, limit: usize) -> Self {
        let decoder = Decoder::ndjson(limit);
        Self { player, decoder, unsent: Vec::new(), later: None, is_closing: false }
    }

    /// Says what can be said now.
    pub fn say(&mut self, now: u64) -> Turn {
        if let Some(message) = self.later.take() {
            write(&message, &mut self.unsent);
        }
        loop {
            match self.player.next(now) {
                Next::Send(message, _) => write(&message, &mut self.unsent),
                Next::SendLater(message, _) => {
                    self.later = Some(message);
                    return Turn::Pause;
                }
                Next::Close => self.is_closing = true,
                // There is but one stream.
                Next::Leave(_) => {}
                Next::Wait | Next::Listen => return Turn::Listen,
                Next::Done => return Turn::Done,
            }
        }
    }

    /// What was said and is not sent.
    pub fn unsent(&self) -> &[u8] {
        &self.unsent
    }

    /// So many bytes of it were sent.
    pub fn sent(&mut self, count: usize) {
        self.unsent.drain(..count);
    }

    /// Whether the client has closed its side: the server is to see the end of its input.
    pub fn is_closed(&self) -> bool {
        self.is_closing && self.unsent.is_empty()
    }

    /// Whether the server has yet to send notifications that the recorded one sent.
    pub fn is_missing_news(&self) -> bool {
        self.player.is_missing_news()
    }

    /// The server wrote this.
    pub fn hear(&mut self, bytes: &[u8], now: u64) {
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next() {
            let Frame::Text(text) = frame else { continue };
            for message in messages(text) {
                if let Some(reply) = self.player.receive(message, None, now) {
                    write(&reply, &mut self.unsent);
                }
            }
        }
    }
}

/// The messages of a text. What is none gets no answer: no recording has one.
pub fn messages(text: &[u8]) -> Vec<Message> {
    match Incoming::parse(text) {
        Incoming::One(message) => vec![message],
        Incoming::Batch(all) => all.into_iter().flatten().collect(),
        Incoming::Bad(_) => Vec::new(),
    }
}

fn write(message: &Message, out: &mut Vec<u8>) {
    encode(Framing::Newline, |out| message.write(out), out);
}
