//! A message → what is kept of it: its text, or the part of it that the rest can be made from. It becomes a message again
//! when somebody looks.

use std::sync::Arc;

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Incoming, Message};

/// A message that was received or sent: what is kept of it, and what that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard<'a> {
    pub(super) form: Form,
    pub(super) bytes: &'a [u8],
    /// About how many bytes more it has, if it is too long to be kept.
    pub(super) left_out: u32,
}

/// The same, copied.
#[derive(Clone, Debug)]
pub(crate) struct KeptText {
    form: Form,
    bytes: Box<[u8]>,
}

impl KeptText {
    pub(super) fn to_message(&self) -> Option<Message> {
        self.form.to_message(&self.bytes)
    }
}

impl Heard<'_> {
    /// The length of what could be kept of it.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.bytes.len() + self.left_out as usize
    }

    /// Copies it, if something is kept.
    pub(super) fn to_kept(self) -> Option<KeptText> {
        let Self { form, bytes, .. } = self;
        let is_kept = !matches!(form, Form::Nothing | Form::Answered);
        is_kept.then(|| KeptText { form, bytes: bytes.into() })
    }
}

/// What the kept bytes of a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// They are not kept.
    Nothing,
    /// The same of an answer.
    Answered,
    /// The message.
    Text,
    /// The result of a response.
    Result(i64),
}

/// A message that waits for its call.
#[derive(Debug)]
pub(super) enum Unclaimed {
    Text(Arc<str>),
    Message(Box<Message>),
}

impl Unclaimed {
    /// A message that has just been read: its text, if its parts share that.
    #[inline]
    pub(super) fn of(message: &Message) -> Self {
        match message.text_read() {
            Some(text) => Self::Text(Arc::clone(text)),
            None => Self::Message(Box::new(message.clone())),
        }
    }

    /// What is kept of it; it is written to `room` if it has no text.
    #[inline]
    pub(super) fn heard<'a>(&'a self, room: &'a mut Vec<u8>) -> Heard<'a> {
        match self {
            Self::Text(text) => Heard::text(text.as_bytes()),
            Self::Message(message) => Heard::of(message, None, room),
        }
    }

    /// The message.
    pub(super) fn into_message(self) -> Option<Message> {
        match self {
            Self::Text(text) => Form::Text.to_message(text.as_bytes()),
            Self::Message(message) => Some(*message),
        }
    }
}

impl<'a> Heard<'a> {
    /// What is kept of a message, of which the text may be known; it is written to `room` if there is none and it is not
    /// too long.
    pub(super) fn of(message: &'a Message, text: Option<&'a [u8]>, room: &'a mut Vec<u8>) -> Self {
        Self::at_hand(message, text).unwrap_or_else(|| {
            let size = message.size();
            if size > LARGEST {
                let left_out = u32::try_from(size).unwrap_or(u32::MAX);
                return Self { left_out, ..Self::text(&[]) };
            }
            message.write(room);
            Self::text(room)
        })
    }

    /// The same, unless it has to be written first.
    #[inline]
    pub(super) fn at_hand(message: &'a Message, text: Option<&'a [u8]>) -> Option<Self> {
        match (text, message) {
            (Some(text), _) => Some(Self::text(text)),
            (None, Message::Response { id: Some(Id::Number(id)), outcome: Ok(result) }) => {
                Some(Self::result(*id, result))
            }
            (None, _) => None,
        }
    }

    /// The answer to the request of this id.
    #[inline]
    pub(super) fn result(id: i64, result: &'a Json) -> Self {
        Self { form: Form::Result(id), ..Self::text(result.get().as_bytes()) }
    }

    /// A whole message.
    #[inline]
    pub(super) fn text(bytes: &'a [u8]) -> Self {
        Self { form: Form::Text, bytes, left_out: 0 }
    }
}

impl Form {
    /// About how many bytes the message has beside those that are kept.
    #[inline]
    pub(super) fn around(self) -> u32 {
        match self {
            Self::Result(_) => AROUND_RESULT,
            Self::Nothing | Self::Answered | Self::Text => 0,
        }
    }

    /// What is known of it if nothing is kept.
    pub(super) fn of_nothing(self) -> Self {
        if self.is_result() { Self::Answered } else { Self::Nothing }
    }

    /// The message of these bytes, unless they are not kept.
    pub(super) fn to_message(self, bytes: &[u8]) -> Option<Message> {
        match self {
            Self::Nothing | Self::Answered => None,
            Self::Text => match Incoming::parse(bytes) {
                Incoming::One(message) => Some(message),
                _ => None,
            },
            Self::Result(id) => {
                let result = Json::parse(std::str::from_utf8(bytes).ok()?).ok()?;
                Some(Message::result(Id::Number(id), result))
            }
        }
    }

    /// Whether it is the result of a request.
    pub(super) fn is_result(self) -> bool {
        matches!(self, Self::Result(_) | Self::Answered)
    }
}

/// The longest message that is kept.
pub(super) const LARGEST: usize = 1 << 20;
/// The parts of a response around its result, if its id is short.
const AROUND_RESULT: u32 = 35;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_kinds_are_shown_as_they_were() {
        let long = "x".repeat(5_000);
        let texts = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n":1.50}}"#
                .into(),
            r#"{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"a"}}"#.into(),
            r#"{"jsonrpc":"2.0","id":2,"method":"ext/other","params":{"a":[]}}"#.into(),
            r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#.into(),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#.into(),
            r#"{"jsonrpc":"2.0","id":1,"result":{"b":1.0,"a":100000000000000000000}}"#.into(),
            r#"{"jsonrpc":"2.0","id":"q","result":{}}"#.into(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"No."}}"#.into(),
            format!(
                r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"{long}"}}}}"#
            ),
        ];
        for text in &texts {
            let Incoming::One(message) = Incoming::parse(text.as_bytes()) else { panic!("{text}") };
            let check = |shown: Heard<'_>| {
                let message = shown.form.to_message(shown.bytes);
                assert_eq!(message.map(|it| it.to_text()).as_ref(), Some(text));
                let size = shown.bytes.len() + shown.form.around() as usize;
                assert!(size.abs_diff(text.len()) < 3, "{size} {text}");
                assert_eq!(shown.form.of_nothing().to_message(shown.bytes), None);
            };
            check(Heard::of(&message, None, &mut Vec::new()));
            check(Heard::of(&message, Some(text.as_bytes()), &mut Vec::new()));
            let unclaimed = Unclaimed::of(&message);
            check(unclaimed.heard(&mut Vec::new()));
            assert_eq!(unclaimed.into_message().map(|it| it.to_text()).as_ref(), Some(text));
        }
    }

    #[test]
    fn a_message_that_is_too_long_to_keep_is_not_written() {
        let long = "x".repeat(LARGEST);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"a","arguments":{{"b":"{long}"}}}}}}"#
        );
        let Incoming::One(message) = Incoming::parse(text.as_bytes()) else { panic!("{text}") };
        let mut room = Vec::new();
        let heard = Heard::of(&message, None, &mut room);
        assert!(heard.bytes.is_empty() && heard.length().abs_diff(text.len()) < 64);
        assert_eq!(room.capacity(), 0);
    }
}
