//! The JSON-RPC 2.0 envelope. The parser opens parameters one level, so that code that knows the method
//! finds its members; everything below stays raw, and so do results.
//!
//! ```
//! use trunkline_wire::json::Json;
//! use trunkline_wire::jsonrpc::{Id, Incoming, Message};
//!
//! let text = br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
//! let Incoming::One(Message::Request { id, .. }) = Incoming::parse(text) else { panic!() };
//! let answer = Message::result(id, Json::empty_object());
//! assert_eq!(answer.to_text(), r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
//! ```

mod error;
mod parse;
mod write;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{Json, write_number, write_string};
use crate::method::{Method, Row, Sender, compares_with_text};
use crate::revision::Revision;

pub(crate) use error::clip;
pub use parse::{Incoming, Malformed, MalformedKind};
pub use write::LeftOut;
use write::{InText, WriteValue};

/// A request id, echoed byte for byte: `1`, `"1"` and `01e0` are three different ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// An integer in its plain spelling.
    Number(i64),
    /// An integer that does not fit, or is spelled another way.
    Big(Box<str>),
    /// A string.
    Text(Box<str>),
    /// Only in the dialect of [`crate::dialect`]; MCP itself forbids it.
    Null,
}

/// One message, either way.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Message {
    /// Expects exactly one response.
    Request { id: Id, method: MethodName, params: Params },
    /// Expects nothing.
    Notification { method: MethodName, params: Params },
    /// Answers a request. An error may lack the id when the request's id could not be read.
    Response { id: Option<Id>, outcome: Outcome },
}

/// A method's name: one of the table, or the text of one that is not in it, such as a method of an
/// extension.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MethodName(Name);

/// A text that is in the table is always `Known`.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Name {
    Known(Method),
    Other(Box<str>),
}

/// The name of a member. Common names need no allocation.
pub type MemberName = Cow<'static, str>;

/// The outcome of a request.
pub type Outcome = Result<Json, ErrorObject>;

/// The parameters of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Params {
    /// Absent.
    #[default]
    Absent,
    /// The only form MCP has.
    Object(Object),
    /// Positional parameters: only in the dialect of [`crate::dialect`].
    Array(Vec<Json>),
}

/// A JSON object opened one level: its members in order, their values raw, without duplicate names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Vec<(MemberName, Json)>);

/// A JSON-RPC error, as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The numeric code; see [`crate::code`].
    pub code: i64,
    /// One sentence for a human.
    pub message: String,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with data.
    pub fn with_data(mut self, data: Json) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

impl MethodName {
    /// The method, if it is in the table.
    pub fn known(&self) -> Option<Method> {
        match self.0 {
            Name::Known(method) => Some(method),
            Name::Other(_) => None,
        }
    }

    /// Its row, as `revision` knows the method and `sender` may send it.
    pub fn row(&self, sender: Sender, revision: Revision) -> Option<&'static Row> {
        self.known()?.row(sender, revision)
    }

    /// The name as it is on the wire.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Name::Known(method) => method.name(),
            Name::Other(name) => name,
        }
    }
}

impl Deref for MethodName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<Method> for MethodName {
    fn from(method: Method) -> Self {
        Self(Name::Known(method))
    }
}

impl From<&str> for MethodName {
    fn from(name: &str) -> Self {
        Self(Method::of(name).map_or_else(|| Name::Other(name.into()), Name::Known))
    }
}

impl From<String> for MethodName {
    fn from(name: String) -> Self {
        Self(Method::of(&name).map_or_else(|| Name::Other(name.into()), Name::Known))
    }
}

impl PartialEq<Method> for MethodName {
    fn eq(&self, other: &Method) -> bool {
        self.known() == Some(*other)
    }
}

compares_with_text!(MethodName::as_str);

impl fmt::Debug for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Params {
    /// Parameters from a value that serialises as an object.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self::Object(Object::of(value))
    }

    /// The members, if the parameters are an object or absent.
    #[inline]
    pub fn into_object(self) -> Option<Object> {
        match self {
            Self::Absent => Some(Object::default()),
            Self::Object(object) => Some(object),
            Self::Array(_) => None,
        }
    }

    /// The member `name`.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(object) => object.get(name),
            _ => None,
        }
    }

    /// About how many bytes their JSON text has.
    fn size(&self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Object(Object(members)) => {
                members.iter().map(|(name, value)| name.len() + 4 + value.get().len()).sum()
            }
            Self::Array(values) => values.iter().map(|it| it.get().len() + 1).sum(),
        }
    }
}

