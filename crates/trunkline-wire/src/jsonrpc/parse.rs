//! One JSON text → messages, or a precise error that names the id if it could be read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{ErrorObject, Id, MemberName, Message, MethodName, Object, Params};
use crate::code;
use crate::json::{Json, MAX_DEPTH, is_too_deep};

/// The contents of one text.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// A message.
    One(Message),
    /// A batch, as 2025-03-26 allows; each message is judged by itself.
    Batch(Vec<Result<Message, Malformed>>),
    /// A malformed text.
    Bad(Malformed),
}

/// A text that is no message.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// What is wrong with it.
    pub kind: MalformedKind,
    /// Its id, if it could be read.
    pub id: Option<Id>,
    /// Whether it looks like a response.
    pub is_response: bool,
    /// Whether it looks like a notification, which must not be answered.
    pub is_notification: bool,
}

/// The faults of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedKind {
    /// It is not JSON.
    NotJson,
    /// It nests too deeply.
    TooDeep,
    /// It is JSON, but no JSON-RPC 2.0 message.
    NotJsonRpc,
    /// An object has a duplicate name, or one with characters that end it for some parsers.
    DuplicateKey,
    /// Its id is `null`, which MCP forbids.
    NullId,
    /// It is a batch where none is allowed, an empty one, or one with too many messages.
    Batch,
    /// It exceeds the size limit.
    TooLong,
}

impl Malformed {
    /// A text of which nothing else could be read.
    pub fn new(kind: MalformedKind) -> Self {
        Self { kind, id: None, is_response: false, is_notification: false }
    }

    /// The error to answer with.
    pub fn to_error(&self) -> ErrorObject {
        use MalformedKind as Kind;
        let (code, message) = match self.kind {
            Kind::NotJson => (code::PARSE_ERROR, "This is not JSON."),
            Kind::TooDeep => (code::PARSE_ERROR, "This JSON nests more than 128 levels deep."),
            Kind::NotJsonRpc => (code::INVALID_REQUEST, "This is not a JSON-RPC 2.0 message."),
            Kind::DuplicateKey => {
                (code::INVALID_REQUEST, "A member name stands twice in one object.")
            }
            Kind::NullId => (code::INVALID_REQUEST, "A request id must not be null."),
            Kind::Batch => {
                (code::INVALID_REQUEST, "This array of messages cannot be taken; send them singly.")
            }
            Kind::TooLong => {
                let message = "The message is longer than this peer reads.";
                return ErrorObject::new(code::INVALID_REQUEST, message)
                    .with_data(Json::of(&serde_json::json!({ "reason": "message_too_large" })));
            }
        };
        ErrorObject::new(code, message)
    }
}

impl Incoming {
    /// Reads one text, which must be UTF-8.
    pub fn parse(text: &[u8]) -> Self {
        let bad = |kind| Self::Bad(Malformed::new(kind));
        let Ok(text) = std::str::from_utf8(text) else { return bad(MalformedKind::NotJson) };
        if is_too_deep(text.as_bytes(), MAX_DEPTH) {
            return bad(MalformedKind::TooDeep);
        }
        if !text.trim_ascii_start().starts_with('[') {
            return Envelope::read(text).map_or_else(Self::Bad, Self::One);
        }
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) => Self::Batch(items.iter().map(|it| Envelope::read(it.get())).collect()),
            Err(_) => bad(MalformedKind::NotJson),
        }
    }
}

/// The members of a message parsed so far.
#[derive(Default)]
struct Envelope<'a> {
    version: bool,
    id: Option<&'a RawValue>,
    method: Option<MethodName>,
    params: Option<Params>,
    result: Option<Json>,
    error: Option<ErrorObject>,
    fault: Option<MalformedKind>,
    /// A bit for each known member that occurred, readable or not.
    seen: u8,
}

impl<'a> Envelope<'a> {
    fn read(text: &'a str) -> Result<Message, Malformed> {
        let envelope: Result<Envelope<'a>, _> = serde_json::from_str(text);
        match envelope {
            Ok(envelope) => envelope.judge(),
            // JSON's grammar allows lone surrogates and numbers of any size (RFC 8259 §8.2, §6). A text
            // that is unreadable because of those is JSON, but no message.
            Err(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
                Err(Malformed::new(MalformedKind::NotJsonRpc))
            }
            Err(_) => Err(Malformed::new(MalformedKind::NotJson)),
        }
    }

    fn judge(self) -> Result<Message, Malformed> {
        let has = |member: u8| self.seen & (1 << member) != 0;
        let is_response = !has(METHOD) && (has(RESULT) || has(ERROR));
        let is_notification = has(METHOD) && !has(ID) && !has(RESULT) && !has(ERROR);
        let id = self.id.and_then(|raw| Id::from_json(raw.get()));
        let bad = |kind, id| Err(Malformed { kind, id, is_response, is_notification });
        if let Some(kind) = self.fault {
            return bad(kind, id);
        }
        if !self.version {
            return bad(MalformedKind::NotJsonRpc, id);
        }
        let id = match (self.id, id) {
            (Some(raw), None) if raw.get() == "null" => Some(Id::Null),
            (Some(_), None) => return bad(MalformedKind::NotJsonRpc, None),
            (_, id) => id,
        };
        let params = self.params.unwrap_or_default();
        match (id, self.method, self.result, self.error) {
            (Some(id), Some(method), None, None) => Ok(Message::Request { id, method, params }),
            (None, Some(method), None, None) => Ok(Message::Notification { method, params }),
            (Some(Id::Null), None, None, Some(error)) => {
                Ok(Message::Response { id: None, outcome: Err(error) })
            }
            (id @ Some(_), None, Some(result), None) => {
                Ok(Message::Response { id, outcome: Ok(result) })
            }
            (id, None, None, Some(error)) => Ok(Message::Response { id, outcome: Err(error) }),
            (id, ..) => bad(MalformedKind::NotJsonRpc, id),
        }
    }

