//! Hand-made frames of HTTP/2, valid or not: bytes out, and the server's reaction.
//!
//! Names and values are sent as literals, without Huffman codes or the dynamic table, so that a row
//! shows what it sends.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline::Revision;
use trunkline_testkit::http::Guest;
use trunkline_testkit::http::bad::rows::MODERN;

use crate::server::soon;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;

/// How HTTP/2 begins.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// One header that is never indexed (RFC 7541 §6.2.2).
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        number(text.len(), 7, &mut field);
        field.extend(text.as_bytes());
    }
    field
}

/// The fields, one after the other.
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// An integer with a prefix of `bits` bits (RFC 7541 §5.1).
fn number(mut number: usize, bits: u32, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if number < most {
        return out.push(u8::try_from(number).unwrap());
    }
    out.push(u8::try_from(most).unwrap());
    number -= most;
    while number >= 128 {
        out.push(u8::try_from(number % 128 + 128).unwrap());
        number /= 128;
    }
    out.push(u8::try_from(number).unwrap());
}

/// The headers of a valid call, pseudo headers first; without its length.
pub(super) fn fields(address: SocketAddr) -> Vec<(String, String)> {
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut fields = vec![
        own(":method", "POST"),
        own(":scheme", "http"),
        own(":authority", &address.to_string()),
        own(":path", "/mcp"),
    ];
    let message: Value = serde_json::from_str(MODERN).unwrap();
    let headers = Guest::new(address, Revision::V2026_07_28).headers(&message);
    fields.extend(headers.into_iter().map(|(name, value)| (name.to_lowercase(), value)));
    fields
}

/// Their block.
pub(super) fn packed(fields: &[(String, String)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// A proper call.
pub(super) fn call(address: SocketAddr, stream: u32) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, stream, &packed(&fields(address)));
    [head, frame(DATA, END_STREAM, stream, MODERN.as_bytes())].concat()
}

/// The server's reaction to a stream, or to the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Heard {
    /// It answered with this status.
    Status(u16),
    /// It reset the stream, with this code.
    Reset(u32),
    /// It closes the connection, with this code.
    GoAway(u32),
    /// It closed the socket.
    End,
}

/// One connection.
pub(super) struct Wire {
    stream: TcpStream,
    raw: Vec<u8>,
}

impl Wire {
    /// Connects, and sends nothing.
    pub(super) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, raw: Vec::new() }
    }

    /// Connects, and sends the preface.
    pub(super) async fn open(address: SocketAddr) -> Self {
        let mut wire = Self::to(address).await;
        wire.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await;
        wire
    }

    /// Sends bytes. A write error is ignored: the server's reaction decides.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let _ = soon(self.stream.write_all(bytes)).await;
    }

    /// The server's reaction to `stream`. Other streams are skipped.
    pub(super) async fn outcome(&mut self, stream: u32) -> Heard {
        loop {
            let Some((kind, at, payload)) = self.frame().await else { return Heard::End };
            let code = |from: usize| {
                u32::from_be_bytes(payload[from..from + 4].try_into().expect("four bytes"))
            };
            match kind {
                GOAWAY => return Heard::GoAway(code(4)),
                RST_STREAM if at == stream => return Heard::Reset(code(0)),
                HEADERS if at == stream => return Heard::Status(status(&payload)),
                _ => {}
            }
        }
    }

    /// Waits until the server closes the connection, and skips everything before.
    pub(super) async fn over(&mut self) {
        while soon(self.stream.read_buf(&mut self.raw)).await.is_ok_and(|count| count > 0) {}
    }

    /// The next frame: its kind, its stream and its payload. `None` at the end of the connection.
    pub(super) async fn frame(&mut self) -> Option<(u8, u32, Vec<u8>)> {
        loop {
            if let Some((head, rest)) = self.raw.split_first_chunk::<9>() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if rest.len() >= length {
                    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                    let (kind, payload) = (head[3], rest[..length].to_vec());
                    self.raw.drain(..9 + length);
                    return Some((kind, stream, payload));
                }
            }
            let read = soon(self.stream.read_buf(&mut self.raw)).await;
            read.ok().filter(|count| *count > 0)?;
        }
    }
}

/// The status at the front of a block of headers (RFC 7541 §6.1, §6.2.1).
fn status(block: &[u8]) -> u16 {
    match block {
        [0x88, ..] => 200,
        [0x89, ..] => 204,
        [0x8c, ..] => 400,
        [0x8d, ..] => 404,
        [0x8e, ..] => 500,
        // An indexed name, and a value with or without Huffman codes.
        [0x08 | 0x48, length, rest @ ..] if length & 0x80 != 0 => huffman(rest),
        [0x08 | 0x48, 3, rest @ ..] => std::str::from_utf8(&rest[..3]).unwrap().parse().unwrap(),
        other => panic!("no status in front of {other:?}"),
    }
}

/// Three digits: of 5 bits up to `2`, of 6 bits above (RFC 7541, appendix B).
fn huffman(bytes: &[u8]) -> u16 {
    let bits: Vec<u16> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| u16::from(byte >> at & 1)))
        .collect();
    let (mut at, mut status) = (0, 0);
    let mut take = |count: usize| {
        let taken = bits[at..at + count].iter().fold(0, |sum, bit| sum * 2 + bit);
        at += count;
        taken
    };
    for _ in 0..3 {
        let five = take(5);
        status = status * 10 + if five < 3 { five } else { five * 2 + take(1) - 0b01_0110 };
    }
    status
}