impl Object {
    /// The members of a value that serialises as an object.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self::parse(Json::of(value).get()).expect("the value writes itself as an object")
    }

    /// The value of `name`.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Removes and returns the value of `name`.
    #[inline]
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Sets the value of `name`, in place if it exists.
    pub fn set(&mut self, name: impl Into<MemberName>, value: Json) {
        let name = name.into();
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// The text that its first value is a part of, if that shares it.
    #[inline]
    pub fn text_read(&self) -> Option<&Arc<str>> {
        self.0.first()?.1.whole()
    }

    /// Without members, and with room for some.
    pub(crate) fn with_room(members: usize) -> Self {
        Self(Vec::with_capacity(members))
    }

    /// A copy with room for one more member.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, jsonrpc::Object};
    /// let given = Object::parse(r#"{"name":"echo"}"#).unwrap();
    /// let mut passed_on = given.clone_for_one_more();
    /// assert_eq!(passed_on, given);
    /// passed_on.set("_meta", Json::empty_object());
    /// assert_eq!(passed_on.to_json().get(), r#"{"name":"echo","_meta":{}}"#);
    /// ```
    pub fn clone_for_one_more(&self) -> Self {
        let mut members = Vec::with_capacity(self.0.len() + 1);
        members.extend_from_slice(&self.0);
        Self(members)
    }

    /// The first of `names` that is present and no object.
    pub fn not_an_object<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.get(name).is_some_and(|it| !it.is_object()))
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole object as one text.
    pub fn to_json(&self) -> Json {
        let members = self.0.iter().map(|(key, value)| key.len() + value.get().len() + 4);
        let mut out = Vec::with_capacity(members.sum::<usize>() + 2);
        self.write(&mut out);
        Json::from_written(out)
    }

    /// Reads the members as a `T`.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.to_json().to()
    }

    /// Appends the object as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_as(&mut InText, out);
    }

    fn write_as(&self, values: &mut impl WriteValue, out: &mut Vec<u8>) {
        out.push(b'{');
        for (at, (key, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(key, out);
            out.push(b':');
            values.write_member(value, out);
        }
        out.push(b'}');
    }
}

impl IntoIterator for Object {
    type Item = (MemberName, Json);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    /// The members in order.
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl Message {
    /// A response that carries a result.
    pub fn result(id: Id, result: Json) -> Self {
        Self::Response { id: Some(id), outcome: Ok(result) }
    }

    /// A response that carries an error.
    pub fn error(id: Id, error: ErrorObject) -> Self {
        Self::Response { id: Some(id), outcome: Err(error) }
    }

    /// A notification.
    pub fn notification(method: Method, params: Params) -> Self {
        Self::Notification { method: method.into(), params }
    }

    /// The text that a short message with parameters was read from, which they share. Ask for it before the parameters
    /// are changed: those of another message may be among them afterwards.
    ///
    /// ```
    /// # use trunkline_wire::jsonrpc::{Incoming, Message};
    /// let text = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": 1}}"#;
    /// let Incoming::One(message) = Incoming::parse(text.as_bytes()) else { panic!() };
    /// assert_eq!(message.text_read().map(|it| &**it), Some(text));
    /// ```
    pub fn text_read(&self) -> Option<&Arc<str>> {
        match self {
            Self::Request { params: Params::Object(params), .. }
            | Self::Notification { params: Params::Object(params), .. } => params.text_read(),
            _ => None,
        }
    }
}

impl Id {
    /// The id as JSON.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Number(number) => Json::integer(*number),
            Self::Big(digits) => Json::copied(digits),
            Self::Text(text) => Json::string(text),
            Self::Null => Json::copied("null"),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => write_number(*number, out),
            Self::Big(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::Text(text) => write_string(text, out),
            Self::Null => out.extend_from_slice(b"null"),
        }
    }

    /// The length of its JSON text, if nothing has to be escaped.
    fn size(&self) -> usize {
        match self {
            Self::Number(number) => {
                let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
                digits as usize + usize::from(*number < 0)
            }
            Self::Big(digits) => digits.len(),
            Self::Text(text) => text.len() + 2,
            Self::Null => 4,
        }
    }

    /// The longest id or progress token. Both are repeated in every answer and notification, so a long
    /// one would cost many times its length.
    pub const LONGEST: usize = 1024;

    /// Reads an id from its JSON text: a string or an integer of a sensible length.
    pub fn from_json(text: &str) -> Option<Self> {
        if let Some(number) = Self::counted(text) {
            return Some(number);
        }
        if text.len() > Self::LONGEST {
            return None;
        }
        if text.starts_with('"') {
            return serde_json::from_str(text).ok().map(Self::Text);
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match text.parse::<i64>() {
            Ok(number) if text != "-0" => Some(Self::Number(number)),
            _ => Some(Self::Big(text.into())),
        }
    }

    /// The id that a short row of digits spells, as nearly all ids are.
    fn counted(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > SHORT_ID {
            return None;
        }
        let mut number = 0;
        for byte in text.bytes() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + i64::from(digit);
        }
        Some(Self::Number(number))
    }
}

/// So many digits fit into a number, whichever they are.
const SHORT_ID: usize = 18;

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_json().get())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Json::deserialize(deserializer)?;
        Self::from_json(raw.get())
            .ok_or_else(|| serde::de::Error::custom("an id is a string or an integer"))
    }
}
