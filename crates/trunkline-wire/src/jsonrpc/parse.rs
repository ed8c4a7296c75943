//! One JSON text → messages, or a precise error that names the id if it could be read.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};

use super::{ErrorObject, Id, MemberName, Message, MethodName, Object, Params};
use crate::code;
use crate::json::{Json, MAX_DEPTH, Reader, Unreadable, is_too_deep};
use crate::spares;

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
        if !text.trim_ascii_start().starts_with('[') {
            return Envelope::read(text).map_or_else(Self::Bad, Self::One);
        }
        match read_items(text) {
            Ok(items) => Self::Batch(items.into_iter().map(Envelope::read).collect()),
            Err(kind) => bad(kind),
        }
    }

    /// Reads one text that nobody else needs. A value that is most of a long one, as the result of a call is, takes
    /// over its allocation: there is never a second copy of it.
    ///
    /// ```
    /// # use trunkline_wire::jsonrpc::{Incoming, Message};
    /// let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":"{}"}}}}"#, "x".repeat(1 << 20));
    /// let Incoming::One(Message::Response { outcome: Ok(result), .. }) = Incoming::take(text.into_bytes())
    /// else { panic!() };
    /// assert!(result.get().starts_with(r#"{"a":"xxx"#) && result.get().ends_with(r#"xxx"}"#));
    /// ```
    pub fn take(text: Vec<u8>) -> Self {
        if text.len() < TAKEN || text.trim_ascii_start().starts_with(b"[") {
            let incoming = Self::parse(&text);
            spares::leave(text);
            return incoming;
        }
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                spares::leave(error.into_bytes());
                return Self::Bad(Malformed::new(MalformedKind::NotJson));
            }
        };
        let mut reader = Reader::leaving_most(&text);
        let (mut message, place) = (Envelope::read_from(&mut reader), reader.left());
        let left = message.as_mut().ok().and_then(left_in);
        match left.zip(place) {
            Some((left, place)) => left.take_over(text, place),
            None => spares::leave(text.into_bytes()),
        }
        message.map_or_else(Self::Bad, Self::One)
    }
}

/// The value of a message that was left in its text.
fn left_in(message: &mut Message) -> Option<&mut Json> {
    match message {
        Message::Request { params: Params::Object(Object(members)), .. }
        | Message::Notification { params: Params::Object(Object(members)), .. } => {
            members.iter_mut().map(|(_, value)| value).find(|value| value.is_left())
        }
        Message::Response { outcome: Ok(result), .. } if result.is_left() => Some(result),
        _ => None,
    }
}

/// The items of an array.
fn read_items(text: &str) -> Result<Vec<&str>, MalformedKind> {
    let mut reader = Reader::new(text);
    let items = (|| {
        let mut items = Vec::new();
        reader.open(b'[')?;
        while reader.item(items.is_empty())? {
            items.push(reader.value()?);
        }
        reader.end().map(|()| items)
    })();
    match items {
        Ok(items) if !reader.is_too_deep() => Ok(items),
        Err(Unreadable) if !is_too_deep(text.as_bytes(), MAX_DEPTH) => Err(MalformedKind::NotJson),
        _ => Err(MalformedKind::TooDeep),
    }
}

/// The members of a message parsed so far.
#[derive(Default)]
struct Envelope<'a> {
    version: bool,
    id: Option<ReadId<'a>>,
    method: Option<MethodName>,
    params: Option<Params>,
    result: Option<Json>,
    error: Option<ErrorObject>,
    fault: Option<MalformedKind>,
    /// A bit for each known member that occurred, readable or not.
    seen: u8,
}

/// What was read of an id.
#[derive(Clone, Copy)]
enum ReadId<'a> {
    /// A number in its plain spelling, as nearly every id is one.
    Number(i64),
    /// The text of any other value.
    Other(&'a str),
}

/// A known member.
#[derive(Clone, Copy, PartialEq)]
enum Member {
    Version,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Member {
    /// Its bit in [`Envelope::seen`].
    fn bit(self) -> u8 {
        1 << self as u8
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "jsonrpc" => Self::Version,
            "id" => Self::Id,
            "method" => Self::Method,
            "params" => Self::Params,
            "result" => Self::Result,
            "error" => Self::Error,
            _ => return None,
        })
    }

    /// The member that is next in an object behind others, if it is spelled as nearly everybody does.
    #[inline(always)]
    fn read_plain(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.goes_past(r#","id":"#) {
            return Some(Self::Id);
        }
        if reader.goes_past(r#","method":"#) {
            return Some(Self::Method);
        }
        if reader.goes_past(r#","params":"#) {
            return Some(Self::Params);
        }
        reader.goes_past(r#","result":"#).then_some(Self::Result)
    }
}

