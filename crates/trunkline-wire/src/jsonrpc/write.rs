//! A message → its JSON text, or that text around a long value.

use super::{Id, Message, MethodName, Name, Object, Params};
use crate::json::{Json, write_string};

impl Message {
    /// Appends the message as one JSON text, without a line break.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_as(&mut InText, out);
    }

    /// Appends the message without its first value that is long, if it has one: that can be sent from where it is.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, jsonrpc::{Id, Message}};
    /// let (answer, mut out) = (Message::result(Id::Number(1), Json::string(&"x".repeat(1 << 20))), Vec::new());
    /// let LeftOut { at, value } = answer.write_around(&mut out).expect("it has a long value");
    /// # use trunkline_wire::jsonrpc::LeftOut;
    /// assert_eq!(value.get().len(), (1 << 20) + 2);
    /// assert_eq!(out, br#"{"jsonrpc":"2.0","id":1,"result":}"#);
    /// assert_eq!(&out[at..], b"}");
    /// ```
    pub fn write_around(&self, out: &mut Vec<u8>) -> Option<LeftOut> {
        let mut left_out = None;
        self.write_as(&mut left_out, out);
        left_out
    }

    /// The length of the value that [`Self::write_around`] leaves out; 0 if there is none.
    pub fn left_out_size(&self) -> usize {
        let long = |it: &Json| Some(it.get().len()).filter(|it| *it >= LONG);
        let found = match self {
            Self::Request { params: Params::Object(Object(members)), .. }
            | Self::Notification { params: Params::Object(Object(members)), .. } => {
                members.iter().find_map(|(_, value)| long(value))
            }
            Self::Response { outcome: Ok(result), .. } => long(result),
            _ => None,
        };
        found.unwrap_or(0)
    }

    fn write_as(&self, values: &mut impl WriteValue, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        match self {
            Self::Request { id, method, params } => {
                write_id(id, out);
                write_call(method, params, values, out);
            }
            Self::Notification { method, params } => write_call(method, params, values, out),
            Self::Response { id, outcome } => {
                if let Some(id) = id {
                    write_id(id, out);
                }
                match outcome {
                    Ok(result) => {
                        out.extend_from_slice(br#","result":"#);
                        values.write_result(result, out);
                    }
                    Err(error) => {
                        out.extend_from_slice(br#","error":"#);
                        out.extend_from_slice(Json::of(error).get().as_bytes());
                    }
                }
            }
        }
        out.push(b'}');
    }

    /// The number of bytes that [`Self::write`] appends: exact for a result whose id needs no escapes, for any other
    /// message about right.
    pub fn size(&self) -> usize {
        match self {
            Self::Response { id, outcome: Ok(result) } => {
                let id = id.as_ref().map_or(0, |id| br#","id":"#.len() + id.size());
                br#"{"jsonrpc":"2.0","result":}"#.len() + id + result.get().len()
            }
            Self::Response { .. } => 256,
            Self::Request { params, .. } | Self::Notification { params, .. } => {
                br#"{"jsonrpc":"2.0","id":,"method":"","params":}"#.len() + 32 + params.size()
            }
        }
    }

    /// The message as one JSON text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8(out).expect("messages are written from UTF-8 pieces")
    }
}

/// A value of this length decides how much room its message needs.
const LONG: usize = 64 << 10;
/// Room for the members behind one, and for the end of the message.
const AFTER_LONG: usize = 4 << 10;

/// A long value that is not in the text of its message, and where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// After so many bytes of the text.
    pub at: usize,
    /// The value.
    pub value: Json,
}

/// Where the values of a message go.
pub(super) trait WriteValue {
    fn write_member(&mut self, value: &Json, out: &mut Vec<u8>);
    fn write_result(&mut self, value: &Json, out: &mut Vec<u8>);
}

/// All of them into its text.
pub(super) struct InText;

impl WriteValue for InText {
    #[inline]
    fn write_member(&mut self, value: &Json, out: &mut Vec<u8>) {
        let value = value.get().as_bytes();
        if value.len() >= LONG {
            // Otherwise the short members behind it would double the room.
            out.reserve(value.len() + AFTER_LONG);
        }
        out.extend_from_slice(value);
    }

    #[inline]
    fn write_result(&mut self, value: &Json, out: &mut Vec<u8>) {
        out.extend_from_slice(value.get().as_bytes());
    }
}

/// All but the first long one.
impl WriteValue for Option<LeftOut> {
    fn write_member(&mut self, value: &Json, out: &mut Vec<u8>) {
        match self.is_none() && value.get().len() >= LONG {
            true => *self = Some(LeftOut { at: out.len(), value: value.clone() }),
            false => InText.write_member(value, out),
        }
    }

    fn write_result(&mut self, value: &Json, out: &mut Vec<u8>) {
        self.write_member(value, out);
    }
}

fn write_call(
    method: &MethodName,
    params: &Params,
    values: &mut impl WriteValue,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(br#","method":"#);
    match &method.0 {
        // Nothing in the table has to be escaped.
        Name::Known(method) => {
            out.push(b'"');
            out.extend_from_slice(method.name().as_bytes());
            out.push(b'"');
        }
        Name::Other(name) => write_string(name, out),
    }
    match params {
        Params::Absent => {}
        Params::Object(object) => {
            out.extend_from_slice(br#","params":"#);
            object.write_as(values, out);
        }
        Params::Array(items) => {
            out.extend_from_slice(br#","params":["#);
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(item.get().as_bytes());
            }
            out.push(b']');
        }
    }
}

fn write_id(id: &Id, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","id":"#);
    id.write(out);
}
