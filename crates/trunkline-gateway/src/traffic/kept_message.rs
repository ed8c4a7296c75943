//! What is kept of a message: what exists anyway, shared or taken over. It becomes a message again when somebody looks.

use std::sync::Arc;

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Incoming, Message, Object, Outcome, Params};
use trunkline_wire::method::Method;

/// What is kept of a message.
#[derive(Debug)]
pub(crate) enum KeptMessage {
    Nothing,
    /// The text that it was read from.
    Text(Arc<str>),
    Request(i64, Method, Object),
    Result(i64, Json),
    /// What is neither of these, or has another kind of id.
    Other(Box<Message>),
}

impl KeptMessage {
    /// A message that nobody needs any more.
    pub(super) fn taken_from(message: &mut Message) -> Self {
        match message {
            Message::Request { id: Id::Number(id), method, params: Params::Object(params) } => {
                match method.known() {
                    Some(method) => Self::Request(*id, method, std::mem::take(params)),
                    None => Self::of(message),
                }
            }
            message => Self::of(message),
        }
    }

    /// A message that has just been read: its text, if its parts share that.
    pub(super) fn of_read(message: &Message) -> Self {
        match message.text_read() {
            Some(text) => Self::Text(Arc::clone(text)),
            None => Self::of(message),
        }
    }

    /// A message that others need, too.
    pub(super) fn of(message: &Message) -> Self {
        match message {
            Message::Response { id: Some(Id::Number(id)), outcome: Ok(result) } => {
                Self::Result(*id, result.clone())
            }
            message => Self::Other(Box::new(message.clone())),
        }
    }

    /// The message, unless it is not kept.
    pub(super) fn to_message(&self) -> Option<Message> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => match Incoming::parse(text.as_bytes()) {
                Incoming::One(message) => Some(message),
                _ => None,
            },
            Self::Request(id, method, params) => {
                let params = Params::Object(params.clone());
                Some(Message::Request { id: Id::Number(*id), method: (*method).into(), params })
            }
            Self::Result(id, result) => Some(Message::result(Id::Number(*id), result.clone())),
            Self::Other(message) => Some(Message::clone(message)),
        }
    }

    /// About how many bytes the message has as a text.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Text(text) => text.len(),
            Self::Request(_, method, params) => {
                ENVELOPE + method.name().len() + size_of_members(params)
            }
            Self::Result(_, result) => ENVELOPE + result.get().len(),
            Self::Other(message) => size_of_message(message),
        }
    }
}

fn size_of_members(params: &Object) -> usize {
    params.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum()
}

/// About how many bytes a message has as a text.
fn size_of_message(message: &Message) -> usize {
    let members = |params: &Params| match params {
        Params::Absent => 0,
        Params::Object(params) => size_of_members(params),
        Params::Array(items) => items.iter().map(|it| it.get().len() + 1).sum::<usize>(),
    };
    ENVELOPE
        + match message {
            Message::Request { method, params, .. } | Message::Notification { method, params } => {
                method.len() + members(params)
            }
            Message::Response { outcome, .. } => return size_of_outcome(outcome),
        }
}

/// About how many bytes a response has as a text.
pub(crate) fn size_of_outcome(outcome: &Outcome) -> usize {
    ENVELOPE
        + match outcome {
            Ok(result) => result.get().len(),
            Err(error) => {
                error.message.len() + error.data.as_ref().map_or(0, |it| it.get().len()) + ENVELOPE
            }
        }
}

/// The parts of a message around its parameters or its result.
const ENVELOPE: usize = 36;

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
            let parsed = || match Incoming::parse(text.as_bytes()) {
                Incoming::One(message) => message,
                other => panic!("{other:?}"),
            };
            for kept in [
                KeptMessage::of_read(&parsed()),
                KeptMessage::of(&parsed()),
                KeptMessage::taken_from(&mut parsed()),
            ] {
                let message = kept.to_message();
                assert_eq!(message.map(|it| it.to_text()).as_ref(), Some(text));
                assert!(kept.size().abs_diff(text.len()) < 40, "{} {text}", kept.size());
            }
        }
    }
}
