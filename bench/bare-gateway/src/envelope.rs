//! A message → its id and method, and the same message with another id.

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
}
