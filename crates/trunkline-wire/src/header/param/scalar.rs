//! The argument at a path, and whether a header has the same value.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Fault;
use crate::json::Json;

/// A value that a header can repeat.
pub(super) enum Scalar<'a> {
    Text(String),
    Flag(bool),
    Number(&'a str),
}

impl<'a> Scalar<'a> {
    /// The value at the end of `path`; `None` if anything on the way is absent or `null`.
    pub(super) fn find(
        arguments: Option<&'a Json>,
        path: &[String],
    ) -> Result<Option<Self>, Fault> {
        let Some(mut text) = arguments.map(Json::get) else { return Ok(None) };
        for name in path {
            if !text.starts_with('{') {
                return Ok(None);
            }
            let mut object = serde_json::Deserializer::from_str(text);
            let member = Member(name).deserialize(&mut object).map_err(|_| Fault::Unreadable)?;
            match member {
                Some(value) => text = value.get(),
                None => return Ok(None),
            }
        }
        Ok(Some(match text.as_bytes() {
            b"null" => return Ok(None),
            b"true" => Self::Flag(true),
            b"false" => Self::Flag(false),
            [b'"', ..] => Self::Text(serde_json::from_str(text).map_err(|_| Fault::Unreadable)?),
            [b'{' | b'[', ..] => return Err(Fault::Unreadable),
            _ => Self::Number(text),
        }))
    }

    /// The value as header text, before encoding.
    pub(super) fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Flag(true) => "true".into(),
            Self::Flag(false) => "false".into(),
            // `1.0` and `1e3` are integers too; other numbers stay as they are, and the server refuses
            // them.
            Self::Number(text) => Decimal::parse(text)
                .and_then(|it| it.to_integer())
                .map_or(Cow::Borrowed(*text), Cow::Owned),
        }
    }

    /// Whether a header with this decoded value agrees.
    pub(super) fn is_said_by(&self, said: &str) -> Result<(), Fault> {
        let is_same = match self {
            Self::Text(text) => text == said,
            Self::Flag(flag) => said == if *flag { "true" } else { "false" },
            Self::Number(text) => {
                let (Some(meant), Some(said)) = (Decimal::parse(text), Decimal::parse(said)) else {
                    return Err(Fault::Differs);
                };
                if meant == said && meant.is_unsafe_integer() {
                    return Err(Fault::Unsafe);
                }
                meant == said
            }
        };
        is_same.then_some(()).ok_or(Fault::Differs)
    }
}

/// Extracts one member of an object and skips the rest. A duplicate name is an error: two parsers could
/// disagree about its value.
struct Member<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(Is(self.0))? {
            if !is_it {
                map.next_value::<IgnoredAny>()?;
            } else if found.replace(map.next_value()?).is_some() {
                return Err(serde::de::Error::custom("the name stands there twice"));
            }
        }
        Ok(found)
    }
}

/// Compares a string.
struct Is<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }
}

/// A JSON number, exactly: its digits without zeros at either end, and a power of ten. Equal numbers
/// compare equal in any spelling.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    power: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match rest.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, Some(power)),
            None => (rest, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        let is_plain = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        if !is_plain || !fraction.is_none_or(is_digits) {
            return None;
        }
        let power = match power {
            None => 0_i64,
            Some(power) => {
                let unsigned = power.strip_prefix(['+', '-']).unwrap_or(power);
                if !is_digits(unsigned) {
                    return None;
                }
                power.parse().ok()?
            }
        };
        let fraction = fraction.unwrap_or_default();
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { is_negative: false, digits: String::new(), power: 0 });
        }
        let zeros = all.len() - all.trim_end_matches('0').len();
        let shift = i64::try_from(zeros).ok()? - i64::try_from(fraction.len()).ok()?;
        Some(Self { is_negative, digits: digits.to_owned(), power: power.checked_add(shift)? })
    }

    /// The number without point or exponent, if it is an integer of reasonable length.
    fn to_integer(&self) -> Option<String> {
        let zeros = usize::try_from(self.power).ok().filter(|it| *it <= LONGEST)?;
        let sign = if self.is_negative { "-" } else { "" };
        match self.digits.as_str() {
            "" => Some("0".to_owned()),
            digits => Some(format!("{sign}{digits}{}", "0".repeat(zeros))),
        }
    }

    fn is_unsafe_integer(&self) -> bool {
        self.power >= 0
            && self
                .to_integer()
                .and_then(|it| it.parse::<i64>().ok())
                .is_none_or(|it| it.abs() > SAFE)
    }
}

/// The largest integer that every JSON parser keeps exactly.
const SAFE: i64 = (1 << 53) - 1;
/// The most zeros written out: larger numbers are far outside the allowed range.
const LONGEST: usize = 20;