impl<'a> Envelope<'a> {
    fn read(text: &'a str) -> Result<Message, Malformed> {
        Self::read_from(&mut Reader::new(text))
    }

    fn read_from(reader: &mut Reader<'a>) -> Result<Message, Malformed> {
        let (text, mut envelope) = (reader.text(), Self::default());
        match envelope.fill(reader).and_then(|()| reader.end()) {
            Ok(()) if !reader.is_too_deep() => envelope.judge(),
            Ok(()) => Err(Malformed::new(MalformedKind::TooDeep)),
            Err(_) if is_too_deep(text.as_bytes(), MAX_DEPTH) => {
                Err(Malformed::new(MalformedKind::TooDeep))
            }
            // JSON's grammar allows lone surrogates and numbers of any size (RFC 8259 §8.2, §6). A text
            // that is unreadable because of those is JSON, but no message.
            Err(_) if is_json(text) => Err(Malformed::new(MalformedKind::NotJsonRpc)),
            Err(_) => Err(Malformed::new(MalformedKind::NotJson)),
        }
    }

    fn fill(&mut self, reader: &mut Reader<'a>) -> Result<(), Unreadable> {
        let mut others: Option<Box<Names>> = None;
        let mut is_first = !reader.open_after(BEGINNING);
        if is_first {
            reader.open(b'{')?;
        } else {
            self.version = true;
            self.seen = Member::Version.bit();
        }
        loop {
            let plain = if is_first { None } else { Member::read_plain(reader) };
            let member = match plain {
                Some(member) => member,
                None => {
                    let Some(name) = reader.member(std::mem::take(&mut is_first))? else {
                        return Ok(());
                    };
                    let name = name.decode().ok_or(Unreadable)?;
                    match Member::named(&name) {
                        Some(member) => member,
                        None => {
                            if !others.get_or_insert_default().add(&name) {
                                self.blame(MalformedKind::DuplicateKey);
                            } else if is_disguised(&name) {
                                self.blame(MalformedKind::NotJsonRpc);
                            }
                            reader.value()?;
                            continue;
                        }
                    }
                }
            };
            if self.seen & member.bit() != 0 {
                self.blame(MalformedKind::DuplicateKey);
                if member == Member::Id {
                    // Two ids are as good as none.
                    self.id = None;
                }
                reader.value()?;
                continue;
            }
            self.seen |= member.bit();
            self.take(member, reader)?;
        }
    }

    /// Reads the value of a known member.
    fn take(&mut self, member: Member, reader: &mut Reader<'a>) -> Result<(), Unreadable> {
        match member {
            Member::Version => self.version = reader.value()? == r#""2.0""#,
            Member::Id => {
                self.id = Some(match reader.natural() {
                    Some(number) => ReadId::Number(number),
                    None => ReadId::Other(reader.value()?),
                });
            }
            Member::Method if reader.peek() == Some(b'"') => match reader.string()?.decode() {
                Some(name) => self.method = Some((&*name).into()),
                None => self.blame(MalformedKind::NotJsonRpc),
            },
            Member::Params => self.params = self.take_params(reader)?,
            Member::Result => self.result = Some(Json::result(reader)?),
            Member::Error => match serde_json::from_str(reader.value()?) {
                Ok(error) => self.error = Some(error),
                Err(_) => self.blame(MalformedKind::NotJsonRpc),
            },
            Member::Method => {
                reader.value()?;
                self.blame(MalformedKind::NotJsonRpc);
            }
        }
        Ok(())
    }

    /// Opens `params` one level.
    fn take_params(&mut self, reader: &mut Reader<'a>) -> Result<Option<Params>, Unreadable> {
        match reader.peek() {
            Some(b'{') => {
                let (object, duplicate) = read_members(reader)?;
                if duplicate {
                    self.blame(MalformedKind::DuplicateKey);
                }
                Ok(Some(Params::Object(object)))
            }
            Some(b'[') => {
                let mut items = Vec::new();
                reader.open(b'[')?;
                while reader.item(items.is_empty())? {
                    items.push(Json::copied(reader.value()?));
                }
                Ok(Some(Params::Array(items)))
            }
            _ => {
                if reader.value()? != "null" {
                    self.blame(MalformedKind::NotJsonRpc);
                }
                Ok(None)
            }
        }
    }

