//! JSON that is carried unparsed, and fast writing of strings.
//!
//! A [`Json`] owns its text and shares it with its clones, but for a short result that was written here. It is not a
//! slice of the message it came in: a progress token that is kept for an hour must not keep megabytes alive with it. Only
//! the parts of a short message share its text, and a value that is most of a long message takes over its allocation.
//!
//! ```
//! use trunkline_wire::json::Json;
//!
//! let json = Json::parse(r#" {"b": 1.50, "a": 10000000000000000000000} "#).unwrap();
//! assert_eq!(json.get(), r#"{"b": 1.50, "a": 10000000000000000000000}"#);
//! ```

pub mod glance;
mod number;
mod plain;
mod raw;
mod reader;
mod write;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::spares;
use glance::Glance;
pub(crate) use number::write_number;
use number::{NO_DIGITS, write_digits};
use plain::end_of_plain;
pub(crate) use raw::raw_text;
pub(crate) use reader::{Reader, Unreadable};
pub(crate) use write::push_string;
pub use write::write_string;

/// A valid JSON text, kept as it came: number spelling and key order survive. Clones share the text.
#[derive(Clone)]
pub struct Json(Text);

#[derive(Clone)]
enum Text {
    /// A text of a few bytes, such as a number: it needs no allocation.
    Short(u8, [u8; SHORTEST]),
    /// Reference count and text in one allocation.
    Copied(Arc<str>),
    /// A short text that hardly anybody clones, such as a result that is about to be sent: it needs no count.
    Alone(Box<str>),
    /// A long text that was written here, in its own allocation.
    Written(Arc<Box<str>>),
    /// A value that took over the long message it came in; of a result also what was seen of it.
    Taken(Arc<Taken>, Option<Glance>),
    /// A result that came in a message, and what was seen of it then.
    Result(Arc<str>, Glance),
    /// The text of a short message, and where in it this value begins and ends.
    Part(Arc<str>, [u16; 2]),
}

/// A long message, and the place of the value that is most of it. Nothing is moved.
struct Taken {
    message: String,
    place: Range<usize>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        spares::leave(std::mem::take(&mut self.message).into_bytes());
    }
}

impl Json {
    /// Keeps `text` if it is one JSON value, nested no deeper than [`MAX_DEPTH`].
    pub fn parse(text: impl AsRef<str>) -> Result<Self, serde_json::Error> {
        let text = text.as_ref().trim_ascii();
        if is_too_deep(text.as_bytes(), MAX_DEPTH) {
            return Err(serde_json::Error::custom("the value is nested too deeply"));
        }
        let mut reader = Reader::new(text);
        if reader.value().and_then(|_| reader.end()).is_err() {
            // What is wrong is told by those who have words for it.
            serde_json::from_str::<&RawValue>(text)?;
        }
        Ok(Self::copied(text))
    }