    /// Records a fault without stopping, so that an id further on is still found.
    fn blame(&mut self, kind: MalformedKind) {
        self.fault.get_or_insert(kind);
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let mut it = Envelope::default();
        let mut others = Names::default();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let member = match &*key.0 {
                "jsonrpc" => VERSION,
                "id" => ID,
                "method" => METHOD,
                "params" => PARAMS,
                "result" => RESULT,
                "error" => ERROR,
                _ => {
                    if !others.add(&key.0) {
                        it.blame(MalformedKind::DuplicateKey);
                    } else if is_disguised(&key.0) {
                        it.blame(MalformedKind::NotJsonRpc);
                    }
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if it.seen & (1 << member) != 0 {
                it.blame(MalformedKind::DuplicateKey);
                if member == ID {
                    // Two ids are as good as none.
                    it.id = None;
                }
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            it.seen |= 1 << member;
            match member {
                VERSION => it.version = map.next_value::<&RawValue>()?.get() == r#""2.0""#,
                ID => it.id = Some(map.next_value()?),
                METHOD => {
                    match serde_json::from_str::<Key<'_>>(map.next_value::<&RawValue>()?.get()) {
                        Ok(name) => it.method = Some((&*name.0).into()),
                        Err(_) => it.blame(MalformedKind::NotJsonRpc),
                    }
                }
                PARAMS => it.params = map.next_value_seed(ParamsSeed(&mut it.fault))?,
                RESULT => it.result = Some(map.next_value()?),
                _ => match map.next_value::<Json>()?.to() {
                    Ok(error) => it.error = Some(error),
                    Err(_) => it.blame(MalformedKind::NotJsonRpc),
                },
            }
        }
        Ok(it)
    }
}

/// Opens `params` one level; records duplicates instead of failing.
struct ParamsSeed<'f>(&'f mut Option<MalformedKind>);

impl<'de> DeserializeSeed<'de> for ParamsSeed<'_> {
    type Value = Option<Params>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ParamsSeed<'_> {
    type Value = Option<Params>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let (object, duplicate) = read_members(map)?;
        if duplicate {
            self.0.get_or_insert(MalformedKind::DuplicateKey);
        }
        Ok(Some(Params::Object(object)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Some(Params::Array(items)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        self.refuse()
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        self.refuse()
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        self.refuse()
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        self.refuse()
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        self.refuse()
    }
}

impl ParamsSeed<'_> {
    fn refuse<E>(self) -> Result<Option<Params>, E> {
        self.0.get_or_insert(MalformedKind::NotJsonRpc);
        Ok(None)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object, A::Error> {
                match read_members(map)? {
                    (_, true) => Err(A::Error::custom("a member name stands twice")),
                    (object, false) => Ok(object),
                }
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// The members in order, and whether a name was duplicated.
fn read_members<'de, A: MapAccess<'de>>(mut map: A) -> Result<(Object, bool), A::Error> {
    let mut members: Vec<(MemberName, Json)> = Vec::with_capacity(4);
    let mut duplicate = false;
    let mut names = Names::default();
    while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
        let value = map.next_value()?;
        let key = known_member(key);
        duplicate |= !names.add_after(&key, &members) || has_control(&key);
        members.push((key, value));
    }
    Ok((Object(members), duplicate))
}

/// Whether a lenient parser could mistake a name for one of the envelope's: in another case, or
/// truncated at a NUL.
fn is_disguised(name: &str) -> bool {
    const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
    has_control(name) || KNOWN.iter().any(|it| it.eq_ignore_ascii_case(name))
}

fn has_control(name: &str) -> bool {
    name.bytes().any(|byte| byte < b' ')
}

/// The names seen so far. A linear search is quick for the few that messages have; beyond that a set
/// keeps the work linear.
#[derive(Default)]
struct Names {
    few: Vec<String>,
    many: HashSet<String>,
}

impl Names {
    /// Adds a name; `false` if it is a duplicate.
    fn add(&mut self, name: &str) -> bool {
        if self.few.len() < FEW {
            let is_new = self.few.iter().all(|it| it != name);
            self.few.push(name.to_owned());
            return is_new;
        }
        !self.few.iter().any(|it| it == name) && self.many.insert(name.to_owned())
    }

    /// The same for a name that follows `members`, which serve as the list while they are few.
    fn add_after(&mut self, name: &str, members: &[(MemberName, Json)]) -> bool {
        let few = &members[..members.len().min(FEW)];
        let is_new = few.iter().all(|(it, _)| it != name);
        is_new && (members.len() < FEW || self.many.insert(name.to_owned()))
    }
}

/// A string that borrows from the text unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

fn known_member(name: Cow<'_, str>) -> MemberName {
    match MEMBERS.iter().find(|known| **known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.into_owned()),
    }
}

/// Names of members common enough to intern.
const MEMBERS: [&str; 10] = [
    "name",
    "arguments",
    "_meta",
    "cursor",
    "uri",
    "requestId",
    "progressToken",
    "progress",
    "task",
    "taskId",
];
const FEW: usize = 16;

// Bits of the known members in `Envelope::seen`.
const VERSION: u8 = 0;
const ID: u8 = 1;
const METHOD: u8 = 2;
const PARAMS: u8 = 3;
const RESULT: u8 = 4;
const ERROR: u8 = 5;
