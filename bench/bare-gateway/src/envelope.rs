//! A message → its id and method, and the same message with another id.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What is read of a message, borrowed from it.
#[derive(Deserialize)]
pub struct Envelope<'a> {
    /// Absent in a notification.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    /// Absent in an answer.
    #[serde(borrow)]
    method: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    pub fn read(message: &'a [u8]) -> Option<Envelope<'a>> {
        serde_json::from_slice(message).ok()
    }

    pub fn id(&self) -> Option<&'a str> {
        self.id.map(RawValue::get)
    }

    pub fn is_initialize(&self) -> bool {
        self.method.is_some_and(|method| method.get() == r#""initialize""#)
    }
}

/// A text in up to three parts, which are sent one after the other.
#[derive(Default)]
pub struct Parts([Bytes; 3]);

impl Parts {
    /// The message with `new` in the place of its `id`, which is a part of it. A long one is not copied.
    pub fn with_id(message: &Bytes, id: &str, new: &[u8]) -> Parts {
        if message.len() < LONG {
            let mut out = Vec::new();
            with_id(&mut out, message, id, new);
            return Parts::from(Bytes::from(out));
        }
        let id = message.slice_ref(id.as_bytes());
        let at = id.as_ptr() as usize - message.as_ptr() as usize;
        let (before, after) = (message.slice(..at), message.slice(at + id.len()..));
        Parts([before, Bytes::copy_from_slice(new), after])
    }

    /// All parts, with `end` behind them, in the order in which they are sent.
    pub fn ended(self, end: &'static [u8]) -> impl Iterator<Item = Bytes> {
        self.0.into_iter().chain([Bytes::from_static(end)]).filter(|part| !part.is_empty())
    }
}

impl From<Bytes> for Parts {
    fn from(whole: Bytes) -> Parts {
        Parts([whole, Bytes::new(), Bytes::new()])
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.iter_mut().find(|part| !part.is_empty()).map(std::mem::take);
        Poll::Ready(next.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|part| part.len() as u64).sum())
    }
}

/// Appends the message with `new` in the place of its `id`, which is a part of it.
pub fn with_id(out: &mut Vec<u8>, message: &[u8], id: &str, new: &[u8]) {
    let at = id.as_ptr() as usize - message.as_ptr() as usize;
    out.reserve(message.len() + new.len() + 1);
    out.extend_from_slice(&message[..at]);
    out.extend_from_slice(new);
    out.extend_from_slice(&message[at + id.len()..]);
}

/// The digits of a number, without an allocation.
pub fn digits(number: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let (mut at, mut rest) = (buffer.len(), number);
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &buffer[at..];
        }
    }
}

/// From this length on copying a message costs more than sending it in parts.
pub const LONG: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_replaced_where_it_stands() {
        let message = br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
        let envelope = Envelope::read(message).expect("it is a message");
        let mut out = Vec::new();
        let id = envelope.id().expect("it has an id");
        with_id(&mut out, message, id, digits(120, &mut [0; 20]));
        assert_eq!(out, br#"{"jsonrpc":"2.0","id":120,"method":"ping"}"#);
        assert_eq!(digits(0, &mut [0; 20]), b"0");
    }

    #[test]
    fn a_long_message_is_sent_in_parts() {
        let message = Bytes::from(format!(r#"{{"id":"a","x":"{}"}}"#, "y".repeat(LONG)));
        let id = Envelope::read(&message).and_then(|it| it.id()).expect("it has an id");
        let parts: Vec<Bytes> = Parts::with_id(&message, id, b"7").ended(b"\n").collect();
        assert_eq!(parts.len(), 4);
        let text = format!("{{\"id\":7,\"x\":\"{}\"}}\n", "y".repeat(LONG));
        assert_eq!(parts.concat(), text.as_bytes());
    }
}