    /// Serialises a value that cannot fail: our own types and `serde_json::Value`.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self::try_of(value).expect("the protocol's own types are always writable as JSON")
    }

    /// Serialises any value.
    pub fn try_of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        let mut bytes = room().into_bytes();
        let written = serde_json::to_writer(&mut bytes, value);
        let out = String::from_utf8(bytes).expect("JSON is written from UTF-8 pieces");
        match written {
            Ok(()) => Ok(Self::keep(out, Self::copied)),
            Err(error) => {
                leave(out);
                Err(error)
            }
        }
    }

    /// `{}`
    pub fn empty_object() -> Self {
        Self::copied("{}")
    }

    /// `null`
    pub fn null() -> Self {
        Self::copied("null")
    }

    /// A JSON string.
    pub fn string(text: &str) -> Self {
        let bytes = text.as_bytes();
        // A short one without anything to escape needs no room but its own.
        let mut short = [b'"'; SHORT];
        if bytes.len() + 2 <= SHORT && end_of_plain(bytes, 0) == bytes.len() {
            short[1..=bytes.len()].copy_from_slice(bytes);
            let quoted = str::from_utf8(&short[..bytes.len() + 2]);
            return Self::copied(quoted.expect("quotes around UTF-8 are UTF-8"));
        }
        let mut out = Vec::with_capacity(text.len() + 2);
        write_string(text, &mut out);
        Self::from_written(out)
    }

    /// Wraps bytes that this crate has just written as one JSON value.
    pub(crate) fn from_written(bytes: Vec<u8>) -> Self {
        debug_assert!(serde_json::from_slice::<&RawValue>(&bytes).is_ok());
        Self::written(String::from_utf8(bytes).expect("JSON is written from UTF-8 pieces"))
    }

    /// Copies a text that is known to be JSON.
    pub(crate) fn copied(text: &str) -> Self {
        let mut short = [0; SHORTEST];
        match short.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text.as_bytes());
                Self(Text::Short(text.len() as u8, short))
            }
            None => Self(Text::Copied(text.into())),
        }
    }

    /// A whole number.
    pub(crate) fn integer(number: i64) -> Self {
        let mut digits = NO_DIGITS;
        let start = write_digits(number, &mut digits);
        Self::copied(str::from_utf8(&digits[start..]).expect("digits are UTF-8"))
    }

    /// The value at `place` in this one, where it is known to stand. It shares the text if that is short.
    pub(crate) fn inner(&self, place: Range<usize>) -> Self {
        match &self.0 {
            Text::Part(whole, [start, _]) => {
                let range = [place.start, place.end].map(|it| start + it as u16);
                Self(Text::Part(Arc::clone(whole), range))
            }
            _ => Self::copied(&self.get()[place]),
        }
    }

    /// Copies the result that is next, and remembers what it shows.
    pub(crate) fn result(reader: &mut Reader<'_>) -> Result<Self, Unreadable> {
        let (text, glance) = Glance::read(reader)?;
        let text = if reader.leaves(text) { LEFT } else { text };
        Ok(Self(Text::Result(text.into(), glance)))
    }

    /// Copies the value that is next: alone, or for all parts of its text together if that is short. Then another part
    /// may have the copy already.
    #[inline]
    pub(crate) fn part(
        reader: &mut Reader<'_>,
        whole: Option<&Arc<str>>,
    ) -> Result<Self, Unreadable> {
        let (value, text) = (reader.value()?, reader.text());
        if text.len() > SHARED {
            return Ok(Self::copied(if reader.leaves(value) { LEFT } else { value }));
        }
        let end = reader.position();
        let range = [end - value.len(), end].map(|it| it as u16);
        let whole = whole.map_or_else(|| text.into(), Arc::clone);
        Ok(Self(Text::Part(whole, range)))
    }

    /// Whether the value was left in the text that it came in.
    pub(crate) fn is_left(&self) -> bool {
        self.get() == LEFT
    }

    /// Takes over the text that the value was left in.
    pub(crate) fn take_over(&mut self, mut message: String, place: Range<usize>) {
        // Growing has left room for more. A little of it is room for the next text there.
        message.shrink_to(message.len() + message.len() / 8);
        let glance = match &self.0 {
            Text::Result(_, glance) => Some(*glance),
            _ => None,
        };
        self.0 = Text::Taken(Arc::new(Taken { message, place }), glance);
    }

    /// The whole text that this value is a part of, if it shares that.
    #[inline]
    pub fn whole(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Text::Part(whole, _) => Some(whole),
            _ => None,
        }
    }

    /// Keeps what `write` appends, which is one JSON value that is hardly ever cloned. The room that it is written in
    /// is used again.
    pub(crate) fn write(write: impl FnOnce(&mut String)) -> Self {
        let mut out = room();
        write(&mut out);
        Self::keep(out, |text| Self(Text::Alone(text.into())))
    }

    /// Keeps what was written in the room, which is one JSON value, as a copy if it is short.
    #[inline]
    fn keep(out: String, copied: impl FnOnce(&str) -> Self) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&out).is_ok());
        if out.len() >= LONG {
            return Self::written(out);
        }
        let json = copied(&out);
        leave(out);
        json
    }

    /// Takes over a text that is known to be JSON. Copying a short one costs no more than shrinking its
    /// allocation; a long one stays where it is.
    pub(crate) fn written(text: String) -> Self {
        Self(match text.len() {
            ..LONG => return Self::copied(&text),
            _ => Text::Written(Arc::new(text.into())),
        })
    }

    /// The text.
    #[inline]
    pub fn get(&self) -> &str {
        match &self.0 {
            // It is UTF-8: it was copied from a text.
            Text::Short(length, text) => {
                str::from_utf8(&text[..usize::from(*length)]).unwrap_or_default()
            }
            Text::Copied(text) | Text::Result(text, _) => text,
            Text::Alone(text) => text,
            Text::Written(text) => text,
            Text::Taken(taken, _) => &taken.message[taken.place.clone()],
            Text::Part(text, [start, end]) => &text[usize::from(*start)..usize::from(*end)],
        }
    }

    /// Reads the text as a `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Reads the text as an owned `T`.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// What the value says, if it is a string. It is not copied unless it has escapes.
    ///
    /// ```
    /// # use trunkline_wire::json::Json;
    /// assert_eq!(Json::string("tab\t").as_text().as_deref(), Some("tab\t"));
    /// assert_eq!(Json::null().as_text(), None);
    /// ```
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        let text = self.get();
        if text.as_bytes().first() != Some(&b'"') {
            return None;
        }
        let end = end_of_plain(text.as_bytes(), 1);
        match end + 1 == text.len() {
            true => Some(Cow::Borrowed(&text[1..end])),
            false => self.read().ok().map(Cow::Owned),
        }
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// The text of a JSON string, borrowed if it has no escape; `None` for any other value.
    ///
    /// ```
    /// # use trunkline_wire::json::Json;
    /// assert_eq!(Json::string("a\"b").as_str().as_deref(), Some("a\"b"));
    /// assert_eq!(Json::null().as_str(), None);
    /// ```
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        self.as_text()
    }

    /// Whether the value is an object.
    #[inline]
    pub fn is_object(&self) -> bool {
        self.first() == Some(b'{')
    }

    /// Whether the value is a string.
    ///
    /// ```
    /// # use trunkline_wire::json::Json;
    /// assert!(Json::string("1").is_string() && !Json::of(&1).is_string());
    /// ```
    #[inline]
    pub fn is_string(&self) -> bool {
        self.first() == Some(b'"')
    }

    #[inline]
    fn first(&self) -> Option<u8> {
        match &self.0 {
            Text::Part(text, [start, _]) => text.as_bytes().get(usize::from(*start)).copied(),
            _ => self.get().as_bytes().first().copied(),
        }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        Self::of(value)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::of(&value)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.get()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Copied once; going through `Box<RawValue>` would copy it twice.
        Ok(match raw_text(deserializer)? {
            Cow::Borrowed(text) => Self::copied(text),
            Cow::Owned(text) => Self::written(text),
        })
    }
}

