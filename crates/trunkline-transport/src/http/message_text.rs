//! A message → the text it is sent as. A long value of it is sent from where it is.

use bytes::Bytes;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{LeftOut, Message};

/// The text of a message in up to three parts.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageText {
    /// All of it, or what comes before the long value.
    pub(super) before: Bytes,
    pub(super) long: Bytes,
    pub(super) after: Bytes,
}

impl MessageText {
    pub(super) fn of(message: &Message) -> Self {
        let left_out = message.left_out_size();
        // A text that fills its room exactly goes out from where it is, with nothing around it.
        let mut text = Vec::with_capacity(message.size().saturating_sub(left_out));
        if left_out == 0 {
            message.write(&mut text);
            return text.into();
        }
        let long = message.write_around(&mut text);
        let mut before = Bytes::from(text);
        match long {
            None => Self { before, ..Self::default() },
            Some(LeftOut { at, value }) => {
                let after = before.split_off(at);
                Self { before, long: Bytes::from_owner(Shared(value)), after }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.before.len() + self.long.len() + self.after.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text, if it is in one part.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        self.long.is_empty().then_some(&*self.before)
    }

    /// The next part; `None` at the end.
    pub(super) fn take_part(&mut self) -> Option<Bytes> {
        let parts = [&mut self.before, &mut self.long, &mut self.after];
        parts.into_iter().find(|it| !it.is_empty()).map(std::mem::take)
    }
}

impl From<Bytes> for MessageText {
    fn from(text: Bytes) -> Self {
        Self { before: text, ..Self::default() }
    }
}

impl From<Vec<u8>> for MessageText {
    fn from(text: Vec<u8>) -> Self {
        Bytes::from(text).into()
    }
}

/// A value whose text is shared with whoever else has it.
struct Shared(Json);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use trunkline_wire::jsonrpc::{Id, Incoming};

    use super::*;

    #[test]
    fn a_message_has_the_same_text_in_parts() {
        let long = "x".repeat(100_000);
        let call = |args: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{args}}}"#)
        };
        let texts = [
            call(r#"{"name":"a","arguments":{}}"#),
            call(&format!(r#"{{"name":"a","arguments":{{"a":"{long}"}},"_meta":{{}}}}"#)),
            call(&format!(r#"{{"arguments":["{long}"],"_meta":{{"b":"{long}"}}}}"#)),
            call(&format!(r#"{{"name":"{long}"}}"#)).replace(r#""id":7,"#, ""),
            format!(r#"{{"jsonrpc":"2.0","id":"b","result":{{"content":"{long}"}}}}"#),
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"no"}}"#.to_owned(),
        ];
        for text in texts {
            let Incoming::One(message) = Incoming::parse(text.as_bytes()) else { panic!("{text}") };
            let mut parts = MessageText::of(&message);
            let is_long = text.len() > long.len();
            assert_eq!((parts.len(), parts.whole().is_none()), (text.len(), is_long));
            let mut joined = Vec::new();
            while let Some(part) = parts.take_part() {
                joined.extend_from_slice(&part);
            }
            assert!(parts.is_empty() && joined == text.as_bytes());
        }
    }

    #[test]
    fn a_long_value_is_not_copied() {
        let value = Json::string(&"x".repeat(1 << 20));
        let text = MessageText::of(&Message::result(Id::Number(1), value.clone()));
        assert_eq!(text.long.as_ptr(), value.get().as_ptr());
    }
}