    fn judge(self) -> Result<Message, Malformed> {
        let has = |member: Member| self.seen & member.bit() != 0;
        let is_response = !has(Member::Method) && (has(Member::Result) || has(Member::Error));
        let is_notification =
            has(Member::Method) && !has(Member::Id) && !has(Member::Result) && !has(Member::Error);
        let id = self.id.and_then(|it| match it {
            ReadId::Number(number) => Some(Id::Number(number)),
            ReadId::Other(text) => Id::from_json(text),
        });
        let bad = |kind, id| Err(Malformed { kind, id, is_response, is_notification });
        if let Some(kind) = self.fault {
            return bad(kind, id);
        }
        if !self.version {
            return bad(MalformedKind::NotJsonRpc, id);
        }
        let id = match (self.id, id) {
            (Some(ReadId::Other("null")), None) => Some(Id::Null),
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

impl Object {
    /// Reads an object; a name that stands twice is refused.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut reader = Reader::new(text);
        let read = read_members(&mut reader).and_then(|it| reader.end().map(|()| it));
        match read {
            Ok((object, false)) => Ok(object),
            Ok((_, true)) => Err(serde_json::Error::custom("a member name stands twice")),
            // What is wrong is told by those who have words for it.
            Err(_) => {
                serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text)?;
                Err(serde_json::Error::custom("the object cannot be read"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Json::deserialize(deserializer)?;
        Self::parse(text.get()).map_err(D::Error::custom)
    }
}

/// The members in order, and whether a name was duplicated.
fn read_members(reader: &mut Reader<'_>) -> Result<(Object, bool), Unreadable> {
    let mut object = Object::with_room(4);
    let members = &mut object.0;
    let mut duplicate = false;
    let mut names: Option<Box<Names>> = None;
    reader.open(b'{')?;
    while let Some(name) = reader.member(members.is_empty())? {
        let name = match name.plain().and_then(known_member) {
            Some(known) => Cow::Borrowed(known),
            None => member_name(name.decode().ok_or(Unreadable)?),
        };
        // The first one has the text that the others share.
        let value = Json::part(reader, members.first().and_then(|(_, first)| first.whole()))?;
        // A name that is known has no control characters.
        let is_odd = || matches!(name, Cow::Owned(_)) && has_control(&name);
        duplicate |= !is_new(&name, members, &mut names) || is_odd();
        members.push((name, value));
    }
    Ok((object, duplicate))
}

fn is_json(text: &str) -> bool {
    let mut reader = Reader::new(text);
    reader.value().is_ok() && reader.end().is_ok()
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
    /// Made when it is needed: nearly no message has so many.
    many: Option<HashSet<String>>,
}

impl Names {
    /// Adds a name; `false` if it is a duplicate.
    fn add(&mut self, name: &str) -> bool {
        if self.few.len() < FEW {
            let is_new = self.few.iter().all(|it| it != name);
            self.few.push(name.to_owned());
            return is_new;
        }
        !self.few.iter().any(|it| it == name) && self.insert(name)
    }

    fn insert(&mut self, name: &str) -> bool {
        self.many.get_or_insert_default().insert(name.to_owned())
    }
}

/// Whether no member before has this name. They serve as the list while they are few.
fn is_new(name: &str, before: &[(MemberName, Json)], names: &mut Option<Box<Names>>) -> bool {
    let few = &before[..before.len().min(FEW)];
    let is_new = few.iter().all(|(it, _)| it != name);
    is_new && (before.len() < FEW || names.get_or_insert_default().insert(name))
}

fn member_name(name: Cow<'_, str>) -> MemberName {
    match known_member(&name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.into_owned()),
    }
}

/// Interns the names that are common enough.
macro_rules! known_members {
    ($($name:literal)*) => {
        #[inline]
        fn known_member(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some($name),)*
                _ => None,
            }
        }
    };
}

known_members! {
    "name" "arguments" "_meta" "cursor" "uri" "requestId" "progressToken" "progress" "total" "message" "task" "taskId"
}

const FEW: usize = 16;

/// How most messages begin.
const BEGINNING: &str = r#"{"jsonrpc":"2.0""#;

/// The shortest text that a value of it takes over. Shorter ones are cheap to copy, and their allocations are used again.
const TAKEN: usize = 256 << 10;