/// The longest text that is kept where it is: ids, numbers and words.
const SHORTEST: usize = 15;

/// The longest string that is put together on the stack.
const SHORT: usize = 64;

/// From this length on, copying costs more than a second allocation.
const LONG: usize = 4096;

/// Stands for a value that is still in the text it came in. No JSON is empty.
const LEFT: &str = "";

/// The longest text that its parts share.
const SHARED: usize = 1024;

thread_local! {
    /// Room to write short texts in. It is empty, and has at most a few times the length of one.
    static ROOM: Cell<String> = const { Cell::new(String::new()) };
}

/// Room to write a text in.
fn room() -> String {
    ROOM.try_with(Cell::take).unwrap_or_default()
}

/// Leaves the room to the next text.
fn leave(mut room: String) {
    if room.capacity() <= MOST_ROOM {
        room.clear();
        let _ = ROOM.try_with(|it| it.set(room));
    }
}

/// A text that could not be written to its end may have taken any room.
const MOST_ROOM: usize = 4 * LONG;

/// The maximum nesting depth.
pub const MAX_DEPTH: usize = 128;

/// Whether brackets in `text` nest deeper than `limit`. Handles strings, validates nothing else.
///
/// ```
/// # use trunkline_wire::json::*;
/// assert!(is_too_deep(b"[[[]]]", 2));
/// assert!(!is_too_deep(b"[[],[],[]]", 2));
/// assert!(!is_too_deep(br#"["[[["]"#, 1), "brackets in strings do not count");
/// ```
pub fn is_too_deep(text: &[u8], limit: usize) -> bool {
    // Counting brackets is many times faster than tracking strings, and nearly always enough.
    if text.len() <= limit || opening_brackets(text) <= limit {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The number of `{` and `[`. Small counters in short blocks vectorise.
fn opening_brackets(text: &[u8]) -> usize {
    let is_opening = |byte: &u8| u8::from(byte | 0x20 == b'{');
    text.chunks(192).map(|block| usize::from(block.iter().map(is_opening).sum::<u8>())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings_only() {
        let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
        assert!(is_too_deep(deep.as_bytes(), 128));
        assert!(Json::parse(deep).is_err());
        let flat = format!("[{}0]", "[],".repeat(500));
        assert!(!is_too_deep(flat.as_bytes(), 128));
        let quoted = format!("\"{}\\\"{}\"", "[".repeat(200), "[".repeat(200));
        assert!(!is_too_deep(quoted.as_bytes(), 128));
    }

    #[test]
    fn numbers_and_key_order_survive() {
        let text = r#"{"b":1.50,"a":123456789012345678901234567890}"#;
        assert_eq!(Json::parse(text).unwrap().get(), text);
        assert_eq!(Json::of(&Json::parse(text).unwrap()).get(), text);
    }

    #[test]
    fn clones_share_their_text() {
        let long = "x".repeat(LONG);
        let some = "x".repeat(SHORTEST + 1);
        let list = Json::parse(format!("[{}]", "1,".repeat(SHORTEST) + "1")).unwrap();
        for json in [list, Json::of(&some), Json::string(&some), Json::string(&long)] {
            assert_eq!(json.get().as_ptr(), json.clone().get().as_ptr());
        }
        assert_eq!(Json::string(&long), Json::parse(format!("\"{long}\"")).unwrap());
    }

    #[test]
    fn a_text_is_the_same_whether_it_is_kept_in_place_or_not() {
        for length in 0..2 * SHORTEST {
            let text = format!("\"{}\"", "é".repeat(length));
            let json = Json::parse(&text).unwrap();
            let written = Json::write(|out| out.push_str(&text));
            for json in [&json, &written] {
                assert_eq!((json.get(), json.clone().get()), (&*text, &*text));
            }
            assert_eq!((json.clone(), Json::of(&json)), (json.clone(), json));
        }
        for number in [0, -1, 7, 1234567890, i64::MIN, i64::MAX] {
            assert_eq!(Json::integer(number).get(), number.to_string());
        }
        assert!(size_of::<Json>() <= 24, "every member of every message is one");
    }
}
